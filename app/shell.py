"""Where the columns stand: left bar, centre, right pane. In a narrow window the pane lies over the centre."""

from PySide6.QtCore import QRect, Qt, Signal
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QWidget

from app.theme import HEADING_PX, Theme

LEFT_PX = 240
RIGHT_PX = 340
OVERLAY_BELOW_PX = 1100
"""At normal text size; larger text needs a wider window."""

WIDE_PX = 640
"""Of the pane while a page is read, where the window has room: half of it at most."""
_CENTRE_PX = 380
"""Stay to the centre beside a wide pane."""
_GRIP_PX = 6


class Grip(QWidget):
    """The edge of the right pane: drag it to make the pane wider or narrower."""

    dragged = Signal(int)
    """Carries the x in the shell where the pane is to begin."""

    def __init__(self, shell: QWidget) -> None:
        super().__init__(shell)
        self.setCursor(Qt.CursorShape.SplitHCursor)
        self.setToolTip("Drag to change the width of the pane")
        self.setAccessibleName("Edge of the right pane")

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.dragged.emit(round(self.mapToParent(event.position()).x()))


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
        self._wide = False
        self._dragged_px: int | None = None
        """Width that the user gave the wide pane."""
        self._grip = Grip(self)
        self._grip.dragged.connect(self._drag)
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

    def show_wide(self, wide: bool) -> None:
        """Whether the right pane shows something that needs room."""
        if wide != self._wide:
            self._wide = wide
            self.place()

    def _drag(self, x: int) -> None:
        self._dragged_px = self.width() - x
        self._wide = True
        self.place()

    def _right_width(self, left: int) -> int:
        if self._theme.kiosk:
            return self.width()
        narrow = min(self._theme.px(RIGHT_PX), self.width() - 80)
        if not self._wide:
            return narrow
        most = self.width() - 80
        wide = self._theme.px(WIDE_PX)
        if not self.overlays:
            most = min(self.width() // 2, self.width() - left - self._theme.px(_CENTRE_PX))
        return max(narrow, min(self._dragged_px or wide, most))

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
        right = self._right_width(left + bool(left))
        taken = right if self.right_shown and not self.overlays else 0
        self.left.setVisible(self.left_shown)
        self.right.setVisible(self.right_shown)
        self.left.setGeometry(0, 0, left, height)
        start = left + bool(left)
        self.centre.setGeometry(start, 0, width - start - taken, height)
        self.right.setGeometry(QRect(width - right, 0, right, height))
        if self.right_shown:
            self.right.raise_()
        self._grip.setVisible(self.right_shown and not self._theme.kiosk)
        self._grip.setGeometry(width - right - _GRIP_PX // 2, 0, _GRIP_PX, height)
        self._grip.raise_()
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
