"""PDF to text, page by page, with pypdfium2. Images are decoded where text recognition is asked for."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from core.errors import Cancelled, DocumentError, NeedsRecognition, NoText
from core.ingest import ocr
from core.ingest.extracted import Extracted, ReadOptions, cleaned, is_blank, password_required
from core.ingest.pdf_text import page_text

_OPEN_SENTENCE = re.compile(r"[^.!?:。！？؟…\"”’)\]]\s*\Z")
_NO_PAGES = re.compile(rb"/Kids\s*\[\s*\]")


def read_pdf(data: bytes, stop: Callable[[], bool], options: ReadOptions) -> Extracted:
    """Text and page positions. ``stop`` is asked between pages; Cancelled is raised if it says so.

    With ``options.ocr`` the text of pages that hold none is recognized, if the extra is installed.
    """
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data, password=options.password or None)
    except pypdfium2.PdfiumError as error:
        raise _refusal(data, str(error), options) from error
    found = _Found()
    try:
        _read_pages(document, found, stop)
        if options.ocr and found.blank and ocr.is_available():
            _recognize(document, found, stop)
    finally:
        document.close()
    found.refuse_nothing()
    text, starts = _joined(found.pages)
    return Extracted(text, "application/pdf", tuple(starts), found.note())


@dataclass(slots=True)
class _Found:
    """What came of the pages; they are numbered from 0."""

    pages: list[str] = field(default_factory=list)
    blank: list[int] = field(default_factory=list)
    """Pages that hold no text of their own."""
    damaged: list[int] = field(default_factory=list)
    """Pages that PDFium could not load; they are empty."""
    asked: bool = False
    """Whether the text of blank pages was to be recognized."""
    n_recognized: int = 0
    problems: list[str] = field(default_factory=list)
    """Of pages that could not be recognized."""
    n_late: int = 0
    """Blank pages that were not tried, since the time was over."""

    def refuse_nothing(self) -> None:
        """Raise what says why there is no text, if there is none."""
        n_pages = len(self.pages)
        if not n_pages:
            raise DocumentError("This PDF has no pages.")
        if len(self.damaged) == n_pages:
            raise _damaged("none of its pages can be loaded")
        if len(self.blank) + len(self.damaged) < n_pages or self.n_recognized:
            return
        if not self.asked:
            raise NeedsRecognition(
                f"This PDF has {_count(n_pages, 'page')} and no text; it holds images, probably scans.",
                hint=ocr.offer(),
            )
        them = "it" if n_pages == 1 else "them"
        raise NoText(
            f"This PDF has {_count(n_pages, 'page')}; no text was recognized in {them}.",
            hint=" ".join(
                [*self.problems[:3], ocr.SCRIPTS, *([ocr.left_over(self.n_late)] if self.n_late else [])]
            ),
        )

    def note(self) -> str:
        """What the user should know about pages whose text is missing or recognized."""
        pages = _count(len(self.pages), "page")
        n_left = len(self.blank) - self.n_recognized - self.n_late
        notes = []
        if self.n_recognized:
            notes.append(
                f"The text of {self.n_recognized:,} of {pages} was recognized; check figures against the"
                " original."
            )
        if self.asked and n_left:
            notes.append(f"No text was recognized in {_count(n_left, 'page')}.")
        elif n_left:
            notes.append(f"{n_left:,} of {pages} {'holds' if n_left == 1 else 'hold'} no text. {ocr.offer()}")
        if self.n_late:
            notes.append(ocr.left_over(self.n_late))
        if self.damaged:
            first = ", ".join(f"{index + 1:,}" for index in self.damaged[:5])
            more = " and others" if len(self.damaged) > 5 else ""
            notes.append(f"{_count(len(self.damaged), 'page')} damaged and left out: {first}{more}.")
        return " ".join([*notes, *self.problems[:3]])


def _read_pages(document: Any, found: _Found, stop: Callable[[], bool]) -> None:
    import pypdfium2

    for index in range(len(document)):
        if stop():
            raise Cancelled
        try:
            text = _text_of(document, index)
        except pypdfium2.PdfiumError:
            found.damaged.append(index)
            text = ""
        else:
            if is_blank(text):
                found.blank.append(index)
        found.pages.append(text)


def _text_of(document: Any, index: int) -> str:
    page = document[index]
    try:
        text_page = page.get_textpage()
        try:
            return cleaned(page_text(text_page, page.get_width())).strip()
        finally:
            text_page.close()
    finally:
        page.close()


def _recognize(document: Any, found: _Found, stop: Callable[[], bool]) -> None:
    """Put the text that is recognized in the blank pages in their place."""
    from core.ingest.scans import rendered

    found.asked = True
    deadline = time.monotonic() + ocr.BUDGET_S
    for n_done, index in enumerate(found.blank):
        if stop():
            raise Cancelled
        if time.monotonic() > deadline:
            found.n_late = len(found.blank) - n_done
            break
        page = document[index]
        try:
            text = cleaned(ocr.recognize(rendered(page))).strip()
        except DocumentError as error:
            found.problems.append(f"Page {index + 1:,}: {error}")
            continue
        finally:
            page.close()
        if not is_blank(text):
            found.pages[index] = text
            found.n_recognized += 1


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
