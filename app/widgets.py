"""Small parts that several pages share: buttons with tinted icons, labels, empty states, errors."""

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QMenu,
    QMessageBox,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.icons import icon
from app.theme import HEADING_PX, INTERFACE_PX, Theme

GAP = 8
MARGIN = 16


class IconButton(QToolButton):
    """A square button: an icon, a tooltip, and the same words for a screen reader."""

    def __init__(self, theme: Theme, name: str, words: str, *, role: str = "muted") -> None:
        super().__init__()
        self._theme = theme
        self._name = name
        self._role = role
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.set_words(words)
        self._tint()
        theme.changed.connect(self._tint)

    def set_words(self, words: str) -> None:
        self.setToolTip(words)
        self.setAccessibleName(words)

    def set_icon(self, name: str, role: str) -> None:
        self._name, self._role = name, role
        self._tint()

    def _tint(self) -> None:
        size = self._theme.px(18)
        self.setIconSize(QSize(size, size))
        self.setIcon(icon(self._name, getattr(self._theme.tokens, self._role), size))


class TextButton(QPushButton):
    """A button with words, and an icon where it helps. ``kind`` names its rule in the stylesheet."""

    def __init__(
        self, theme: Theme, words: str, *, kind: str = "", icon_name: str = "", tip: str = ""
    ) -> None:
        super().__init__(words)
        self._theme = theme
        self._icon_name = icon_name
        self.setObjectName(kind)
        self.setToolTip(tip or words)
        self.setAccessibleName(words)
        self.setAutoDefault(False)
        self._tint()
        theme.changed.connect(self._tint)

    def _tint(self) -> None:
        if not self._icon_name:
            return
        size = self._theme.px(16)
        role = "on_accent" if self.objectName() == "primary" else "muted"
        self.setIconSize(QSize(size, size))
        self.setIcon(icon(self._icon_name, getattr(self._theme.tokens, role), size))


class Label(QLabel):
    """Plain text only: what documents and models say is never read as markup."""

    def __init__(
        self, theme: Theme, text: str = "", *, kind: str = "", size: int = INTERFACE_PX, bold: bool = False
    ) -> None:
        super().__init__(text)
        self._theme, self._size, self._bold = theme, size, bold
        self.setObjectName(kind)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(True)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        self._set_font()
        theme.changed.connect(self._set_font)

    def _set_font(self) -> None:
        self.setFont(self._theme.font(self._size, bold=self._bold))


class ElidedLabel(Label):
    """One line that gives way in the middle when there is no room; the tooltip has it whole."""

    def __init__(self, theme: Theme, *, kind: str = "", size: int = INTERFACE_PX, bold: bool = False) -> None:
        super().__init__(theme, kind=kind, size=size, bold=bold)
        self._whole = ""
        self.setWordWrap(False)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def set_whole(self, text: str) -> None:
        self._whole = text
        self.setToolTip(text)
        self.setAccessibleName(text)
        self._elide()

    def resizeEvent(self, event: object) -> None:  # noqa: ARG002
        self._elide()

    def _elide(self) -> None:
        self.setText(
            self.fontMetrics().elidedText(self._whole, Qt.TextElideMode.ElideMiddle, max(0, self.width()))
        )


class Problem(QFrame):
    """An error: what happened and was kept, what to do, and the technical cause on demand."""

    resized = Signal()
    """Details were opened or closed."""

    def __init__(self, theme: Theme, message: str, hint: str = "", details: str = "") -> None:
        super().__init__()
        self.setObjectName("problem")
        self.setAccessibleName(f"{message} {hint}".strip())
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 12)
        column.setSpacing(4)
        self.message = Label(theme, message, bold=True)
        column.addWidget(self.message)
        if hint:
            column.addWidget(Label(theme, hint))
        self._details = Label(theme, details.strip(), kind="muted", size=12)
        self._details.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self._details.hide()
        self.buttons = QHBoxLayout()
        self.buttons.setContentsMargins(0, 4, 0, 0)
        self.buttons.setSpacing(GAP)
        self._toggle = TextButton(theme, "Details", tip="Show the technical cause")
        self._toggle.setCheckable(True)
        self._toggle.setVisible(bool(details.strip()))
        self._toggle.toggled.connect(self._show_details)
        self.buttons.addWidget(self._toggle)
        self.buttons.addStretch(1)
        column.addLayout(self.buttons)
        column.addWidget(self._details)

    def add_button(self, button: QPushButton) -> None:
        self.buttons.insertWidget(0, button)

    def _show_details(self, shown: bool) -> None:
        self._details.setVisible(shown)
        self.resized.emit()


class EmptyState(QWidget):
    """One sentence and one button, in the middle of the space a list would fill."""

    def __init__(self, theme: Theme, sentence: str, button: TextButton | None, *, title: str = "") -> None:
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 24, 24, 24)
        column.setSpacing(12)
        column.addStretch(2)
        if title:
            heading = Label(theme, title, size=HEADING_PX, bold=True)
            heading.setAlignment(Qt.AlignmentFlag.AlignHCenter)
            column.addWidget(heading)
        self.sentence = Label(theme, sentence, kind="muted")
        self.sentence.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        column.addWidget(self.sentence)
        if button is not None:
            column.addWidget(button, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addStretch(3)


def copy_text(text: str) -> None:
    QGuiApplication.clipboard().setText(text)


def menu_words(menu: QMenu, theme: Theme, words: str) -> str:
    """Somebody's words as a menu's entry: not too wide, and no letter of them is a key."""
    return (
        menu.fontMetrics().elidedText(words, Qt.TextElideMode.ElideMiddle, theme.px(280)).replace("&", "&&")
    )


def confirm(parent: QWidget, question: str, explanation: str, yes: str) -> bool:
    """Ask before something that cannot be undone; the safe button is the default."""
    box = QMessageBox(QMessageBox.Icon.NoIcon, question, question, parent=parent)
    box.setInformativeText(explanation)
    box.setTextFormat(Qt.TextFormat.PlainText)
    accept = box.addButton(yes, QMessageBox.ButtonRole.AcceptRole)
    box.setDefaultButton(box.addButton(QMessageBox.StandardButton.Cancel))
    box.exec()
    return box.clickedButton() is accept


def clear(layout: QVBoxLayout | QHBoxLayout) -> None:
    """Delete every widget of a layout."""
    while (item := layout.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.hide()
            widget.deleteLater()
