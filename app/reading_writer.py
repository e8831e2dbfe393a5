"""Lays a document's text out for reading: headings, items, tables, a marked stretch."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtGui import (
    QColor,
    QFontDatabase,
    QFontMetricsF,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFrameFormat,
    QTextLength,
    QTextOption,
    QTextTableFormat,
)

from app.reading_text import Kind, Manner, Paragraph, paragraphs
from app.theme import READING_PX, Theme

DOCUMENT_PX = 14
_HEADING_PX = (20, 17, 15)
"""Of the first levels; deeper ones are as large as the text, and bold."""
_LINE_HEIGHT = 1.5
_GAP_PX = 8
_MAX_GRID_CELLS = 240
"""Qt takes 0.2 ms to lay out a cell of a table: a larger one is written as lines with tab stops."""
_TAB_PX = 320
"""A tab stop is so far from the one before at most; a longer cell pushes those after it to the right."""
_CELL_PX = 130
"""A cell of a table that is too wide for the view is as wide as its text, and so wide at most."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Where a piece of the text stands in Qt's document."""

    position: int
    start: int
    end: int
    """Character offsets in the text."""


def plain_format(
    theme: Theme, size: int = READING_PX, *, bold: bool = False, role: str = "text"
) -> QTextCharFormat:
    made = QTextCharFormat()
    made.setFont(theme.font(size, bold=bold))
    made.setForeground(QColor(getattr(theme.tokens, role)))
    return made


def marked_format(theme: Theme, plain: QTextCharFormat) -> QTextCharFormat:
    made = QTextCharFormat(plain)
    made.setBackground(QColor(theme.tokens.mark))
    return made


def write(
    document: QTextDocument,
    theme: Theme,
    text: str,
    manner: Manner,
    mark: tuple[int, int] | None,
    room_px: float,
) -> list[Stretch]:
    """Fill an empty document with ``text``; where each piece of it stands, in the order of both.

    ``mark``: character offsets of what is marked; ``room_px``: width that tables should keep to.
    """
    return _Writer(document, theme, manner, mark, room_px).write(text)


