"""PDF to text, page by page, with pypdfium2. Images are never decoded."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from core.errors import Cancelled, DocumentError, NoText
from core.ingest.columns import Line, in_reading_order
from core.ingest.extracted import Extracted, ReadOptions, cleaned, is_blank, password_required

# PDFium writes a hyphen at a line's end that only breaks a word as U+0002 or U+FFFE.
_BROKEN_WORD = re.compile("[\x02\ufffe](?:\r?\n)?")
_OPEN_SENTENCE = re.compile(r"[^.!?:。！？؟…\"”’)\]]\s*\Z")
_NO_PAGES = re.compile(rb"/Kids\s*\[\s*\]")
_MAX_LINES = 3000
"""A page with more pieces of text is a drawing or a large table; its order is left alone."""


def read_pdf(data: bytes, stop: Callable[[], bool], options: ReadOptions) -> Extracted:
    """Text and page positions. ``stop`` is asked between pages; Cancelled is raised if it says so."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data, password=options.password or None)
    except pypdfium2.PdfiumError as error:
        raise _refusal(data, str(error), options) from error
    try:
        damaged: list[int] = []
        pages = list(_pages(document, stop, damaged))
    finally:
        document.close()
    if not pages:
        raise DocumentError("This PDF has no pages.")
    blank = sum(is_blank(page) for page in pages) - len(damaged)
    if damaged and blank + len(damaged) == len(pages):
        raise _damaged(f"{len(damaged)} of {_count(len(pages), 'page')}")
    if blank == len(pages):
        raise NoText(
            f"This PDF has {_count(len(pages), 'page')} and no text; it holds images, probably scans.",
            hint="Run text recognition (OCR) on it and add the result.",
        )
    text, starts = _joined(pages)
    note = ""
    if blank:
        verb = "holds" if blank == 1 else "hold"
        note = f"{blank} of {_count(len(pages), 'page')} {verb} no text; scanned pages need OCR first."
    if damaged:
        verb = "is" if len(damaged) == 1 else "are"
        left_out = f"{len(damaged)} of {_count(len(pages), 'page')} {verb} damaged and could not be read."
        note = f"{left_out} {note}".strip()
    return Extracted(text, "application/pdf", tuple(starts), note)


def _pages(document: Any, stop: Callable[[], bool], damaged: list[int]) -> Iterator[str]:
    """The text of each page, empty for one that cannot be opened; its index is put into ``damaged``."""
    import pypdfium2

    for index in range(len(document)):
        if stop():
            raise Cancelled
        try:
            page = document[index]
            text_page = page.get_textpage()
        except pypdfium2.PdfiumError:
            damaged.append(index)
            yield ""
            continue
        try:
            yield _page_text(text_page, page.get_width())
        finally:
            text_page.close()
            page.close()


def _page_text(text_page: Any, width: float) -> str:
    n_lines = text_page.count_rects()
    text = None
    if 0 < n_lines <= _MAX_LINES:
        lines = [Line(*text_page.get_rect(index)) for index in range(n_lines)]
        ordered = in_reading_order(lines, width)
        if ordered is not None:
            text = "".join(
                break_before
                + text_page.get_text_bounded(line.left, line.bottom, line.right, line.top).strip(" \r\n")
                for break_before, line in ordered
            )
    if text is None:
        text = text_page.get_text_range()
    return cleaned(_BROKEN_WORD.sub("", text)).strip()


def _joined(pages: list[str]) -> tuple[str, list[int]]:
    """One text and where each page begins in it. A sentence that runs on over the page stays one."""
    parts: list[str] = []
    starts: list[int] = []
    at = 0
    last = ""
    for page in pages:
        if at:
            runs_on = page[:1].islower() and _OPEN_SENTENCE.search(last[-20:])
            gap = "\n" if runs_on else "\n\n"
            parts.append(gap)
            at += len(gap)
        starts.append(at)
        parts.append(page)
        at += len(page)
        last = page or last
    return "".join(parts), starts


def _refusal(data: bytes, reason: str, options: ReadOptions) -> DocumentError:
    if "password" in reason.lower() and b"/Encrypt" in data:
        return password_required("PDF", options.password)
    # Of a document without pages PDFium gives the reason of whatever it refused before.
    if _NO_PAGES.search(data):
        return DocumentError("This PDF has no pages.", details=reason)
    if not data[:1024].lstrip().startswith(b"%PDF"):
        return DocumentError("This file is named like a PDF and is none.", details=reason)
    return _damaged(reason)


def _damaged(reason: str) -> DocumentError:
    return DocumentError(
        "This PDF is damaged.",
        hint="Open it in a PDF program and save it again, or get another copy.",
        details=reason,
    )


def _count(n: int, word: str) -> str:
    return f"{n} {word}" if n == 1 else f"{n:,} {word}s"
