"""Which reader reads which file. ``extract`` is pure: bytes in, text out; ``extract_file`` is what runs in
a child process.
"""

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import xxhash

from core.errors import DocumentError, NoText, NotRead
from core.ingest import kinds
from core.ingest.extracted import MAX_CHARACTERS, Extracted, ReadOptions, is_blank

_MARKDOWN = frozenset((".md", ".markdown", ".mdown", ".mkd"))
_TEXT_ENDINGS = """
    .txt .text .log .rst .adoc .org .tex .bib .srt .vtt .xml .yaml .yml .toml .ini .cfg .conf .properties
    .py .pyi .js .mjs .ts .jsx .tsx .java .kt .scala .c .h .cc .cpp .hpp .cs .go .rs .swift .rb .php .pl .lua
    .r .jl .sh .bash .zsh .ps1 .bat .sql .css .scss .vue .svelte .proto .cmake .gradle .tf .diff .patch"""
_PLAIN = frozenset(_TEXT_ENDINGS.split())
_HTML = frozenset((".html", ".htm", ".xhtml"))
_TABLES = frozenset((".csv", ".tsv", ".tab"))
_JSON = frozenset((".json", ".jsonl", ".ndjson", ".geojson"))
_MAIL = frozenset((".eml",))
_PDF = frozenset((".pdf",))
_OFFICE_ENDINGS = """
    .docx .docm .dotx .pptx .pptm .ppsx .potx .xlsx .xlsm .xltx .odt .ott .ods .ots .odp .otp .epub .rtf"""
_BY_CONTENT = frozenset(_OFFICE_ENDINGS.split())
_OLD_OFFICE = frozenset((".doc", ".xls", ".ppt", ".dot", ".xlt", ".pps"))
"""Read only where the file is something else than it is called: programs export HTML as .xls."""
SUFFIXES = _MARKDOWN | _PLAIN | _HTML | _TABLES | _JSON | _MAIL | _PDF | _BY_CONTENT
KINDS = (
    "PDF, Word, PowerPoint, Excel, OpenDocument, RTF, EPUB, e-mail (.eml), HTML, Markdown, CSV, JSON"
    " and plain text"
)
MAX_FILE_BYTES = 512 << 20
READ_S = 120.0
"""One file may take so long to read; the worst of real ones, 3,000 pages, takes a few seconds."""
OCR_S = 3600.0
"""Recognizing text takes seconds a page; it ends by itself before that (``ocr.BUDGET_S``)."""
MEMORY_BYTES = 3 << 29
"""So much may the child hold: several times the largest text that can be stored with any sense."""
_HASH = re.compile("[0-9a-f]{32}")
_AS_IT_IS = ReadOptions()
_TRIES = 3
"""A file that is being written is read again, at most so often."""


@dataclass(frozen=True, slots=True)
class FileText:
    """The text of a file, and which bytes it was made from."""

    extracted: Extracted
    content_hash: str
    """xxh3_128 of the bytes, hexadecimal."""
    n_bytes: int
    mtime_ns: int
    """From before the bytes were read: a change after that is seen the next time."""

    def __post_init__(self) -> None:
        """Another process may have made it up: ValueError for what no file gives."""
        if len(self.extracted.text) > MAX_CHARACTERS:
            raise ValueError("more text than a file may hold")
        if not (0 < self.n_bytes <= MAX_FILE_BYTES and _HASH.fullmatch(self.content_hash)):
            raise ValueError("these are not the bytes of a file that is read")


def is_supported(path: Path, *, ocr: bool = False) -> bool:
    """Whether files with this ending are read; pictures are where text recognition is asked for."""
    suffix = path.suffix.lower()
    return suffix in SUFFIXES or (ocr and suffix in kinds.PICTURES)


def extract_file(path: Path, options: ReadOptions) -> FileText:
    """Read a file and its text. Raises as ``extract``, and OSError where the file cannot be read."""
    status, data = _bytes_of(path)
    return FileText(
        extract(path, data, options=options), xxhash.xxh3_128_hexdigest(data), len(data), status.st_mtime_ns
    )


def check_file(status: os.stat_result) -> None:
    """Raise DocumentError for what is no file, or is too large."""
    if not stat.S_ISREG(status.st_mode):  # reading a pipe or a device could take for ever
        raise DocumentError("This is not a file that can be read.")
    if status.st_size > MAX_FILE_BYTES:
        raise DocumentError(
            f"This file is larger than {MAX_FILE_BYTES >> 20} MB.", hint="Split it and add the parts."
        )


