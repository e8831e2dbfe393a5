"""Which reader reads which file. ``extract`` is pure: bytes in, text out, so that it can move into a
child process.
"""

from collections.abc import Callable
from pathlib import Path

from core.errors import DocumentError, NoText
from core.ingest.extracted import Extracted, is_blank

_MARKDOWN = frozenset((".md", ".markdown", ".mdown", ".mkd"))
_PLAIN = frozenset((".txt", ".text", ".log", ".rst", ".csv", ".tsv"))
_HTML = frozenset((".html", ".htm", ".xhtml"))
_PDF = frozenset((".pdf",))
SUFFIXES = _MARKDOWN | _PLAIN | _HTML | _PDF
KINDS = "PDF, Markdown, plain text and HTML"
MAX_FILE_BYTES = 512 << 20


def is_supported(path: Path) -> bool:
    """Whether files with this ending are read."""
    return path.suffix.lower() in SUFFIXES


def extract(path: Path, data: bytes, stop: Callable[[], bool] = lambda: False) -> Extracted:
    """The text of a file. Only the ending of ``path`` is looked at; ``data`` are its bytes.

    Raises DocumentError (PasswordRequired, NoText) with what to do, and Cancelled where ``stop`` says so.
    """
    if not data:
        raise DocumentError("This file is empty (0 bytes).")
    suffix = path.suffix.lower()
    # A PDF is one whatever it is called; other kinds cannot be told apart as surely.
    if suffix in _PDF or data.startswith(b"%PDF-"):
        from core.ingest.pdf import read_pdf

        return read_pdf(data, stop)
    if suffix in _HTML:
        from core.ingest.html import read_html

        extracted = read_html(data)
    elif suffix in _MARKDOWN or suffix in _PLAIN or not suffix:
        from core.ingest.plain import read_text

        extracted = read_text(data, "text/markdown" if suffix in _MARKDOWN else "text/plain")
    else:
        raise DocumentError(
            f"Slipstream cannot read {suffix} files.",
            hint=f"It reads {KINDS}; save the document as one of these.",
        )
    if is_blank(extracted.text):
        raise NoText("This file holds no text.")
    return extracted