class _Writer:
    def __init__(
        self,
        document: QTextDocument,
        theme: Theme,
        manner: Manner,
        mark: tuple[int, int] | None,
        room_px: float,
    ) -> None:
        self._cursor = QTextCursor(document)
        self._theme = theme
        self._manner = manner
        self._mark = mark
        self._room_px = room_px
        self._stretches: list[Stretch] = []

    def write(self, text: str) -> list[Stretch]:
        shown, found = paragraphs(text, self._manner)
        cursor = self._cursor
        cursor.beginEditBlock()
        index, fresh, grid_cells = 0, True, 0
        while index < len(found):
            end = index + 1
            if found[index].kind is Kind.ROW:
                while end < len(found) and found[end].kind is Kind.ROW and not found[end].apart:
                    end += 1
            rows = found[index:end]
            n_cells = len(rows) * max(len(row.pieces) for row in rows)
            if len(rows) > 1 and grid_cells + n_cells <= _MAX_GRID_CELLS:
                grid_cells += n_cells
                self._write_grid(cursor, shown, rows, fresh=fresh)
                cursor.movePosition(QTextCursor.MoveOperation.End)
                fresh = True  # Qt keeps an empty paragraph behind a table
            elif len(rows) > 1:
                self._write_lines(cursor, shown, rows, fresh=fresh)
                fresh = False
            else:
                self._write_paragraph(cursor, shown, found[index], fresh=fresh, first=index == 0)
                fresh = False
            index = end
        cursor.endEditBlock()
        return self._stretches

    def _write_paragraph(
        self, cursor: QTextCursor, text: str, one: Paragraph, *, fresh: bool, first: bool
    ) -> None:
        spacing = self._spacing(one, first=first)
        if fresh:
            cursor.setBlockFormat(spacing)
        else:
            cursor.insertBlock(spacing)
        plain = self._plain(one)
        if one.kind is Kind.ITEM:
            cursor.insertText("•\u2002", plain_format(self._theme, DOCUMENT_PX, role="muted"))
        for number, (start, end) in enumerate(one.pieces):
            if number:
                cursor.insertText("  |  ", plain_format(self._theme, DOCUMENT_PX, role="muted"))
            self._write_piece(cursor, text, start, end, plain)

    def _plain(self, one: Paragraph) -> QTextCharFormat:
        if one.kind is Kind.HEADING:
            size = _HEADING_PX[one.level - 1] if one.level <= len(_HEADING_PX) else DOCUMENT_PX
            return plain_format(self._theme, size, bold=True)
        if self._manner is Manner.CODE:
            made = plain_format(self._theme, DOCUMENT_PX)
            font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
            font.setPixelSize(self._theme.px(DOCUMENT_PX - 1))
            made.setFont(font)
            return made
        return plain_format(self._theme, DOCUMENT_PX)

    def _spacing(self, one: Paragraph, *, first: bool) -> QTextBlockFormat:
        made = QTextBlockFormat()
        size = DOCUMENT_PX
        above = _GAP_PX if one.apart else _GAP_PX // 2 if one.kind is Kind.TEXT else 2
        if one.kind is Kind.HEADING:
            size = _HEADING_PX[min(one.level, len(_HEADING_PX)) - 1]
            above = 2 * _GAP_PX if one.level > 1 else 3 * _GAP_PX
        if self._manner is Manner.CODE:
            above = 0
        height = self._theme.px(size) * (_LINE_HEIGHT if one.kind is not Kind.HEADING else 1.25)
        made.setLineHeight(height, QTextBlockFormat.LineHeightTypes.MinimumHeight.value)
        made.setTopMargin(0 if first else self._theme.px(above))
        if one.kind is Kind.ITEM:
            made.setLeftMargin(self._theme.px(16))
            made.setTextIndent(-self._theme.px(14))
        return made

    def _write_lines(self, cursor: QTextCursor, text: str, rows: Sequence[Paragraph], *, fresh: bool) -> None:
        """Many rows: a line each, the cells at tab stops."""
        columns = _filled(rows)
        spacing = self._spacing(rows[0], first=False)
        spacing.setTopMargin(self._theme.px(2))
        spacing.setNonBreakableLines(True)
        stops: list[QTextOption.Tab] = []
        at = 0.0
        for width in self._natural(text, rows, columns)[:-1]:
            at += min(width, self._theme.px(_TAB_PX)) + self._theme.px(8)
            stops.append(QTextOption.Tab(at, QTextOption.TabType.LeftTab))
        spacing.setTabPositions(stops)
        plain = plain_format(self._theme, DOCUMENT_PX - 1)
        for row in rows:
            if fresh:
                cursor.setBlockFormat(spacing)
                fresh = False
            else:
                cursor.insertBlock(spacing)
            for place, column in enumerate(columns):
                if column >= len(row.pieces):
                    break
                if place:
                    cursor.insertText("\t", plain)
                self._write_piece(cursor, text, *row.pieces[column], plain)

    def _write_grid(self, cursor: QTextCursor, text: str, rows: Sequence[Paragraph], *, fresh: bool) -> None:
        """A few rows under each other: one table. Columns that are empty in all of them are left out."""
        columns = _filled(rows)
        if not fresh:
            cursor.insertBlock(QTextBlockFormat())
        small = QTextBlockFormat()
        small.setLineHeight(1, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        cursor.setBlockFormat(small)  # the empty paragraph before the table takes no room
        style = self._table_style()
        style.setColumnWidthConstraints(self._widths(text, rows, columns))
        table = cursor.insertTable(len(rows), len(columns), style)
        plain = plain_format(self._theme, DOCUMENT_PX - 1)
        for number, row in enumerate(rows):
            for place, column in enumerate(columns):
                start, end = row.pieces[column] if column < len(row.pieces) else (0, 0)
                if end > start:
                    inside = table.cellAt(number, place).firstCursorPosition()
                    self._write_piece(inside, text, start, end, plain)

    def _table_style(self) -> QTextTableFormat:
        style = QTextTableFormat()
        style.setBorder(1)
        style.setBorderCollapse(True)
        style.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
        style.setBorderBrush(QColor(self._theme.tokens.border))
        style.setCellPadding(self._theme.px(4))
        style.setCellSpacing(0)
        style.setTopMargin(self._theme.px(_GAP_PX))
        style.setBottomMargin(self._theme.px(_GAP_PX))
        return style

    def _widths(self, text: str, rows: Sequence[Paragraph], columns: Sequence[int]) -> list[QTextLength]:
        """Left to Qt where the table fits; else fixed, so that no word is cut and the view scrolls."""
        natural = self._natural(text, rows, columns)
        if sum(natural) <= self._room_px:
            return [QTextLength()] * len(columns)
        most = max(self._theme.px(_CELL_PX), self._room_px / len(columns) - 2)
        return [QTextLength(QTextLength.Type.FixedLength, min(width, most)) for width in natural]

    def _natural(self, text: str, rows: Sequence[Paragraph], columns: Sequence[int]) -> list[float]:
        """Pixels that the widest cell of each column takes, the room around it included.

        Of many rows only the longest text of a column is measured.
        """
        metrics = QFontMetricsF(self._theme.font(DOCUMENT_PX - 1))
        around = 2 * self._theme.px(4) + 2
        widths = []
        for column in columns:
            cells = [row.pieces[column] for row in rows if column < len(row.pieces)]
            longest = sorted(cells, key=lambda cell: cell[0] - cell[1])[:3]
            widths.append(max(metrics.horizontalAdvance(text[a:b][:200]) for a, b in longest) + around)
        return widths

    def _write_piece(
        self, cursor: QTextCursor, text: str, start: int, end: int, plain: QTextCharFormat
    ) -> None:
        self._stretches.append(Stretch(cursor.position(), start, end))
        low, high = self._mark if self._mark is not None else (end, end)
        low, high = min(max(low, start), end), min(max(high, start), end)
        cursor.insertText(text[start:low], plain)
        if high > low:
            cursor.insertText(text[low:high], marked_format(self._theme, plain))
        cursor.insertText(text[high:end] if high > low else text[low:end], plain)


def _filled(rows: Sequence[Paragraph]) -> list[int]:
    """The columns in which any of the rows has something; at least one."""
    n_cells = max(len(row.pieces) for row in rows)
    return [
        column
        for column in range(n_cells)
        if any(column < len(row.pieces) and row.pieces[column][0] < row.pieces[column][1] for row in rows)
    ] or [0]
