"""One page of a PDF as a picture, and where on it a text stands.

Pure: a path and words in, a ``PageImage`` out, both picklable, so that it can run in a child process.
PDFium is not thread-safe: within one process, only one thread may use it at a time.
"""

import contextlib
import ctypes
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from core.errors import DocumentError, PasswordRequired
from core.ingest.content_hash import hash_of
from core.ingest.matching import FoldedPage
from core.types import PageImage, Rectangle

MAX_PIXELS = 4_000_000
"""A larger page is drawn coarser: 12 MB of memory, whatever the file says of itself."""
_MAX_SIDE = 16_000
"""Pixels: of a page as narrow as a till receipt."""
_MAX_CHARACTERS = 60_000
"""Of a page are searched: more is a drawing or an attack."""
_SAME_LINE = 0.5
"""Of the lower box's height two characters must share to stand on one line."""
_MAX_HEIGHT = 4.0
"""Times the usual size of a character: a font that says it is higher lies."""
_MAX_GAP = 2.0
"""Heights of a line between two characters that one rectangle holds: a justified space, not a gutter."""
_UNITS = 1 << 20
"""A page is so many units wide and high where PDFium turns places on the page into integers."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """A box on the page as it is shown, in points, y downwards."""

    left: float
    top: float
    right: float
    bottom: float


def check_unchanged(path: str, n_bytes: int, mtime_ns: int, content_hash: str) -> None:
    """Raise DocumentError unless the file is the one that was read (``content_hash``: xxh3_128, hex)."""
    try:
        status = Path(path).stat()
        if (status.st_size, status.st_mtime_ns) == (n_bytes, mtime_ns):
            return
        same = status.st_size == n_bytes and hash_of(Path(path)) == content_hash
    except OSError as error:
        raise _unreadable(error) from error
    if not same:
        raise DocumentError(
            "The file was changed after it was read.",
            hint="This is its text as it was read. Add it again to see its pages.",
        )


def render_unchanged(
    path: str,
    facts: tuple[int, int, str],
    password: str,
    page: int,
    width_px: int,
    wanted: str,
    around: str,
) -> PageImage:
    """``render``, if the file is the one that was read. ``facts``: size, time and hash, as
    ``check_unchanged`` takes them. Raises DocumentError as both of them.
    """
    check_unchanged(path, *facts)
    return render(path, password, page, width_px, wanted, around)


def render(
    path: str, password: str, page: int, width_px: int, wanted: str = "", around: str = ""
) -> PageImage:
    """Draw ``page`` (1-based) ``width_px`` pixels wide, and find ``wanted`` on it.

    ``around`` is the longer text that ``wanted`` was taken from; it gets rectangles of its own
    (``passage``). Both are only what stands on this page, as the reader made it.

    Raises DocumentError (PasswordRequired) where the file is gone, damaged or protected, or has no such
    page.
    """
    import pypdfium2

    if not Path(path).is_file():
        raise _unreadable(FileNotFoundError())
    try:
        document = pypdfium2.PdfDocument(path, password=password or None)
    except pypdfium2.PdfiumError as error:
        raise _refusal(path, error) from error
    except OSError as error:
        raise _unreadable(error) from error
    try:
        n_pages = len(document)
        if not 1 <= page <= n_pages:
            raise DocumentError(
                f"This document has no page {page:,}; it has {n_pages:,}.",
                hint="This is its text as it was read. Add it again if the file was changed.",
            )
        with contextlib.suppress(pypdfium2.PdfiumError):
            document.init_forms()  # else the fields of a form are drawn empty
        sheet = document[page - 1]
        try:
            return _drawn(sheet, page, n_pages, width_px, wanted, around)
        finally:
            sheet.close()  # what is left to the garbage collector is closed on another thread
    except pypdfium2.PdfiumError as error:
        raise DocumentError(
            f"Page {page:,} cannot be drawn.",
            hint="This is its text as it was read.",
            details=str(error),
        ) from error
    finally:
        document.close()


def _drawn(sheet: Any, page: int, n_pages: int, width_px: int, wanted: str, around: str) -> PageImage:
    width_pt, height_pt = sheet.get_size()
    if not (math.isfinite(width_pt * height_pt) and width_pt > 0 and height_pt > 0):
        raise DocumentError(f"Page {page:,} has no size.", hint="This is its text as it was read.")
    highlights, passage = _places(sheet, wanted, around)
    scale = min(max(1, width_px) / width_pt, math.sqrt(MAX_PIXELS / (width_pt * height_pt)))
    scale = min(scale, _MAX_SIDE / max(width_pt, height_pt))
    bitmap = sheet.render(scale=scale, rev_byteorder=True)
    try:
        return PageImage(
            page=page,
            n_pages=n_pages,
            width=bitmap.width,
            height=bitmap.height,
            stride=bitmap.stride,
            rgb=bytes(bitmap.buffer),
            highlights=highlights,
            passage=passage,
        )
    finally:
        bitmap.close()


def _places(sheet: Any, wanted: str, around: str) -> tuple[tuple[Rectangle, ...], tuple[Rectangle, ...]]:
    """Rectangles of both texts; none where the page's text is damaged, which is no reason not to show it."""
    import pypdfium2

    if not wanted.strip() and not around.strip():
        return (), ()
    try:
        text_page = sheet.get_textpage()
    except pypdfium2.PdfiumError:
        return (), ()
    try:
        found = FoldedPage(list(_characters(text_page)))
        return (
            rectangles(sheet, text_page, found.find(wanted, around)),
            rectangles(sheet, text_page, found.find(around)) if around != wanted else (),
        )
    except pypdfium2.PdfiumError:
        return (), ()
    finally:
        text_page.close()


