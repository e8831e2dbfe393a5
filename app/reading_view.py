"""Reads documents: plain text with a marked sentence, and whole documents loaded around the place."""

from bisect import bisect_right

from PySide6.QtCore import QPoint, QTimer, Signal
from PySide6.QtGui import QResizeEvent, QTextCharFormat, QTextCursor

from app.alignment import utf16_offsets
from app.answer_view import SafeBrowser
from app.reading_text import Manner, manner_of
from app.reading_writer import Stretch, marked_format, plain_format, write
from app.theme import READING_PX, Theme
from core.types import PassageText, TextLoaded

_LOAD_BLOCKS = 12
"""So many are asked for at once when one reads on."""
_MAX_CHARACTERS = 40_000
"""Stand in the view: laying out more would be felt. What is far away leaves it again."""
_MOST_CHARACTERS = 160_000
"""Stand in a view so large that what is within reach is more than that."""
_AHEAD, _BEHIND = 2.0, 1.0
"""Heights of the view below and above what is seen: so much text is wanted there."""
_SPARE = 0.25
"""Heights of the view: so much more than is wanted stays, so that what leaves is not asked for again."""
_REST_MS = 100
"""A table fits itself to a new width when the view has rested so long."""
_WITH_TABLES = frozenset((Manner.MARKDOWN, Manner.MARKED, Manner.TABLE))


