"""Tables that were drawn as text in places: which pieces of a page are the cells of one row.

Nothing in a PDF says "table". Here one is: three rows or more, one under the other, with a wide gap at the
same place in each, that are not columns of prose.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from core.ingest.columns import Line, rows_of

CELL = " | "
_MIN_ROWS = 3
WIDE = 0.9
"""Of the height of a line: a gap between two cells; words of one are closer, even in justified text."""
_PROSE_WIDTH, _PROSE_FILL = 0.15, 0.8
"""Of the page and of the column: lines that wide, that even, are prose."""
_BULLET = 1.6
"""Heights of a line: a first column of two that is narrower holds the bullets or numbers of a list."""
_MAX_LEADING = 4.0
"""Heights of a line from one row to the next; what is further apart is not one table."""

_MIN_AS_ROWS = 0.5
"""Of the cells right of a gap were drawn just after the one left of it."""
_SHORT = 0.2
"""Of the page: a cell of a table that was drawn column by column."""

_ROUNDING = 0.01

_Gap = tuple[float, float]
_Cell = list[int]


@dataclass(slots=True)
class _Run:
    """Rows under each other whose gaps share a place."""

    rows: list[list[_Cell]] = field(default_factory=list)
    gaps: list[_Gap] = field(default_factory=list)
    """What is free of text in every row so far."""
    n_split: int = 0
    """Rows of two cells or more."""


def tables_in(numbers: Sequence[int], lines: Sequence[Line], page_width: float) -> list[list[list[_Cell]]]:
    """Tables among the lines of the given numbers, which are in the order in which they were drawn.

    Each is its rows of cells; a cell is the numbers of its lines, from left to right.
    """
    place = {number: at for at, number in enumerate(numbers)}
    tables = []
    run = _Run()
    below: Line | None = None
    for row in rows_of(numbers, lines):
        cells, gaps = _cells(row, lines)
        first = lines[row[0]]
        far = below is not None and below.bottom - first.top > _MAX_LEADING * max(first.height, 1.0)
        below = first
        shared = gaps if not run.gaps else [gap for gap in _shared(run.gaps, gaps) if gap[1] - gap[0] > 1.0]
        if len(cells) > 1 and shared and not far:
            run.rows.append(cells)
            run.gaps = shared
            run.n_split += 1
            continue
        # A cell's second line, or a heading between rows: one such row does not end the table.
        if len(cells) == 1 and run.rows and len(run.rows[-1]) > 1 and not far:
            run.rows.append(cells)
            continue
        tables += _finished(run, lines, place, page_width)
        run = _Run([cells], gaps, 1) if len(cells) > 1 else _Run()
    return tables + _finished(run, lines, place, page_width)


def _finished(
    run: _Run, lines: Sequence[Line], place: dict[int, int], page_width: float
) -> list[list[list[_Cell]]]:
    """The tables of a run: none where it is prose or a list, several where tables stand side by side."""
    if run.n_split < _MIN_ROWS:
        return []
    while len(run.rows[-1]) == 1:  # what follows a table is not of it
        run.rows.pop()
    apart = _drawn_apart(run, lines, place)
    if apart and len(apart) < len(run.gaps):
        parts = _split(run, lines, apart)
        return [table for part in parts for table in _finished(part, lines, place, page_width)]
    columns: list[list[float]] = [[] for _ in range(len(run.gaps) + 1)]
    for row in run.rows:
        for cell in row if len(row) > 1 else ():
            columns[_column_of(cell, run.gaps, lines)].append(
                max(lines[number].right for number in cell) - lines[cell[0]].left
            )
    prose = sum(
        bool(widths)
        and median(widths) >= _PROSE_WIDTH * page_width
        and median(widths) >= _PROSE_FILL * max(widths)
        for widths in columns
    )
    height = median(lines[cell[0]].height for row in run.rows for cell in row)
    is_list = len(columns) == 2 and max(columns[0], default=0.0) < _BULLET * height
    if prose > 1 or is_list:
        return []
    # Two lists side by side look like a table that was drawn column by column: short cells and none
    # missing make the difference.
    is_full = len({len(row) for row in run.rows}) == 1
    is_short = all(max(widths, default=0.0) < _SHORT * page_width for widths in columns)
    if apart and not (is_full and is_short):
        return []
    return [run.rows]


def _drawn_apart(run: _Run, lines: Sequence[Line], place: dict[int, int]) -> list[_Gap]:
    """The gaps over which most rows were not drawn on: between two tables, or in one drawn by columns."""
    n_pairs = [0] * len(run.gaps)
    n_next = [0] * len(run.gaps)
    for row in run.rows:
        for one, two in pairwise(row):
            left, right = _column_of(one, run.gaps, lines), _column_of(two, run.gaps, lines)
            if left < right:
                n_pairs[left] += 1
                n_next[left] += place[two[0]] - place[one[-1]] == 1
    return [
        gap
        for gap, pairs, following in zip(run.gaps, n_pairs, n_next, strict=True)
        if pairs and following < _MIN_AS_ROWS * pairs
    ]


def _split(run: _Run, lines: Sequence[Line], at: list[_Gap]) -> list[_Run]:
    parts = [_Run() for _ in range(len(at) + 1)]
    for number, part in enumerate(parts):
        for row in run.rows:
            cells = [cell for cell in row if _column_of(cell, at, lines) == number]
            if cells:
                part.rows.append(cells)
                part.n_split += len(cells) > 1
        part.gaps = [gap for gap in run.gaps if gap not in at and sum(gap[0] >= x[0] for x in at) == number]
    return parts


def _column_of(cell: _Cell, gaps: list[_Gap], lines: Sequence[Line]) -> int:
    return sum(lines[cell[0]].left >= gap[1] - _ROUNDING for gap in gaps)


def _cells(row: list[int], lines: Sequence[Line]) -> tuple[list[_Cell], list[_Gap]]:
    cells = [[row[0]]]
    gaps = []
    end = lines[row[0]].right
    # Boxes are often as high as their letters: a dot must not make a word space wide.
    wide = WIDE * max(lines[number].height for number in row)
    for number in row[1:]:
        line = lines[number]
        if line.left - end >= wide:
            gaps.append((end, line.left))
            cells.append([number])
        else:
            cells[-1].append(number)
        end = max(end, line.right)
    return cells, gaps


def _shared(one: list[_Gap], two: list[_Gap]) -> list[_Gap]:
    """What lies in a gap of both."""
    return [(max(a[0], b[0]), min(a[1], b[1])) for a in one for b in two if max(a[0], b[0]) < min(a[1], b[1])]
