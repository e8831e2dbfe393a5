"""Where the columns stand: left bar, centre, right pane. In a narrow window the pane lies over the centre."""

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QWidget

from app.theme import HEADING_PX, Theme

LEFT_PX = 240
RIGHT_PX = 340
OVERLAY_BELOW_PX = 1100
"""At normal text size; larger text needs a wider window."""


class Shell(QWidget):
    """Places its columns by hand, since one of them may overlap."""

    def __init__(self, theme: Theme, left: QWidget, centre: QWidget, right: QWidget) -> None:
        super().__init__()
        self._theme = theme
        self.left, self.centre, self.right = left, centre, right
        for part in (left, centre, right):
            part.setParent(self)
        self.left_shown = not theme.kiosk
        self.right_shown = False
        self._was_narrow = False
        self._reopen = False
        """Whether the pane was open before the window became narrow."""
        self._drop = QLabel("Drop to add to the library", self)
        self._drop.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._drop.hide()
        theme.changed.connect(self.place)

    @property
    def overlays(self) -> bool:
        """Whether the right pane lies over the centre at this width."""
        return self._theme.kiosk or self.width() < self._theme.px(OVERLAY_BELOW_PX)

    def show_left(self, shown: bool) -> None:
        self.left_shown = shown and not self._theme.kiosk
        self.place()

    def show_right(self, shown: bool) -> None:
        self.right_shown = shown
        self.place()

    def show_drop(self, shown: bool) -> None:
        self._drop.setFont(self._theme.font(HEADING_PX, bold=True))
        tokens = self._theme.tokens
        self._drop.setStyleSheet(
            f"background: {tokens.surface}; color: {tokens.text}; border: 2px dashed {tokens.accent};"
            " border-radius: 12px;"
        )
        self._drop.setVisible(shown)
        self._drop.raise_()

    def place(self) -> None:
        width, height = self.width(), self.height()
        left = self._theme.px(LEFT_PX) if self.left_shown else 0
        right = width if self._theme.kiosk else min(self._theme.px(RIGHT_PX), width - 80)
        taken = right if self.right_shown and not self.overlays else 0
        self.left.setVisible(self.left_shown)
        self.right.setVisible(self.right_shown)
        self.left.setGeometry(0, 0, left, height)
        start = left + bool(left)
        self.centre.setGeometry(start, 0, width - start - taken, height)
        self.right.setGeometry(QRect(width - right, 0, right, height))
        if self.right_shown:
            self.right.raise_()
        self._drop.setGeometry(self.rect().adjusted(16, 16, -16, -16))
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.overlays and not self._was_narrow:  # it would hide what is being read
            self._reopen, self.right_shown = self.right_shown, False
        elif self._was_narrow and not self.overlays:
            self.right_shown = self.right_shown or self._reopen
        self._was_narrow = self.overlays
        self.place()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), QColor(self._theme.tokens.border))  # the line beside the left bar
        painter.end()
