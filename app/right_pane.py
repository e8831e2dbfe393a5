"""The right pane: Sources, Document and Inspector of the selected answer."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QTextBlockFormat, QTextCursor
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QTabBar, QVBoxLayout, QWidget

from app.document_view import DocumentView
from app.inspector import Inspector
from app.reading_view import Reading
from app.theme import INTERFACE_PX, SMALL_PX, Theme
from app.turns import TurnState
from app.widgets import EmptyState, IconButton, TextButton
from app.wording import place_name, standing_words, unwrapped
from core.types import CacheState, DocumentInfo, PassageText, SessionTotals

SOURCES, DOCUMENT, INSPECTOR = range(3)
_OPEN = "passage"


class SourcesTab(Reading):
    """Every passage of the answer, whole, with the sentence that matched best."""

    opened = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Passages of this answer")
        self._turn: TurnState | None = None
        self._shown: tuple[object, ...] = ()

    def show_turn(self, turn: TurnState | None) -> None:
        passages = turn.passages if turn is not None else ()
        numbers = [turn.number_of(one) for one in passages] if turn is not None else []
        stand = [turn.standing_of(one) for one in passages] if turn is not None else []
        shown = (passages, tuple(numbers), tuple(stand), self._theme.tokens, self._theme.scale)
        if shown == self._shown:
            return
        self._shown, self._turn = shown, turn
        self.clear()
        cursor = self.textCursor()
        cursor.beginEditBlock()
        for index, passage in enumerate(passages):
            above = QTextBlockFormat()
            above.setTopMargin(20 if index else 0)
            above.setBottomMargin(4)
            if index:
                cursor.insertBlock()
            cursor.setBlockFormat(above)
            if numbers[index]:
                cursor.insertText(f"{numbers[index]}  ", self.normal(SMALL_PX, bold=True, role="accent"))
            link = self.normal(SMALL_PX, bold=True)
            link.setAnchor(True)
            link.setAnchorHref(f"{_OPEN}:{index}")
            link.setToolTip("Show it in the document")
            link.setFontUnderline(True)
            cursor.insertText(place_name(passage.place.title, passage.place.page), link)
            if (standing := stand[index]) is not None and not self._theme.kiosk:
                cursor.insertText(f"  {standing_words(standing)}", self.normal(SMALL_PX, role="muted"))
            text = QTextBlockFormat()
            height = self._theme.px(INTERFACE_PX) * 1.5
            text.setLineHeight(height, QTextBlockFormat.LineHeightTypes.MinimumHeight.value)
            cursor.insertBlock(text)
            end = passage.quote_start + len(passage.quote)
            words = unwrapped(passage.block.text)
            self.write_marked(cursor, words, passage.quote_start, end, INTERFACE_PX)
        cursor.endEditBlock()
        self.moveCursor(QTextCursor.MoveOperation.Start)

    def follow(self, url: QUrl) -> None:
        if url.scheme() == _OPEN and self._turn is not None:
            self.opened.emit(self._turn.passages[int(url.path())])


class RightPane(QWidget):
    closed = Signal()
    opened = Signal(object)
    """Carries the `Passage` that is to be shown in its document."""
    traced = Signal(object)
    """Carries the `Standing` whose earlier turn is to be shown."""
    spotted = Signal(object)
    """Carries the `Spot` that is to be shown in its document."""
    widened = Signal(bool)
    """Whether what is shown needs a wide pane."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("rightPane")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._turn: TurnState | None = None
        column = QVBoxLayout(self)
        column.setContentsMargins(1, 8, 0, 0)  # beside the line at its left
        column.setSpacing(0)
        head = QHBoxLayout()
        head.setContentsMargins(16, 0, 8, 0)
        self.tabs = QTabBar()
        self.tabs.setExpanding(False)
        self.tabs.setUsesScrollButtons(False)
        self.tabs.setAccessibleName("Right pane")
        for words, tip in (
            ("Sources", "The passages of this answer"),
            ("Document", "The place a citation points to"),
            ("Inspector", "What this question cost and saved"),
        ):
            self.tabs.setTabToolTip(self.tabs.addTab(words), tip)
        head.addWidget(self.tabs, 1)
        words = "Back" if theme.kiosk else "Hide this pane (Ctrl+I)"
        self.close_button = IconButton(theme, "back" if theme.kiosk else "close", words)
        self.close_button.clicked.connect(self.closed)
        head.addWidget(self.close_button)
        if theme.kiosk:
            self.tabs.hide()
            back = TextButton(theme, "Back", icon_name="back", tip="Back to the answer")
            back.clicked.connect(self.closed)
            self.close_button.hide()
            head.addWidget(back)
            head.addStretch(1)
        column.addLayout(head)

        self.sources = SourcesTab(theme)
        self.sources.opened.connect(self.opened)
        self.document = DocumentView(theme)
        self.document.room_wanted.connect(self._tell_width)
        self.inspector = Inspector(theme)
        self.inspector.standing.traced.connect(self.traced)
        self.inspector.standing.spotted.connect(self.spotted)
        self._no_sources = EmptyState(
            theme, "The passages that an answer rests on appear here with your first question.", None
        )
        self._no_document = EmptyState(
            theme, "Click a source, or a number in an answer, to read it in its document.", None
        )
        self._stack = QStackedWidget()
        for page in (self.sources, self.document, self.inspector, self._no_sources, self._no_document):
            self._stack.addWidget(page)
        column.addWidget(self._stack, 1)
        self._has_document = False
        self.tabs.currentChanged.connect(self._show)
        theme.changed.connect(self._refresh)
        self.show_tab(INSPECTOR)

    @property
    def turn(self) -> TurnState | None:
        return self._turn

    def show_tab(self, tab: int) -> None:
        self.tabs.setCurrentIndex(tab)
        self._show(tab)

    def show_turn(self, turn: TurnState | None) -> None:
        self._turn = turn
        self._refresh()

    def show_passage(self, passage: PassageText) -> None:
        self._has_document = True
        self.show_tab(DOCUMENT)
        self.document.show_passage(passage)

    def keep_only(self, documents: Sequence[DocumentInfo]) -> None:
        """Let go of the document that is shown, unless it is one of these."""
        if self.document.document_id not in (None, *(one.id for one in documents)):
            self.forget_document()

    def forget_document(self) -> None:
        self._has_document = False
        self.document.forget()
        self._show(self.tabs.currentIndex())

    def tick(self, turn: TurnState) -> None:
        """Time passed for a turn that is being read."""
        if turn is self._turn and self.inspector.isVisible():
            self.inspector.show_turn(turn)

    def set_kept(self, state: CacheState) -> None:
        self.inspector.set_kept(state)

    def set_idle_work(self, sentences: Sequence[str]) -> None:
        self.inspector.set_idle_work(sentences)

    def set_totals(self, totals: SessionTotals) -> None:
        self.inspector.set_totals(totals)

    def _refresh(self) -> None:
        self.sources.show_turn(self._turn)
        self.inspector.show_turn(self._turn)
        self._show(self.tabs.currentIndex())

    def _show(self, tab: int) -> None:
        page: QWidget = (self.sources, self.document, self.inspector)[tab]
        if tab == SOURCES and (self._turn is None or not self._turn.passages):
            page = self._no_sources
        elif tab == DOCUMENT and not self._has_document:
            page = self._no_document
        self._stack.setCurrentWidget(page)
        self._tell_width()

    def _tell_width(self) -> None:
        in_document = self._stack.currentWidget() is self.document
        self.widened.emit(in_document and self.document.wants_room)
