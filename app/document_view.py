"""The tab that a citation opens: its document at the place, as a page or as text."""

from PySide6.QtCore import QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from app.page_view import PageView
from app.reading_text import is_wide
from app.reading_view import ReadingView
from app.theme import SMALL_PX, Theme
from app.widgets import ElidedLabel, IconButton, Label, TextButton
from core.types import PageLoaded, PassageText, TextLoaded

_PDF = "application/pdf"


class DocumentView(QWidget):
    page_wanted = Signal(int, int, int, str, str)
    """Document, page, width in pixels, block id and quote: what `Service.request_page` takes."""
    text_wanted = Signal(int, int, int)
    """Document, first block and number of blocks: what `Service.request_text` takes."""
    room_wanted = Signal()
    """`wants_room` may have changed."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._passage: PassageText | None = None
        self._as_text = False
        """What the user chose for documents that have pages."""
        self._text_is_old = False
        """The text is laid out only when it is to be seen."""
        self._wide: bool | None = None
        """What the user chose; None: pages get room, text does not need it."""
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 12, 0, 0)
        column.setSpacing(4)
        column.addLayout(self._head())
        self._bar = self._page_bar()
        column.addWidget(self._bar)
        self.problem = Label(theme, kind="muted", size=SMALL_PX)
        self.problem.setContentsMargins(16, 4, 16, 4)
        self.problem.hide()
        column.addWidget(self.problem)
        self.text = ReadingView(theme)
        self.text.more_wanted.connect(self._want_text)
        self.pages = PageView(theme)
        self.pages.wanted.connect(self._want_page)
        self.pages.turned.connect(self._show_number)
        self._stack = QStackedWidget()
        self._stack.setObjectName("reading")
        self._stack.addWidget(self.text)
        self._stack.addWidget(self.pages)
        column.addWidget(self._stack, 1)
        self._bar.hide()

    def _head(self) -> QHBoxLayout:
        theme = self._theme
        head = QHBoxLayout()
        head.setContentsMargins(16, 0, 8, 0)
        head.setSpacing(4)
        titles = QVBoxLayout()
        titles.setSpacing(0)
        self.title = ElidedLabel(theme, bold=True)
        self.place = ElidedLabel(theme, kind="muted", size=SMALL_PX)
        titles.addWidget(self.title)
        titles.addWidget(self.place)
        head.addLayout(titles, 1)
        self.mode = TextButton(theme, "Text", tip="Read its text instead of its pages")
        self.mode.clicked.connect(self._switch)
        self.mode.hide()
        head.addWidget(self.mode)
        self.wider = IconButton(theme, "wider", "Make this pane wider")
        self.wider.clicked.connect(self._toggle_wide)
        self.wider.setVisible(not theme.kiosk)
        head.addWidget(self.wider)
        self.open = IconButton(theme, "open", "Open the file in its own program")
        self.open.clicked.connect(self._open)
        self.open.setVisible(not theme.kiosk)
        head.addWidget(self.open)
        return head

    def _page_bar(self) -> QWidget:
        theme = self._theme
        bar = QWidget()
        row = QHBoxLayout(bar)
        row.setContentsMargins(8, 0, 8, 0)
        row.setSpacing(4)
        self.previous = IconButton(theme, "previous", "Previous page (←)")
        self.previous.clicked.connect(lambda: self.pages.turn(self.pages.page - 1))
        self.number = Label(theme, kind="muted", size=SMALL_PX)
        self.number.setWordWrap(False)
        self.next = IconButton(theme, "next", "Next page (→)")
        self.next.clicked.connect(lambda: self.pages.turn(self.pages.page + 1))
        row.addWidget(self.previous)
        row.addWidget(self.number)
        row.addWidget(self.next)
        row.addStretch(1)
        for name, words, steps in (
            ("smaller", "Smaller (−)", -1),
            ("fit", "Fit the width (0)", 0),
            ("larger", "Larger (+)", 1),
        ):
            button = IconButton(theme, name, words)
            button.clicked.connect(lambda _checked=False, by=steps: self.pages.zoom(by))
            row.addWidget(button)
        return bar

    # --- what is shown ----------------------------------------------------------------------------

    @property
    def wants_room(self) -> bool:
        """Whether the pane should be wide: a page is small print in a narrow one."""
        if self._wide is not None:
            return self._wide
        return self._shows_pages or (self._passage is not None and is_wide(self._passage.title))

    @property
    def _shows_pages(self) -> bool:
        return self._stack.currentWidget() is self.pages

    def show_passage(self, passage: PassageText) -> None:
        same = self._passage is not None and self._passage.document_id == passage.document_id
        self._passage = passage
        self.title.set_whole(passage.title)
        self.title.setToolTip(passage.path)
        self.problem.hide()
        has_pages = passage.media_type == _PDF
        self.mode.setVisible(has_pages)
        self._text_is_old = True
        self._show_pages(has_pages and not self._as_text)
        if self._shows_pages:
            self.pages.open(passage.page or 1, passage.n_pages, same_document=same)

    def forget(self) -> None:
        """Show nothing, and keep nothing of what was shown: its document is gone, or its reader."""
        self._passage = None
        self._text_is_old = False
        self.text.forget()
        self.pages.forget()
        for line in (self.title, self.place):
            line.set_whole("")
        self.title.setToolTip("")
        self.mode.hide()
        self.problem.hide()
        self.room_wanted.emit()

    @property
    def document_id(self) -> int | None:
        """Of what is shown."""
        return None if self._passage is None else self._passage.document_id

    def take(self, event: PageLoaded | TextLoaded) -> None:
        """What was wanted has come. What belongs to another document or passage by now is left out."""
        if self._passage is None or event.document_id != self._passage.document_id:
            return
        if isinstance(event, TextLoaded):
            if not self._text_is_old:
                self.text.add(event)
        elif (event.block_id, event.quote) != (self._passage.block_id, self._passage.quote):
            return  # its marks are not the ones to scroll to; those are on their way
        elif event.image is not None:
            self.pages.show_page(event.image)
        elif self._shows_pages and event.page == self.pages.page:
            self.pages.stop()
            self._show_pages(False)
            self.problem.setText(f"{event.message} {event.hint}".strip())
            self.problem.show()

    def _show_pages(self, shown: bool) -> None:
        self._stack.setCurrentWidget(self.pages if shown else self.text)
        if not shown and self._text_is_old and self._passage is not None:
            self._text_is_old = False
            self.text.show_passage(self._passage)
        self._bar.setVisible(shown)
        self.mode.setText("Text" if shown else "Page")
        tip = "Read its text instead of its pages" if shown else "See its pages instead of its text"
        self.mode.setToolTip(tip)
        self.mode.setAccessibleName(tip)
        self.place.set_whole(self._where())
        self.place.setVisible(bool(self._where()) and not shown)
        self._show_wide()
        self.room_wanted.emit()

    def _where(self) -> str:
        """The place in words: the page, the slide, or the heading above it."""
        passage = self._passage
        if passage is None:
            return ""
        parts = []
        if passage.page is not None:
            word = "Page" if passage.media_type == _PDF or not passage.n_pages else "Slide"
            of = f" of {passage.n_pages:,}" if passage.n_pages else ""
            parts.append(f"{word} {passage.page:,}{of}")
        if passage.heading:
            parts.append(passage.heading)
        return " · ".join(parts)

    def _show_number(self, page: int, n_pages: int) -> None:
        self.number.setText(f"Page {page:,} of {n_pages:,}")
        self.previous.setEnabled(page > 1)
        self.next.setEnabled(page < n_pages)

    # --- wishes -----------------------------------------------------------------------------------

    def _want_page(self, page: int, width_px: int) -> None:
        if self._passage is not None and self._shows_pages:
            one = self._passage
            self.page_wanted.emit(one.document_id, page, width_px, one.block_id, one.quote)

    def _want_text(self, first: int, n_blocks: int) -> None:
        if self._passage is not None:
            self.text_wanted.emit(self._passage.document_id, first, n_blocks)

    def _switch(self) -> None:
        self._as_text = self._shows_pages
        self.problem.hide()
        self._show_pages(not self._as_text)
        if self._passage is not None and self._shows_pages:
            self.pages.open(self._passage.page or 1, self._passage.n_pages, same_document=True)

    def _toggle_wide(self) -> None:
        self._wide = not self.wants_room
        self._show_wide()
        self.room_wanted.emit()

    def _show_wide(self) -> None:
        self.wider.set_icon("narrower" if self.wants_room else "wider", "muted")
        self.wider.set_words("Make this pane narrower" if self.wants_room else "Make this pane wider")

    def _open(self) -> None:
        if self._passage is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(self._passage.path))
