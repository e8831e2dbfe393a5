"""The conversation, of any length: only the turns near the visible part have widgets."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, pairwise

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget

from app.theme import Theme
from app.turn_view import TurnView
from app.turns import TurnState

COLUMN_PX = 760
SIDE_PX = 24
BETWEEN_PX = 36
_SPARE = 6
"""Turns beyond the visible ones that keep their widgets."""


class MessageList(QAbstractScrollArea):
    """A scrolling column of turns. It keeps what is being read in place, and follows a running answer."""

    cited = Signal(object)
    opened = Signal(object)
    traced = Signal(object)
    spotted = Signal(object)
    inspected = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._turns: list[TurnState] = []
        self._heights: list[int] = []
        """Of each turn, in pixels: measured where it has been seen at this width, else estimated."""
        self._measured: list[bool] = []
        self._tops: list[int] = [0]
        self._views: dict[int, TurnView] = {}
        self._width = 0
        self._following = True
        self._placing = False
        self._chain: list[QWidget] = []
        """What Tab visits."""
        self.setObjectName("paper")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAccessibleName("Conversation")
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        theme.changed.connect(self.rebuild)

    @property
    def n_widgets(self) -> int:
        return len(self._views)

    def view_of(self, turn: TurnState) -> TurnView | None:
        """The widget of a turn, if it is near the visible part."""
        return self._views.get(self._turns.index(turn)) if turn in self._turns else None

    def set_turns(self, turns: Sequence[TurnState]) -> None:
        """Show another conversation, from its end."""
        self._turns = list(turns)
        self._following = True
        self.rebuild()

    def append(self, turn: TurnState) -> None:
        self._turns.append(turn)
        self._heights.append(self._estimate(turn))
        self._measured.append(False)
        self._following = True
        self._place()

    def refresh(self, turn: TurnState) -> None:
        """A turn changed."""
        if turn not in self._turns:
            return
        index = self._turns.index(turn)
        self._measured[index] = False
        view = self._views.get(index)
        if view is not None:
            view.refresh()
            self._order_tabs()  # it may have chips now, and marks on them
            self._place()

    def tick(self, turn: TurnState) -> None:
        """Time passed for a turn that is being read."""
        view = self.view_of(turn)
        if view is not None:
            view.tick()

    def show_turn(self, turn_id: int, block_id: str) -> bool:
        """Scroll to a turn and put the focus on one of its passages; False if it is not to be seen there."""
        index = next((n for n, turn in enumerate(self._turns) if turn.turn_id == turn_id), None)
        if index is None:
            return False
        self._following = False
        self._scroll_to(index)
        is_there = self._views[index].focus_passage(block_id)
        self._scroll_to(index)  # more of its chips may show now
        return is_there

    def rebuild(self) -> None:
        """Make all widgets anew: other turns, or other fonts and colours."""
        for view in self._views.values():
            view.hide()
            view.deleteLater()
        self._views.clear()
        self._forget_heights()
        self._place()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._column() != self._width:
            self._forget_heights()
        self._place()

    def scrollContentsBy(self, _dx: int, _dy: int) -> None:
        if self._placing:
            return
        bar = self.verticalScrollBar()
        self._following = bar.value() >= bar.maximum() - 2
        self._place()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        bar = self.verticalScrollBar()
        steps = {
            Qt.Key.Key_PageUp: -bar.pageStep(),
            Qt.Key.Key_PageDown: bar.pageStep(),
            Qt.Key.Key_Home: -bar.maximum(),
            Qt.Key.Key_End: bar.maximum(),
        }
        step = steps.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
        else:
            bar.setValue(bar.value() + step)

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            return True
        return super().viewportEvent(event)

    # --- placing ----------------------------------------------------------------------------------

    def _column(self) -> int:
        room = self.width() - 2 * SIDE_PX  # whether or not a scroll bar shows
        return max(200, min(self._theme.px(COLUMN_PX), room))

    def _estimate(self, turn: TurnState) -> int:
        per_line = max(1, self._column() // self._theme.px(8))
        return self._theme.px(200 + 22 * (len(turn.text) // per_line + 1))

    def _forget_heights(self) -> None:
        self._width = self._column()
        self._heights = [self._estimate(turn) for turn in self._turns]
        self._measured = [False] * len(self._turns)

    def _place(self) -> None:
        """Give the turns near the visible part widgets and places; keep the reader where he is."""
        if self._placing:
            return
        self._placing = True
        try:
            self._place_now()
        finally:
            self._placing = False

    def _place_now(self) -> None:
        bar = self.verticalScrollBar()
        page = self.viewport().height()
        anchor = self._index_at(bar.value())
        depth = bar.value() - self._tops[anchor] if anchor < len(self._tops) else 0
        for _ in range(8):  # measuring moves things, which may bring others into view
            self._sum_up()
            end = self._tops[-1]
            bar.setRange(0, max(0, end - page))
            bar.setPageStep(page)
            bar.setSingleStep(self._theme.px(40))
            top = bar.maximum() if self._following else self._tops[anchor] + depth
            bar.setValue(top)
            first = max(0, self._index_at(bar.value()))
            last = min(len(self._turns), self._index_at(bar.value() + page) + 1)
            if not self._measure(range(first, last)):
                break
        made = range(max(0, first - _SPARE), last + _SPARE)
        for index in [index for index in self._views if index not in made]:
            if not self._turns[index].running:
                view = self._views.pop(index)
                view.hide()
                view.deleteLater()
        left = max(SIDE_PX, (self.width() - self._width) // 2)
        for index, view in self._views.items():
            y = self._tops[index] - bar.value()
            view.setGeometry(left, y, self._width, self._heights[index])

    def _scroll_to(self, index: int) -> None:
        """Put a turn at the top, as far as what is below it allows."""
        for _ in range(4):  # what comes into view is measured, which moves the turn
            self._placing = True
            self.verticalScrollBar().setValue(self._tops[index] - SIDE_PX)
            self._placing = False
            before = self._tops[index]
            self._place()
            if self._tops[index] == before:
                break

    def _sum_up(self) -> None:
        heights = (height + BETWEEN_PX for height in self._heights)
        self._tops = list(accumulate(heights, initial=SIDE_PX))

    def _index_at(self, y: int) -> int:
        """The turn at a distance from the conversation's top."""
        return max(0, min(bisect_right(self._tops, y) - 1, len(self._turns) - 1))

    def _measure(self, wanted: range) -> bool:
        """Make and measure what is not; says whether anything turned out otherwise than estimated."""
        changed = created = False
        for index in wanted:
            view = self._views.get(index)
            if view is None:
                view = self._make(index)
                created = True
            if not self._measured[index]:
                height = view.fit(self._width)
                self._measured[index] = True
                changed = changed or height != self._heights[index]
                self._heights[index] = height
        if created:
            self._order_tabs()
        return changed

    def _make(self, index: int) -> TurnView:
        view = TurnView(self._theme, self._turns[index])
        view.setParent(self.viewport())
        view.cited.connect(self.cited)
        view.opened.connect(self.opened)
        view.traced.connect(self.traced)
        view.spotted.connect(self.spotted)
        view.inspected.connect(self.inspected)
        view.resized.connect(self.refresh)
        view.show()
        self._views[index] = view
        self._measured[index] = False
        return view

    def _order_tabs(self) -> None:
        """Tab visits the turns as they are read, whatever order they were made in."""
        chain = [one for index in sorted(self._views) for one in self._views[index].focus_chain()]
        if chain == self._chain:
            return
        self._chain = chain
        for one, other in pairwise(chain):
            QWidget.setTabOrder(one, other)
