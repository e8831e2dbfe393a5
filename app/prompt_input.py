"""Where a question is written: grows to eight lines, scope at its left, send or stop at its right."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QVBoxLayout

from app.scope_picker import ScopeChip
from app.theme import READING_PX, Theme
from app.widgets import IconButton, Label

MAX_LINES = 8


class QuestionEdit(QPlainTextEdit):
    """Enter sends, Shift+Enter starts a new line."""

    entered = Signal()
    focused = Signal(bool)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setPlaceholderText("Ask your documents")
        self.setAccessibleName("Question")
        self.setToolTip("Enter sends, Shift+Enter starts a new line")
        self.setTabChangesFocus(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setAcceptDrops(False)  # files dropped here are for the library
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().setDocumentMargin(2)
        self.setViewportMargins(7, 0, 0, 0)
        self.textChanged.connect(self.grow)
        theme.changed.connect(self._set_font)
        self._set_font()

    def grow(self) -> None:
        """As tall as the text, up to `MAX_LINES`."""
        lines = max(1, min(MAX_LINES, round(self.document().size().height())))
        self.setFixedHeight(lines * self.fontMetrics().lineSpacing() + 8)
        over = self.document().size().height() > MAX_LINES
        always, never = Qt.ScrollBarPolicy.ScrollBarAsNeeded, Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        self.setVerticalScrollBarPolicy(always if over else never)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.grow()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.entered.emit()
            return
        super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focused.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focused.emit(False)

    def _set_font(self) -> None:
        self.setFont(self._theme.font(READING_PX))
        self.grow()


class PromptInput(QFrame):
    """The input box. It never loses text: a question leaves it only when it was taken."""

    submitted = Signal(str)
    """The user wants to send this text; `clear` it once it is taken."""
    stopped = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._running = False
        self.setObjectName("inputBox")
        column = QVBoxLayout(self)
        column.setContentsMargins(6, 10, 8, 8)
        column.setSpacing(4)
        self.edit = QuestionEdit(theme)
        self.edit.entered.connect(self._submit)
        self.edit.focused.connect(self._show_focus)
        self.edit.textChanged.connect(self._enable)
        column.addWidget(self.edit)
        row = QHBoxLayout()
        row.setSpacing(8)
        self.scope = ScopeChip(theme)
        self.scope.setVisible(not theme.kiosk)
        row.addWidget(self.scope)
        self.message = Label(theme, kind="muted")
        self.message.setAlignment(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight)
        row.addWidget(self.message, 1)
        self.button = IconButton(theme, "send", "Send (Enter)", role="on_accent")
        self.button.clicked.connect(self._press)
        row.addWidget(self.button)
        column.addLayout(row)
        self.set_running(False)

    @property
    def text(self) -> str:
        return self.edit.toPlainText()

    def set_text(self, text: str) -> None:
        self.edit.setPlainText(text)
        self.edit.moveCursor(self.edit.textCursor().MoveOperation.End)

    def clear(self) -> None:
        self.edit.clear()
        self.say("")

    def say(self, words: str) -> None:
        """Why a question cannot be sent just now, beside the button."""
        self.message.setText(words)

    def set_running(self, running: bool) -> None:
        """Turn the send button into a stop button, or back."""
        self._running = running
        self.button.setObjectName("stop" if running else "send")
        self.button.set_words("Stop (Esc)" if running else "Send (Enter)")
        self.button.set_icon("stop" if running else "send", "background" if running else "on_accent")
        self.button.style().unpolish(self.button)
        self.button.style().polish(self.button)
        self._enable()
        if not running:
            self.say("")

    def _enable(self) -> None:
        empty = not self.text.strip()
        self.button.setEnabled(self._running or not empty)
        role = "background" if self._running else "muted" if empty else "on_accent"
        self.button.set_icon("stop" if self._running else "send", role)

    def _press(self) -> None:
        if self._running:
            self.stopped.emit()
        else:
            self._submit()

    def _submit(self) -> None:
        if self.text.strip():
            self.submitted.emit(self.text.strip())

    def _show_focus(self, focused: bool) -> None:
        self.setProperty("active", focused)
        self.style().unpolish(self)
        self.style().polish(self)
