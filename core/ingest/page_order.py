"""One page's pieces of text, put into reading order, with what stands between them."""

from collections.abc import Sequence
from itertools import pairwise
from math import inf, isfinite

from core.ingest.columns import Line, column_of, columns_across, gutters, rows_of
from core.ingest.rows import CELL, tables_in

SPACE = 0.1
"""Of the height of a line: a gap that is a space."""
_PARAGRAPH = 0.75
"""Of the height of a line: free space between two lines that ends a paragraph."""


def page_order(
    lines: Sequence[Line], page_width: float, *, drawn: bool = True, rtl: bool = False
) -> list[tuple[str, int]] | None:
    """Every line's number once, in reading order, each with the white space or cell mark before it.

    ``drawn``: the lines come in the order in which they were drawn, which is kept where nothing speaks
    against it; None then says that nothing does. Paragraphs are only told apart where it is false: as drawn,
    boxes are as high as their letters. ``rtl``: the page is read from right to left.
    """
    if not (0 < page_width < inf and all(isfinite(sum(line)) for line in lines)):
        # A damaged page has boxes that are nowhere.
        return None if drawn else [("\n" if number else "", number) for number in range(len(lines))]
    between = gutters(lines, page_width)
    by_column: dict[int | None, list[int]] = {}
    for number, line in enumerate(lines):
        by_column.setdefault(column_of(line, between), []).append(number)
    tables = [table for numbers in by_column.values() for table in tables_in(numbers, lines, page_width)]
    order = columns_across(lines, between, drawn=drawn, rtl=rtl) if between else None
    if order is None:
        if drawn and not tables:
            return None
        everything = range(len(lines))
        order = (
            list(everything)
            if drawn
            else [number for row in rows_of(everything, lines, rtl=rtl) for number in row]
        )
    table_of = {
        number: index
        for index, table in enumerate(tables)
        for row in table
        for cell in row
        for number in cell
    }
    found: list[tuple[str, int]] = []
    done: set[int] = set()
    before: Line | None = None
    for number in order:
        if number not in table_of:
            found.append((_break(before, lines[number], rtl=rtl, paragraphs=not drawn), number))
            before = lines[number]
            continue
        if (index := table_of[number]) in done:
            continue
        done.add(index)
        mark = "\n\n" if before is not None else ""
        for row in tables[index]:
            for cell in reversed(row) if rtl else row:
                pieces = cell[::-1] if rtl else cell
                found.append((mark, pieces[0]))
                found += [
                    (_break(lines[one], lines[two], rtl=rtl, paragraphs=False), two)
                    for one, two in pairwise(pieces)
                ]
                before = lines[pieces[-1]]
                mark = CELL
            mark = "\n"
    return found


def _break(before: Line | None, line: Line, *, rtl: bool, paragraphs: bool) -> str:
    if before is None:
        return ""
    overlap = min(before.top, line.top) - max(before.bottom, line.bottom)
    if overlap >= 0.5 * min(before.height, line.height):
        gap = before.left - line.right if rtl else line.left - before.right
        if gap >= -0.5 * line.height:
            return " " if gap >= SPACE * line.height else ""
        return "\n"
    height = max(before.height, line.height)
    return "\n\n" if paragraphs and before.bottom - line.top > _PARAGRAPH * height else "\n"