class Reading(SafeBrowser):
    """Plain text of documents, with marked sentences."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__(theme, may_open_links=False)
        self.setAccessibleName(name)
        self.document().setDocumentMargin(16)

    def normal(self, size: int = READING_PX, *, bold: bool = False, role: str = "text") -> QTextCharFormat:
        return plain_format(self._theme, size, bold=bold, role=role)

    def write_marked(self, cursor: QTextCursor, text: str, start: int, end: int, size: int) -> None:
        """Insert ``text`` with one stretch of it marked."""
        plain = self.normal(size)
        cursor.insertText(text[:start], plain)
        cursor.insertText(text[start:end], marked_format(self._theme, plain))
        cursor.insertText(text[end:], plain)


class ReadingView(Reading):
    """A whole document, of which only the part around the place that is read is here."""

    more_wanted = Signal(int, int)
    """First block (ordinal) and number of blocks that are to be loaded; they arrive at `add`."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Document")
        self._document_id = 0
        self._manner = Manner.PROSE
        self._text = ""
        self._first = 0
        self._cuts: list[int] = []
        self._n_blocks = 0
        self._mark = (0, 0, 0)
        """What is marked: its block's ordinal, its offset behind that block's cut, and its length."""
        self._stretches: list[Stretch] = []
        self._asked: int | None = None
        """First block of what was asked for and has not come."""
        self._filling = False
        self._to_mark = False
        """Nobody has scrolled since the passage was shown."""
        self.verticalScrollBar().valueChanged.connect(self._scrolled)
        self._refill = QTimer(self)
        self._refill.setSingleShot(True)
        self._refill.setInterval(_REST_MS)
        self._refill.timeout.connect(self._restyle)
        theme.changed.connect(self._restyle)

    # --- what is shown ----------------------------------------------------------------------------

    def show_passage(self, passage: PassageText) -> None:
        self._document_id = passage.document_id
        self._manner = manner_of(passage.title)
        self._text, self._first, self._cuts = passage.text, passage.first, list(passage.cuts)
        self._n_blocks = passage.n_blocks
        start, end = passage.highlight
        index = max(0, bisect_right(self._cuts, start) - 1)
        self._mark = (self._first + index, start - self._cuts[index], end - start)
        self._asked = None
        self._fill()
        self._filling = True
        self.setTextCursor(self._cursor_at(start))  # keys and screen readers begin there
        self._filling = False
        self._to_mark = True
        self.scroll_to_mark()
        QTimer.singleShot(0, self, self.scroll_to_mark)  # again, once a pane that just opened has its size
        QTimer.singleShot(0, self, self._want_more)

    def forget(self) -> None:
        """Show nothing, and keep nothing of what was shown."""
        self._document_id, self._n_blocks, self._first = 0, 0, 0
        self._text, self._cuts, self._mark = "", [], (0, 0, 0)
        self._asked, self._to_mark = None, False
        self._refill.stop()
        self._fill()

    def add(self, part: TextLoaded) -> None:
        """Take blocks before or behind those that are here; what is too far away then leaves."""
        if part.document_id != self._document_id or part.first != self._asked:
            return
        self._asked = None
        if not part.cuts:
            return
        before = part.first < self._first
        offset, top = self._anchor()
        low, high = self._within_reach()
        moved = self._prepend(part) if before else self._append(part)
        moved += self._drop_end(high + moved) if before else self._drop_beginning(low)
        self._fill()
        if self._to_mark:
            self.scroll_to_mark()
        else:
            self._show_at(offset + moved, top)
        if len(self._text) < _MOST_CHARACTERS:  # else only reading on brings more
            self._want_more()

    def scroll_to_mark(self) -> None:
        """Bring the marked sentence into the upper third."""
        span = self._mark_span()
        if span is not None and self._to_mark:
            self._show_at(span[0], self.viewport().height() // 4)

    def _mark_span(self) -> tuple[int, int] | None:
        """Where the mark is in the text that is here; None while its block is not."""
        ordinal, offset, length = self._mark
        index = ordinal - self._first
        if not 0 <= index < len(self._cuts):
            return None
        start = self._cuts[index] + offset
        return start, start + length

    def _prepend(self, part: TextLoaded) -> int:
        """How far offsets move."""
        moved = len(part.text)
        self._cuts = [*part.cuts, *(cut + moved for cut in self._cuts)]
        self._text = part.text + self._text
        self._first = part.first
        return moved

    def _append(self, part: TextLoaded) -> int:
        self._cuts += [cut + len(self._text) for cut in part.cuts]
        self._text += part.text
        return 0

    def _drop_end(self, keep: int) -> int:
        """Let whole blocks behind the character ``keep`` go until the rest is small enough; how far offsets
        move.
        """
        while len(self._text) > _MAX_CHARACTERS and len(self._cuts) > 1 and self._cuts[-1] > keep:
            self._text = self._text[: self._cuts.pop()]
        return 0

    def _drop_beginning(self, keep: int) -> int:
        """The same with blocks before the character ``keep``."""
        n_gone = 0
        while (
            n_gone + 1 < len(self._cuts)
            and self._cuts[n_gone + 1] <= keep
            and len(self._text) - self._cuts[n_gone] > _MAX_CHARACTERS
        ):
            n_gone += 1
        gone = self._cuts[n_gone]
        self._text = self._text[gone:]
        self._cuts = [cut - gone for cut in self._cuts[n_gone:]]
        self._first += n_gone
        return -gone

    def _within_reach(self) -> tuple[int, int]:
        """First and last character that stay: those seen, and as many around as would be asked for."""
        height = self.viewport().height()
        mark = self._mark_span() if self._to_mark else None
        if mark is None:
            middle, top = self._anchor()[0], 0
        else:
            middle, top = mark[0], self.cursorRect(self._cursor_at(mark[0])).top() - height // 4
        low = self._offset_at(top - round((_BEHIND + _SPARE) * height))
        high = self._offset_at(top + round((1 + _AHEAD + _SPARE) * height))
        return max(low, middle - _MOST_CHARACTERS // 4), min(high, middle + _MOST_CHARACTERS * 3 // 4)

    # --- scrolling --------------------------------------------------------------------------------

    def resizeEvent(self, event: QResizeEvent) -> None:
        if self._filling:  # a scroll bar came or went
            super().resizeEvent(event)
            return
        if event.size().width() != event.oldSize().width() and self._manner in _WITH_TABLES:
            self._refill.start()
        offset, top = self._anchor()
        super().resizeEvent(event)
        if self._to_mark:
            self.scroll_to_mark()
        else:
            self._show_at(offset, top)
        self._want_more()

    def _scrolled(self) -> None:
        if not self._filling:
            self._to_mark = False
            self._want_more()

    def _want_more(self) -> None:
        """Ask for what follows before its place comes into view."""
        if self._asked is not None or not self._cuts:
            return
        at, height = self.verticalScrollBar().value(), self.viewport().height()
        behind = self._first + len(self._cuts)
        # Not the scroll bar's end, which is too near while Qt has not laid everything out.
        if behind < self._n_blocks and self.document().size().height() - at - height < _AHEAD * height:
            self._ask(behind, min(_LOAD_BLOCKS, self._n_blocks - behind))
        elif self._first > 0 and at < _BEHIND * height:
            first = max(0, self._first - _LOAD_BLOCKS)
            self._ask(first, self._first - first)

    def _ask(self, first: int, n_blocks: int) -> None:
        self._asked = first
        self.more_wanted.emit(first, n_blocks)

    def _anchor(self) -> tuple[int, int]:
        """The character at the upper left corner, as its offset in the text, and the top of its line."""
        if not self._stretches:
            return 0, 0
        offset = self._offset_at(0)
        return offset, self.cursorRect(self._cursor_at(offset)).top()

    def _offset_at(self, y: int) -> int:
        """The character at the left edge, ``y`` pixels below the view's upper edge; that may be out of
        sight.
        """
        position = self.cursorForPosition(QPoint(0, y)).position()
        at = bisect_right(self._stretches, position, key=lambda one: one.position) - 1
        if at < 0:
            return 0
        one = self._stretches[at]
        return min(one.end, one.start + position - one.position)

    def _cursor_at(self, offset: int) -> QTextCursor:
        cursor = QTextCursor(self.document())
        at = bisect_right(self._stretches, offset, key=lambda one: one.start) - 1
        if at >= 0:
            one = self._stretches[at]
            inside = self._text[one.start : min(offset, one.end)]
            cursor.setPosition(one.position + utf16_offsets(inside)[-1])
        return cursor

    def _show_at(self, offset: int, top: int) -> None:
        """Scroll so that the line of a character is ``top`` pixels below the view's upper edge."""
        self._filling = True
        bar = self.verticalScrollBar()
        bar.setValue(bar.value() + self.cursorRect(self._cursor_at(offset)).top() - top)
        self._filling = False

    # --- writing ----------------------------------------------------------------------------------

    def _restyle(self) -> None:
        offset, top = self._anchor()
        self._fill()
        if self._to_mark:
            self.scroll_to_mark()
        else:
            self._show_at(offset, top)

    def _fill(self) -> None:
        self._filling = True
        self._stretches = []
        self.clear()
        room = self.viewport().width() - 2 * self.document().documentMargin()
        self._stretches = write(
            self.document(), self._theme, self._text, self._manner, self._mark_span(), room
        )
        self._filling = False
