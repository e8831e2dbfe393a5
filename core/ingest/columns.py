"""Reading order of a page whose two columns were drawn across.

PDFium gives text in the order in which it was drawn. Most programs draw one column after the other; a
page that was drawn line by line across both must be split at the gutter. A table must not.
"""

from dataclasses import dataclass
from itertools import pairwise
from statistics import median

_MIN_LINES = 8
"""Lines on each side, fewer are no column."""
_MIN_WIDTH = 0.25
"""Of the page: the median line of a column of prose. Cells of tables are narrower."""
_MAX_CROSSING = 0.25
"""Of all lines may lie across the gutter: titles, headings, wide tables."""
_MIN_SWITCHES = 0.3
"""Of the lines follow one of the other side, if the columns were drawn across."""


@dataclass(frozen=True, slots=True)
class Line:
    """A piece of text on one line, in points; y grows upwards."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def width(self) -> float:
        return self.right - self.left


def in_reading_order(lines: list[Line], page_width: float) -> list[tuple[str, Line]] | None:
    """The lines in the order in which they are read, each with the white space before it.

    None where the order in which they were drawn is right, which is nearly always.
    """
    gutter = _gutter(lines, page_width)
    if gutter is None:
        return None
    sides = [-1 if line.right <= gutter else 1 if line.left >= gutter else 0 for line in lines]
    columns = [side for side in sides if side]
    switches = sum(one != two for one, two in pairwise(columns))
    if switches < _MIN_SWITCHES * len(columns):
        return None
    ordered: list[Line] = []
    band: list[tuple[int, Line]] = []
    for side, line in sorted(zip(sides, lines, strict=True), key=lambda pair: -pair[1].top):
        if side:
            band.append((side, line))
        else:
            ordered += _column_by_column(band)
            ordered.append(line)
            band = []
    ordered += _column_by_column(band)
    return [(_break(before, line), line) for before, line in zip([None, *ordered], ordered, strict=False)]


def _gutter(lines: list[Line], page_width: float) -> float | None:
    """The x in the middle third that the fewest lines cross, if there is a column on each side of it."""
    if len(lines) < 2 * _MIN_LINES:
        return None
    candidates = [page_width * (0.35 + step * 0.005) for step in range(61)]
    crossing = [sum(line.left < x < line.right for line in lines) for x in candidates]
    fewest = min(crossing)
    if fewest > _MAX_CROSSING * len(lines):
        return None
    best = [x for x, count in zip(candidates, crossing, strict=True) if count == fewest]
    gutter = best[len(best) // 2]
    for side in (
        [line for line in lines if line.right <= gutter],
        [line for line in lines if line.left >= gutter],
    ):
        if len(side) < _MIN_LINES or median(line.width for line in side) < _MIN_WIDTH * page_width:
            return None
    return gutter


def _column_by_column(band: list[tuple[int, Line]]) -> list[Line]:
    return [line for side in (-1, 1) for of, line in band if of == side]


def _break(before: Line | None, line: Line) -> str:
    if before is None:
        return ""
    height = line.top - line.bottom
    if abs(before.bottom - line.bottom) < height * 0.5 and line.left >= before.left:
        return " "
    return "\n"
