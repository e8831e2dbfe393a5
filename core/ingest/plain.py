"""Plain text and Markdown in whatever encoding people have."""

import codecs

from core.errors import DocumentError
from core.ingest.extracted import Extracted, cleaned

_ENCODING_OF_MARK = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
BOMS = tuple(mark for mark, _encoding in _ENCODING_OF_MARK)
"""Byte order marks: what says the encoding without a doubt."""
# What people's files are in. Others (old Macs, mainframes) win too often on short texts.
_LIKELY_ENCODINGS = (
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "iso8859_2"),
    *("koi8_r", "cp866", "cp874", "big5", "gb18030", "cp932", "euc_jp", "cp949"),
)
_SAMPLE_BYTES = 1 << 16
"""As much is looked at to tell text from data and one encoding from another."""


def read_text(data: bytes, media_type: str) -> Extracted:
    """Raises DocumentError for data that is no text."""
    text, note = decode(data)
    return Extracted(cleaned(text), media_type, note=note)


def decode(data: bytes) -> tuple[str, str]:
    """Text, and a note where the encoding had to be guessed."""
    for mark, encoding in _ENCODING_OF_MARK:
        if data.startswith(mark):
            return data.decode(encoding, "replace"), ""
    encoding = _utf16_without_mark(data)
    if encoding:
        return data.decode(encoding, "replace"), ""
    refuse_binary(data)
    try:
        return data.decode("utf-8"), ""
    except UnicodeDecodeError as error:
        # A file that was cut off in the middle of a character is still UTF-8.
        if error.start > len(data) - 4 and error.start > 0:
            return data.decode("utf-8", "ignore"), ""
    encoding, note = guess_encoding(data)
    return data.decode(encoding, "replace"), note


def guess_encoding(data: bytes) -> tuple[str, str]:
    """Encoding of bytes that are not UTF-8, by what their text would look like, and a note about it."""
    from charset_normalizer import from_bytes

    best = from_bytes(data[:_SAMPLE_BYTES], cp_isolation=list(_LIKELY_ENCODINGS)).best()
    encoding = best.encoding if best is not None else "cp1252"
    if best is not None and "cp1252" in best.could_be_from_charset:
        encoding = "cp1252"  # of several that give the same text, the one that is by far the most common
    return encoding, f"The encoding of this file was guessed ({encoding}); check that its text looks right."


def refuse_binary(data: bytes) -> None:
    """Raise DocumentError where the data cannot be text in any encoding without NUL bytes."""
    sample = data[:_SAMPLE_BYTES]
    controls = sum(sample.count(code) for code in (*range(9), *range(14, 27), *range(28, 32)))
    if controls > max(2, len(sample) * 0.01):
        raise DocumentError(
            "This file holds data, not text.",
            hint="If it is a document, give it the ending of its kind and add it again.",
        )


def _utf16_without_mark(data: bytes) -> str:
    """``utf-16-le`` or ``utf-16-be`` where every other byte of mostly Latin text is zero, else empty."""
    sample = data[:_SAMPLE_BYTES]
    if len(sample) < 8 or b"\0" not in sample:
        return ""
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    if odd > half * 0.6 and even < half * 0.05:
        return "utf-16-le"
    if even > half * 0.6 and odd < half * 0.05:
        return "utf-16-be"
    return ""