def _characters(text_page: Any) -> Iterator[str]:
    """The page's characters by index. PDFium gives UTF-32; a half surrogate pair is nothing."""
    import pypdfium2.raw as pdfium

    for index in range(min(text_page.count_chars(), _MAX_CHARACTERS)):
        code = pdfium.FPDFText_GetUnicode(text_page, index)
        yield chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else ""


def rectangles(sheet: Any, text_page: Any, indices: Sequence[int]) -> tuple[Rectangle, ...]:
    """What these characters of a page cover, a rectangle for each stretch of a line."""
    width, height = sheet.get_size()
    tight = [text_page.get_charbox(index) for index in indices]
    usual = median(max(right - left, top - bottom) for left, bottom, right, top in tight) if tight else 0.0
    made: list[_Mark] = []
    for index, box in zip(indices, tight, strict=True):
        left, bottom, right, top = box
        loose = text_page.get_charbox(index, loose=True)
        if loose[3] - loose[1] <= _MAX_HEIGHT * usual:
            left, bottom = min(left, loose[0]), min(bottom, loose[1])
            right, top = max(right, loose[2]), max(top, loose[3])
        xs, ys = zip(_shown(sheet, left, bottom), _shown(sheet, right, top), strict=True)
        mark = _Mark(max(0.0, min(xs)), max(0.0, min(ys)), min(width, max(xs)), min(height, max(ys)))
        if mark.right <= mark.left or mark.bottom <= mark.top:
            continue  # it is not on the page
        joined = _joined(made[-1], mark) if made else None
        if joined is None:
            made.append(mark)
        else:
            made[-1] = joined
    return tuple(
        Rectangle(one.left / width, one.top / height, one.right / width, one.bottom / height) for one in made
    )


def _shown(sheet: Any, x: float, y: float) -> tuple[float, float]:
    """A place on the page, as the page is shown: turned, cut, y downwards. Points."""
    import pypdfium2.raw as pdfium

    width, height = sheet.get_size()
    across, down = ctypes.c_int(), ctypes.c_int()
    pdfium.FPDF_PageToDevice(sheet, 0, 0, _UNITS, _UNITS, 0, x, y, across, down)
    return across.value / _UNITS * width, down.value / _UNITS * height


def _joined(one: _Mark, two: _Mark) -> _Mark | None:
    """Both in one, if they stand beside each other on a line, or under each other in vertical text."""
    shared_y = min(one.bottom, two.bottom) - max(one.top, two.top)
    shared_x = min(one.right, two.right) - max(one.left, two.left)
    low = min(one.bottom - one.top, two.bottom - two.top)
    narrow = min(one.right - one.left, two.right - two.left)
    high = max(one.bottom - one.top, two.bottom - two.top)
    wide = max(one.right - one.left, two.right - two.left)
    beside = shared_y >= _SAME_LINE * low and -shared_x <= _MAX_GAP * high
    under = shared_x >= _SAME_LINE * wide and -shared_y <= narrow and wide < 2 * narrow
    if not (beside or under):
        return None
    return _Mark(
        min(one.left, two.left),
        min(one.top, two.top),
        max(one.right, two.right),
        max(one.bottom, two.bottom),
    )


def _refusal(path: str, error: Exception) -> DocumentError:
    # Of a document without pages PDFium gives the reason of whatever it refused before.
    if "password" in str(error).lower() and b"/Encrypt" in Path(path).read_bytes():
        return PasswordRequired(
            "The pages of this PDF are protected by a password.", hint="This is its text as it was read."
        )
    return DocumentError(
        "This PDF cannot be opened.", hint="This is its text as it was read.", details=str(error)
    )


def _unreadable(error: OSError) -> DocumentError:
    hint = "This is its text as it was read."
    if isinstance(error, FileNotFoundError):
        return DocumentError("The file is no longer where it was.", hint=hint)
    if isinstance(error, PermissionError):
        return DocumentError("You have no permission to read the file.", hint=hint)
    return DocumentError("The file cannot be read.", hint=hint, details=str(error))
