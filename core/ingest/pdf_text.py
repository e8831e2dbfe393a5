"""The text of one PDF page, in reading order."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from core.ingest.columns import Line, rows_of
from core.ingest.page_order import SPACE, page_order
from core.ingest.rows import WIDE
from core.ingest.rtl import HAS_RTL, in_logical_order, is_rtl

# PDFium writes a hyphen at a line's end that only breaks a word as U+0002 or U+FFFE.
_BROKEN_WORD = re.compile("[\x02\ufffe](?:\r?\n+| )?")
_MAX_LINES = 3000
"""A page with more pieces of text is a drawing or a large table; its order is left alone."""
_MAX_CHARACTERS = 60_000
_PER_RECTANGLE, _PER_LETTER = 10.0, 5.0
"""Microseconds: what asking for a rectangle's text costs, and what a letter by itself does."""
_PER_LETTER_OF_RECTANGLE = 0.01
"""Microseconds: PDFium looks at every letter of the page for each rectangle."""
_SAME_LINE = 0.5
"""Of the lower of two boxes: what they share in height if they are on one line."""

_OVERLAP = 0.3
"""Of the height of a line: more is not what touching letters share."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """What stands on one line without a wide gap."""

    text: str
    box: Line


def page_text(text_page: Any, page_width: float) -> str:
    """Text of a page; lines end with a line feed, cells of a table's row are divided by " | "."""
    text = str(text_page.get_text_range())
    if HAS_RTL.search(text):
        if text_page.count_chars() <= _MAX_CHARACTERS:
            text = _from_right(text_page, page_width) or text
    elif 0 < (n_lines := text_page.count_rects()) <= _MAX_LINES:
        lines = [Line(*text_page.get_rect(index)) for index in range(n_lines)]
        order = page_order(lines, page_width)
        if order is not None:
            text = _by_rectangles(text_page, lines, order, text) or _by_pieces(text_page, page_width) or text
    return _BROKEN_WORD.sub("", text)


def _by_rectangles(text_page: Any, lines: list[Line], order: list[tuple[str, int]], text: str) -> str | None:
    """The text within each of the rectangles, in the given order.

    None where that would lose or repeat a letter, since rectangles of close lines overlap, and where it
    would take longer than letter by letter.
    """
    by_rectangles = len(lines) * (_PER_RECTANGLE + _PER_LETTER_OF_RECTANGLE * len(text))
    if by_rectangles > _PER_LETTER * len(text):
        return None
    parts = [
        " ".join(text_page.get_text_bounded(line.left, line.bottom, line.right, line.top).split())
        for line in lines
    ]
    if Counter("".join("".join(parts).split())) != Counter("".join(text.split())):
        return None
    return _joined([(before, parts[number]) for before, number in order])


def _by_pieces(text_page: Any, page_width: float) -> str | None:
    """As ``_by_rectangles``, letter by letter: always exact."""
    pieces = _pieces(text_page)
    order = page_order([piece.box for piece in pieces], page_width)
    if order is None:
        return None
    return _joined([(before, pieces[number].text) for before, number in order])


def _from_right(text_page: Any, page_width: float) -> str:
    """The text of a page that has right-to-left lines, by where they stand."""
    pieces = _merged(_pieces(text_page))
    rtl = is_rtl("".join(piece.text for piece in pieces))
    order = page_order([piece.box for piece in pieces], page_width, drawn=False, rtl=rtl) or []
    return _joined([(before, pieces[number].text) for before, number in order])


def _joined(parts: list[tuple[str, str]]) -> str:
    """Pieces with what stands before each; an empty one is left out."""
    found: list[str] = []
    for before, text in parts:
        if text:
            found += [before if found else "", text]
    return "".join(found)


def _pieces(text_page: Any) -> list[_Piece]:
    """Every character but white space at the ends of a piece, once, as it was drawn."""
    found: list[_Piece] = []
    text: list[str] = []
    boxes: list[Line] = []
    for character, box in _characters(text_page):
        if character.isspace():
            # A space is measured by what stands on both sides of it: its own box is often elsewhere.
            if text:
                text.append(character)
                boxes.append(boxes[-1])
            continue
        if text and ("\n" in text[-1] or _are_apart(boxes[-1], box)):
            found.append(_piece(text, boxes))
            text, boxes = [], []
        text.append(character)
        boxes.append(box)
    return [*found, _piece(text, boxes)] if text else found


def _piece(text: list[str], boxes: list[Line]) -> _Piece:
    joined = "".join(text).rstrip()
    inner = boxes[: len(joined)]
    return _Piece(in_logical_order(joined, inner), _around(inner))


def _characters(text_page: Any) -> Iterator[tuple[str, Line]]:
    """Characters with the room they take in their font, which is as high for all of one line."""
    import pypdfium2.raw as pdfium

    rect = pdfium.FS_RECTF()
    half = 0
    for index in range(text_page.count_chars()):
        code = pdfium.FPDFText_GetUnicode(text_page, index)
        if 0xD800 <= code < 0xDC00:
            half = code
            continue
        if 0xDC00 <= code < 0xE000 and half:
            code = 0x10000 + ((half - 0xD800) << 10) + code - 0xDC00
        half = 0
        if 0 < code < 0x110000 and pdfium.FPDFText_GetLooseCharBox(text_page, index, rect):
            left, right = sorted((rect.left, rect.right))
            bottom, top = sorted((rect.bottom, rect.top))
            yield chr(code), Line(left, bottom, right, top)


def _are_apart(one: Line, two: Line) -> bool:
    """Whether two characters that follow each other stand on other lines or in other cells."""
    overlap = min(one.top, two.top) - max(one.bottom, two.bottom)
    if overlap < _SAME_LINE * min(one.height, two.height):
        return True
    return max(two.left - one.right, one.left - two.right) >= WIDE * min(one.height, two.height)


def _merged(pieces: list[_Piece]) -> list[_Piece]:
    """Pieces that touch each other on a line as one, each line in the direction of most of its letters."""
    boxes = [piece.box for piece in pieces]
    found = []
    for row in rows_of(range(len(pieces)), boxes):
        together = [row[0]]
        for before, number in pairwise(row):
            if _are_apart(boxes[before], boxes[number]):
                found.append(_as_one([pieces[n] for n in together]))
                together = []
            together.append(number)
        found.append(_as_one([pieces[n] for n in together]))
    return found


def _as_one(pieces: list[_Piece]) -> _Piece:
    if is_rtl("".join(piece.text for piece in pieces)):
        pieces.reverse()
    parts = [pieces[0].text]
    for one, two in pairwise(pieces):
        gap = max(two.box.left - one.box.right, one.box.left - two.box.right)
        height = two.box.height
        # Pieces that lie over each other have boxes that are not theirs: nothing says that they touch.
        parts += ["" if -_OVERLAP * height < gap < SPACE * height else " ", two.text]
    return _Piece("".join(parts), _around([piece.box for piece in pieces]))


def _around(boxes: Sequence[Line]) -> Line:
    return Line(
        min(box.left for box in boxes),
        min(box.bottom for box in boxes),
        max(box.right for box in boxes),
        max(box.top for box in boxes),
    )
