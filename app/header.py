"""The line above the page: what is shown, and the buttons that open the bars at its sides."""

from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.theme import Theme
from app.widgets import ElidedLabel, IconButton, TextButton


class Header(QWidget):
    def __init__(self, theme: Theme) -> None:
        super().__init__()
        row = QHBoxLayout(self)
        side = 16 if theme.kiosk else 8
        row.setContentsMargins(side, 8, side, 4)
        row.setSpacing(8)
        self.unfold = IconButton(theme, "left-bar", "Show the left bar (Ctrl+B)")
        self.title = ElidedLabel(theme, bold=True)
        self.title.setContentsMargins(8, 0, 0, 0)
        self.title.set_whole("Slipstream" if theme.kiosk else "New chat")
        self.toggle_right = IconButton(theme, "right-pane", "Show or hide the right pane (Ctrl+I)")
        self.restart = TextButton(
            theme, "Start over", icon_name="restart", tip="Clear this conversation and start over"
        )
        row.addWidget(self.unfold)
        row.addWidget(self.title, 1)
        row.addWidget(self.toggle_right)
        row.addWidget(self.restart)
        self.unfold.hide()
        self.toggle_right.setVisible(not theme.kiosk)
        self.restart.setVisible(theme.kiosk)
