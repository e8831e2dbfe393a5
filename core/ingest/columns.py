"""Reading order of the pieces of text on a page: columns, rows of tables, lines.

PDFium gives text in the order in which it was drawn. Most programs draw one column after the other; a
page that was drawn line by line across both must be split at the gutter. A table must not.
"""

from collections.abc import Sequence
from itertools import combinations, pairwise
from statistics import median
from typing import NamedTuple

_MIN_LINES = 8
"""Lines in each column, fewer are no column."""
_MIN_WIDTH = {2: 0.25, 3: 0.16, 4: 0.12}
"""Of the page, by number of columns: the median line of a column of prose. Cells of tables are narrower."""
_MIN_FILL = 0.7
"""Of its column a line of prose fills, by the median, where there are three columns or more."""
_MAX_CROSSING = 0.25
"""Of all lines may lie across the gutter: titles, headings, wide tables."""
_MIN_SWITCHES = 0.3
"""Of the lines follow one of another column, if the columns were drawn across."""
_STEPS = 120
"""Places across the page where a gutter is looked for."""


class Line(NamedTuple):
    """A piece of text on one line, in points; y grows upwards.

    A tuple, since a page has thousands and a dataclass takes four times as long to make.
    """

    left: float
    bottom: float
    right: float
    top: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.top - self.bottom


def columns_across(
    lines: Sequence[Line], between: tuple[float, ...], *, drawn: bool = True, rtl: bool = False
) -> list[int] | None:
    """The lines' numbers in the order in which they are read, where columns were drawn line by line across.

    ``between``: the gutters. None where the order in which the lines were drawn is right, which is nearly
    always; with ``drawn`` false that order says nothing. ``rtl``: the column on the right is read first.
    """
    sides = [column_of(line, between) for line in lines]
    columns = [side for side in sides if side is not None]
    switches = sum(one != two for one, two in pairwise(columns))
    if drawn and switches < _MIN_SWITCHES * len(columns):
        return None
    ordered: list[int] = []
    band: list[int] = []

    def close_band() -> None:
        for column in sorted({sides[number] or 0 for number in band}, reverse=rtl):
            of_column = [number for number in band if sides[number] == column]
            ordered.extend(number for row in rows_of(of_column, lines, rtl=rtl) for number in row)
        band.clear()

    for number in sorted(range(len(lines)), key=lambda n: -lines[n].top):
        if sides[number] is None:
            close_band()
            ordered.append(number)
        else:
            band.append(number)
    close_band()
    return ordered


def rows_of(numbers: Sequence[int], lines: Sequence[Line], *, rtl: bool = False) -> list[list[int]]:
    """The lines of the given numbers by rows, from top to bottom; in a row in reading direction."""
    rows: list[list[int]] = []
    bottom = top = 0.0
    for number in sorted(numbers, key=lambda n: -(lines[n].top + lines[n].bottom)):
        line = lines[number]
        overlap = min(top, line.top) - max(bottom, line.bottom)
        if rows and overlap >= 0.5 * min(top - bottom, line.height):
            rows[-1].append(number)
        else:
            rows.append([number])
            bottom, top = line.bottom, line.top
    for row in rows:
        row.sort(key=lambda n: -lines[n].right if rtl else lines[n].left)
    return rows


def gutters(lines: Sequence[Line], page_width: float) -> tuple[float, ...]:
    """The x between columns of prose: as many as have a column on each side, three at most; often none."""
    n_wide = sum(line.width >= _MIN_WIDTH[4] * page_width for line in lines)
    if n_wide < _MIN_LINES:  # two columns, half of the lines of each
        return ()
    candidates = _gaps(lines, page_width)
    for n_gutters in (3, 2, 1):
        for between in combinations(candidates, n_gutters):
            if _are_columns(lines, between, page_width):
                return between
    return ()


def _gaps(lines: Sequence[Line], page_width: float) -> list[float]:
    """Places that few lines cross, with lines on both sides: the middle of each, the emptiest four."""
    step = page_width / _STEPS
    change = [0] * (_STEPS + 2)
    for line in lines:
        first = min(max(int(line.left / step) + 1, 0), _STEPS + 1)
        last = min(max(int(line.right / step) + 1, 0), _STEPS + 1)
        if last > first:
            change[first] += 1
            change[last] -= 1
    crossing = []
    count = 0
    for delta in change:
        count += delta
        crossing.append(count)
    found: list[tuple[int, float]] = []
    at = int(0.15 * _STEPS)
    end = int(0.85 * _STEPS)
    while at < end:
        until = at + 1
        while until < end and crossing[until] == crossing[at]:
            until += 1
        lower_left = crossing[at - 1] > crossing[at]
        lower_right = crossing[until] > crossing[at]
        if lower_left and lower_right and crossing[at] <= _MAX_CROSSING * len(lines):
            found.append((crossing[at], (at + until - 1) / 2 * step))
        at = until
    return sorted(x for _count, x in sorted(found)[:4])


def _are_columns(lines: Sequence[Line], between: tuple[float, ...], page_width: float) -> bool:
    columns: list[list[float]] = [[] for _ in range(len(between) + 1)]
    crossing = 0
    for line in lines:
        column = column_of(line, between)
        if column is None:
            crossing += 1
        else:
            columns[column].append(line.width)
    if crossing > _MAX_CROSSING * len(lines):
        return False
    n_columns = len(columns)
    for widths in columns:
        if len(widths) < _MIN_LINES or median(widths) < _MIN_WIDTH[n_columns] * page_width:
            return False
        if n_columns > 2 and median(widths) < _MIN_FILL * max(widths):
            return False
    return True


def column_of(line: Line, between: tuple[float, ...]) -> int | None:
    """Which column the line lies in; None if it lies across a gutter."""
    for number, gutter in enumerate(between):
        if line.right <= gutter:
            return number
        if line.left < gutter:
            return None
    return len(between)
