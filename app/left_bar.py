"""The left bar: new chat, library, conversations, settings."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from app.conversation_list import ConversationList
from app.theme import SMALL_PX, Theme
from app.widgets import IconButton, Label, TextButton
from core.types import ConversationsChanged


class LeftBar(QWidget):
    new_chat = Signal()
    library = Signal()
    settings = Signal()
    collapsed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("bar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 8, 0, 8)
        column.setSpacing(2)

        head = QHBoxLayout()
        head.setContentsMargins(16, 0, 8, 8)
        head.addWidget(Label(theme, "Slipstream", bold=True), 1)
        self.fold = IconButton(theme, "left-bar", "Hide this bar (Ctrl+B)")
        self.fold.clicked.connect(self.collapsed)
        head.addWidget(self.fold)
        column.addLayout(head)

        self.new_button = TextButton(
            theme, "New chat", kind="quiet", icon_name="new", tip="Start a new conversation (Ctrl+N)"
        )
        self.new_button.clicked.connect(self.new_chat)
        self.library_button = TextButton(
            theme, "Library", kind="quiet", icon_name="library", tip="Your documents (Ctrl+L)"
        )
        self.library_button.setCheckable(True)
        self.library_button.clicked.connect(self.library)
        self.settings_button = TextButton(
            theme, "Settings", kind="quiet", icon_name="settings", tip="Model, theme, text size (Ctrl+,)"
        )
        self.settings_button.clicked.connect(self.settings)
        column.addLayout(_inset(self.new_button))
        column.addLayout(_inset(self.library_button))

        heading = Label(theme, "Conversations", kind="muted", size=SMALL_PX)
        heading.setContentsMargins(16, 16, 16, 4)
        column.addWidget(heading)
        self.conversations = ConversationList(theme)
        self._empty = Label(theme, "What you ask will be kept here.", kind="muted", size=SMALL_PX)
        self._empty.setContentsMargins(16, 0, 16, 0)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._stack = QStackedWidget()
        self._stack.addWidget(self._empty)
        self._stack.addWidget(self.conversations)
        column.addWidget(self._stack, 1)
        column.addLayout(_inset(self.settings_button))

    def set_conversations(self, event: ConversationsChanged, current: int | None) -> None:
        self.conversations.rows.set_conversations(event.conversations)
        self._stack.setCurrentIndex(1 if event.conversations else 0)
        self.conversations.show_current(current)

    def show_place(self, *, library: bool, conversation_id: int | None) -> None:
        """Mark where the user is."""
        self.library_button.setChecked(library)
        self.conversations.show_current(None if library else conversation_id)


def _inset(widget: QWidget) -> QHBoxLayout:
    row = QHBoxLayout()
    row.setContentsMargins(8, 0, 8, 0)
    row.addWidget(widget)
    return row
