"""Reads documents: plain text with a marked sentence, and whole documents loaded around the place."""

from bisect import bisect_right

from PySide6.QtCore import QTimer, Signal
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
"""Stand in the view at most: laying out more would be felt. What is far away leaves it again."""

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

    def add(self, part: TextLoaded) -> None:
        """Take blocks before or behind those that are here; what is too far away then leaves."""
        if part.document_id != self._document_id or part.first != self._asked:
            return
        self._asked = None
        if not part.cuts:
            return
        before = part.first < self._first
        offset, top = self._anchor()
        moved = self._prepend(part) if before else self._append(part)
        moved += self._drop(at_end=before)
        self._fill()
        if self._to_mark:
            self.scroll_to_mark()
        else:
            self._show_at(offset + moved, top)
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

    def _drop(self, *, at_end: bool) -> int:
        """Let whole blocks go until the rest is small enough; how far offsets move."""
        if at_end:
            while len(self._text) > _MAX_CHARACTERS and len(self._cuts) > 1:
                self._text = self._text[: self._cuts.pop()]
            return 0
        n_gone = 0
        while len(self._text) - self._cuts[n_gone] > _MAX_CHARACTERS and n_gone < len(self._cuts) - 1:
            n_gone += 1
        gone = self._cuts[n_gone]
        self._text = self._text[gone:]
        self._cuts = [cut - gone for cut in self._cuts[n_gone:]]
        self._first += n_gone
        return -gone

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

    def _scrolled(self) -> None:
        if not self._filling:
            self._to_mark = False
            self._want_more()

    def _want_more(self) -> None:
        """Ask for what follows before its place comes into view."""
        if self._asked is not None or not self._cuts:
            return
        bar, height = self.verticalScrollBar(), self.viewport().height()
        behind = self._first + len(self._cuts)
        if behind < self._n_blocks and bar.value() > bar.maximum() - 2 * height:
            self._ask(behind, min(_LOAD_BLOCKS, self._n_blocks - behind))
        elif self._first > 0 and bar.value() < height:
            first = max(0, self._first - _LOAD_BLOCKS)
            self._ask(first, self._first - first)

    def _ask(self, first: int, n_blocks: int) -> None:
        self._asked = first
        self.more_wanted.emit(first, n_blocks)

    def _anchor(self) -> tuple[int, int]:
        """The character at the upper left corner, as its offset in the text, and the top of its line."""
        cursor = self.cursorForPosition(self.viewport().rect().topLeft())
        at = bisect_right(self._stretches, cursor.position(), key=lambda one: one.position) - 1
        if at < 0:
            return 0, self.cursorRect(cursor).top()
        one = self._stretches[at]
        offset = min(one.end, one.start + cursor.position() - one.position)
        return offset, self.cursorRect(self._cursor_at(offset)).top()

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
