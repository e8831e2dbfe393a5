"""Asks for the password of one document, and says in place if it does not fit."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QDialog, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from app.theme import SMALL_PX, Theme
from app.widgets import Label, TextButton
from core.types import DocumentInfo, DocumentStatus

_WIDTH_PX = 400


class PasswordDialog(QDialog):
    """It stays until the document is open, or the user gives up. It keeps no password."""

    entered = Signal(int, str)
    """The document's id, and a password to try."""

    def __init__(self, theme: Theme, document: DocumentInfo, parent: QWidget) -> None:
        super().__init__(parent)
        self.document = document
        self._trying = False
        self.setWindowTitle("Enter password")
        self.setMinimumWidth(theme.px(_WIDTH_PX))
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 24, 24, 16)
        column.setSpacing(12)
        column.addWidget(Label(theme, f"“{document.title}” is protected by a password.", bold=True))
        self.edit = QLineEdit()
        self.edit.setEchoMode(QLineEdit.EchoMode.Password)
        self.edit.setAccessibleName("Password")
        self.edit.setPlaceholderText("Password")
        self.edit.textChanged.connect(self._change)
        self.edit.returnPressed.connect(self._enter)
        column.addWidget(self.edit)
        self.shown = QCheckBox("Show it")
        self.shown.setAccessibleName("Show the password")
        self.shown.toggled.connect(self._show)
        column.addWidget(self.shown)
        self.message = Label(theme, kind="danger")
        self.message.setAccessibleName("Result")
        self.message.hide()
        column.addWidget(self.message)
        words = "It is kept in memory only, until Slipstream ends. The file stays as it is."
        column.addWidget(Label(theme, words, kind="muted", size=SMALL_PX))
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addStretch(1)
        cancel = TextButton(theme, "Cancel")
        cancel.clicked.connect(self.reject)
        self.open_button = TextButton(theme, "Open", kind="primary", tip="Read it with this password")
        self.open_button.setDefault(True)
        self.open_button.setEnabled(False)
        self.open_button.clicked.connect(self._enter)
        buttons.addWidget(cancel)
        buttons.addWidget(self.open_button)
        column.addLayout(buttons)

    @property
    def trying(self) -> bool:
        """Whether a password was given and nobody said yet if it fits."""
        return self._trying

    def refuse(self, words: str) -> None:
        """It does not fit, or the file cannot be read for another reason."""
        self._set_trying(False)
        self.message.setText(words)
        self.message.show()
        self.edit.selectAll()
        self.edit.setFocus()

    def take(self, document: DocumentInfo | None) -> None:
        """What the library says of the document now; None where it is gone."""
        if document is None or document.status is not DocumentStatus.NEEDS_PASSWORD:
            self.accept()

    def _enter(self) -> None:
        if self._trying or not self.edit.text():
            return
        self._set_trying(True)
        self.message.hide()
        self.entered.emit(self.document.id, self.edit.text())

    def _change(self) -> None:
        self.message.hide()
        self._set_trying(False)

    def _set_trying(self, trying: bool) -> None:
        self._trying = trying
        self.open_button.setText("Opening…" if trying else "Open")
        self.open_button.setEnabled(bool(self.edit.text()) and not trying)

    def _show(self, shown: bool) -> None:
        mode = QLineEdit.EchoMode
        self.edit.setEchoMode(mode.Normal if shown else mode.Password)
