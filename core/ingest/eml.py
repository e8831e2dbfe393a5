"""E-mails as files: who wrote to whom, when, and the body once."""

import email
import email.policy
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.utils import collapse_rfc2231_value

from core.errors import DocumentError
from core.ingest import plain
from core.ingest.extracted import Extracted, cleaned
from core.ingest.html import read_html

MEDIA_TYPE = "message/rfc822"
_SHOWN = ("From", "To", "Cc", "Date", "Subject")
_MAX_HEADER = 10_000
_OF_MAIL = frozenset(("from", "to", "date", "subject", "received", "message-id", "mime-version"))


def read_eml(data: bytes) -> Extracted:
    """Raises DocumentError where there is neither a header nor text."""
    # The newer policy takes gigabytes for some headers.
    message = email.message_from_bytes(data, policy=email.policy.compat32)
    if not _OF_MAIL & {name.lower() for name in message}:
        return plain.read_text(data, "text/plain")  # named like an e-mail and none
    attached: list[str] = []
    text = _whole(message, attached)
    note = ""
    if len(attached) == 1:
        note = "1 attachment was not read; save it and add it if you need it."
    elif attached:
        note = f"{len(attached):,} attachments were not read; save them and add what you need."
    return Extracted(cleaned(text), MEDIA_TYPE, note=note)


def _whole(message: Message, attached: list[str]) -> str:
    """Headers and body of a message; the names of what is attached are added to ``attached``."""
    lines = [f"{name}: {value}" for name in _SHOWN if (value := _header(message, name))]
    own: list[str] = []
    body = _body(message, own)
    attached += own
    lines += [f"Attachments: {', '.join(own)}"] if own else []
    return "\n\n".join(filter(None, ["\n".join(lines), body]))


def _body(part: Message, attached: list[str]) -> str:
    kind = part.get_content_type()
    children = part.get_payload() if part.is_multipart() else None
    if isinstance(children, list):
        messages = [each for each in children if isinstance(each, Message)]
        if kind == "message/rfc822":
            return "\n\n".join(_whole(each, attached) for each in messages)
        texts = [(each.get_content_type(), _body(each, attached)) for each in messages]
        if kind != "multipart/alternative":
            return "\n\n".join(text for _kind, text in texts if text)
        # The same text in several forms: the plain one, else what the sender thinks is best.
        plain_texts = [text for each, text in texts if each == "text/plain" and text]
        return (plain_texts[:1] or [text for _kind, text in texts if text][-1:] or [""])[0]
    name = _file_name(part)
    if name or part.get_content_disposition() == "attachment":
        attached.append(name or kind)
        return ""
    return _text(part).strip() if kind in ("text/plain", "text/html") else ""


def _header(message: Message, name: str) -> str:
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name.lower()), "")
    return _readable(raw)


def _file_name(part: Message) -> str:
    try:
        return _readable(part.get_filename() or "")
    except (LookupError, ValueError):
        return "unnamed"


def _readable(raw: str) -> str:
    """A header's value in one line, its encoded words decoded."""
    data = raw[:_MAX_HEADER].encode("utf-8", "surrogateescape")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("cp1252", "replace")
    parts: list[str] = []
    try:
        for part, charset in decode_header(text):
            if isinstance(part, bytes):
                parts.append(part.decode(charset or "raw-unicode-escape", "replace"))
            else:
                parts.append(part)
    except (HeaderParseError, LookupError, ValueError):
        parts = [text]
    return " ".join("".join(parts).split())


def _text(part: Message) -> str:
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes) or not payload:
        return ""
    text = _decoded(payload, part)
    if part.get_content_type() == "text/html":
        return read_html(text.encode("utf-8", "replace")).text if text.strip() else ""
    return text


def _decoded(payload: bytes, part: Message) -> str:
    try:
        charset = collapse_rfc2231_value(part.get_param("charset") or "")
        if charset:
            return payload.decode(charset)
    except (LookupError, ValueError, TypeError):
        pass  # it says what it is not
    try:
        return plain.decode(payload)[0]
    except DocumentError:
        return ""
