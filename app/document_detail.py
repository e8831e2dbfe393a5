"""Under the list: what there is to say of the selected documents, and the one thing to do about it."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app import recognition
from app.theme import SMALL_PX, Theme
from app.widgets import Label, TextButton
from core.metrics import count
from core.types import DocumentInfo, DocumentStatus


class DocumentDetail(QWidget):
    unlock_wanted = Signal(object)
    """Carries the `DocumentInfo` that needs a password."""
    recognition_wanted = Signal(object)
    """A list of ids of documents with pictures of text."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._locked: DocumentInfo | None = None
        self._scans: list[DocumentInfo] = []
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(16)
        self.words = Label(theme, kind="muted", size=SMALL_PX)
        self.words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.words.setAccessibleName("About the selected document")
        row.addWidget(self.words, 1)
        self.action = TextButton(theme, "Enter password…", kind="primary")
        self.action.clicked.connect(self.act)
        row.addWidget(self.action, 0, Qt.AlignmentFlag.AlignTop)

    def text(self) -> str:
        return self.words.text()

    def show_selected(self, documents: Sequence[DocumentInfo]) -> bool:
        """Whether there is anything to say or to do."""
        one = documents[0] if len(documents) == 1 else None
        self._locked = one if one is not None and one.status is DocumentStatus.NEEDS_PASSWORD else None
        self._scans = [document for document in documents if recognition.has_unread_pictures(document)]
        words = one.note if one is not None else ""
        offer = ""
        scans = self._scans
        if self._locked is not None:
            offer = "Enter password…"
        elif scans and recognition.is_available():
            offer = "Recognize text" if one else f"Recognize text of {count(len(scans), 'document')}"
        elif scans and one is not None and "“ocr”" not in words:
            words = f"{words} {recognition.offer()}".strip()
        self.words.setText(words)
        if offer:
            self.action.setText(offer)
            self.action.setAccessibleName(offer)
            self.action.setToolTip("It takes some seconds a page" if scans else offer)
        self.action.setVisible(bool(offer))
        return bool(words or offer)

    def act(self) -> None:
        """Do what the button offers; nothing where it offers nothing."""
        if self._locked is not None:
            self.unlock_wanted.emit(self._locked)
        elif self._scans and recognition.is_available():
            self.recognition_wanted.emit([one.id for one in self._scans])