def _bytes_of(path: Path) -> tuple[os.stat_result, bytes]:
    """One state of the file, if it holds still for long enough."""
    for _ in range(_TRIES):
        check_file(path.stat())
        with path.open("rb") as file:
            before = os.fstat(file.fileno())
            check_file(before)
            data = file.read(MAX_FILE_BYTES + 1)
            after = os.fstat(file.fileno())
        if (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, len(data)):
            return before, data
    raise being_written()


def being_written() -> NotRead:
    """The refusal of a file that does not hold still."""
    return NotRead(
        "This file is being written to; it was not read.", hint="Add it again when its program is done."
    )


def extract(
    path: Path,
    data: bytes,
    stop: Callable[[], bool] = lambda: False,
    options: ReadOptions = _AS_IT_IS,
) -> Extracted:
    """The text of a file. Only the ending of ``path`` is looked at, and only where the bytes do not say
    what they are.

    Raises DocumentError (PasswordRequired, NoText) with what to do, and Cancelled where ``stop`` says so.
    """
    if not data:
        raise DocumentError("This file is empty (0 bytes).")
    suffix = path.suffix.lower()
    try:
        extracted = _read(suffix, data, stop, options)
    except RecursionError as error:
        raise DocumentError(
            "This file is nested as deeply as no document is; it was not read.",
            hint="Open it in its program and save it again.",
        ) from error
    if len(extracted.text) > MAX_CHARACTERS:
        raise DocumentError(
            f"This file holds more than {MAX_CHARACTERS // 1_000_000} million characters of text.",
            hint="Save it as several smaller files and add those.",
        )
    if is_blank(extracted.text):
        raise NoText("This file holds no text.")
    return extracted


def _read(suffix: str, data: bytes, stop: Callable[[], bool], options: ReadOptions) -> Extracted:
    if suffix in _PDF or data.startswith(kinds.PDF):
        from core.ingest.pdf import read_pdf

        return read_pdf(data, stop, options)
    if data.startswith(kinds.ZIPS) or (suffix in _BY_CONTENT and kinds.ZIP.startswith(data)):
        return _read_archive(data, stop)
    if data.startswith(kinds.RTF):
        from core.ingest.rtf import read_rtf

        return read_rtf(data, stop)
    if kinds.is_encrypted_office(data):
        from core.ingest.office_crypt import decrypted

        return _read_archive(decrypted(data, options.password), stop)
    if options.ocr and kinds.is_picture(data, suffix) and not kinds.is_unread_picture(data, suffix):
        from core.ingest.picture import read_picture

        return read_picture(data, stop)
    kinds.refuse_by_content(data, suffix)
    if suffix in _HTML or (suffix in _BY_CONTENT | _OLD_OFFICE and _looks_like_html(data)):
        from core.ingest.html import read_html

        return read_html(data)
    if suffix in _TABLES or suffix == ".xls":
        from core.ingest.tables import read_table

        return read_table(data, stop, tabs=suffix in (".tsv", ".tab"))
    if suffix in _JSON:
        from core.ingest.json_text import read_json

        return read_json(data)
    if suffix in _MAIL:
        from core.ingest.eml import read_eml

        return read_eml(data)
    if suffix in _MARKDOWN | _PLAIN | _BY_CONTENT | _OLD_OFFICE or not suffix:
        from core.ingest.plain import read_text

        try:
            return read_text(data, "text/markdown" if suffix in _MARKDOWN else "text/plain")
        except DocumentError as error:
            if suffix in _BY_CONTENT | _OLD_OFFICE:
                raise DocumentError(
                    f"This file is named {suffix} and is damaged, or is none.",
                    hint="Open it in its program and save it again, or get another copy.",
                    details=str(error),
                ) from error
            raise
    raise DocumentError(
        f"Slipstream cannot read {suffix} files.",
        hint=f"It reads {KINDS}; save the document as one of these.",
    )


def _read_archive(data: bytes, stop: Callable[[], bool]) -> Extracted:
    from core.ingest.archive import Archive

    archive = Archive(data)
    kind = kinds.kind_of_archive(archive)
    if kind == "docx":
        from core.ingest.docx import read_docx

        return read_docx(archive)
    if kind == "pptx":
        from core.ingest.pptx import read_pptx

        return read_pptx(archive)
    if kind == "xlsx":
        from core.ingest.sheets import read_sheets

        return read_sheets(archive, stop)
    if kind == "epub":
        from core.ingest.epub import read_epub

        return read_epub(archive)
    from core.ingest.odt import read_odt

    return read_odt(archive, kind)


def _looks_like_html(data: bytes) -> bool:
    start = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return start.startswith((b"<!doctype html", b"<html", b"<table", b"<head", b"<meta"))
