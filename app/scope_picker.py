"""Which documents a question is about: a quiet chip, and the list it opens."""

from collections.abc import Sequence

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFrame, QLineEdit, QListWidget, QListWidgetItem, QVBoxLayout

from app.theme import Theme
from app.widgets import TextButton
from core.types import DocumentInfo, DocumentStatus, Scope

_ALL = "All documents"
_READABLE = (DocumentStatus.READY, DocumentStatus.READY_WITH_NOTE)


class ScopePopup(QFrame):
    """All documents, or one of them; typing narrows the list."""

    picked = Signal(int)
    """A document's id; 0 for all."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(None, Qt.WindowType.Popup)
        self.setObjectName("popup")
        self.setAccessibleName("Choose what to ask about")
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 8, 8, 8)
        column.setSpacing(8)
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("Find a document")
        self.filter.setAccessibleName("Find a document")
        self.filter.setToolTip("Type a part of a document's name")
        self.filter.textChanged.connect(self._narrow)
        self.filter.returnPressed.connect(self._take_first)
        self.list = QListWidget()
        self.list.setObjectName("plain")
        self.list.setAccessibleName("Documents")
        self.list.setUniformItemSizes(True)
        self.list.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.list.itemClicked.connect(self._take)
        self.list.itemActivated.connect(self._take)
        column.addWidget(self.filter)
        column.addWidget(self.list)
        self.resize(theme.px(320), theme.px(300))

    def set_documents(self, documents: Sequence[DocumentInfo]) -> None:
        self.list.clear()
        for number, title in [(0, _ALL), *((one.id, one.title) for one in documents)]:
            item = QListWidgetItem(title)
            item.setData(Qt.ItemDataRole.UserRole, number)
            self.list.addItem(item)
        self.list.setCurrentRow(0)
        self._narrow(self.filter.text())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.filter.clear()
        self.filter.setFocus()

    def _narrow(self, words: str) -> None:
        for row in range(self.list.count()):
            item = self.list.item(row)
            item.setHidden(row > 0 and words.casefold() not in item.text().casefold())

    def _take_first(self) -> None:
        shown = [item for row in range(self.list.count()) if not (item := self.list.item(row)).isHidden()]
        if shown:
            self._take(shown[1] if len(shown) > 1 and self.filter.text() else shown[0])

    def _take(self, item: QListWidgetItem) -> None:
        self.hide()
        self.picked.emit(item.data(Qt.ItemDataRole.UserRole))


class ScopeChip(TextButton):
    """The scope of the next question: ``All documents ▾``."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, _ALL, kind="quiet", icon_name="down", tip="Choose what to ask about")
        self.setLayoutDirection(Qt.LayoutDirection.RightToLeft)  # the arrow stands behind the words
        self._documents: tuple[DocumentInfo, ...] = ()
        self._chosen = 0
        self._popup = ScopePopup(theme)
        self._popup.picked.connect(self.choose)
        self.clicked.connect(self._open)
        self.choose(0)

    @property
    def scope(self) -> Scope:
        return Scope(frozenset({self._chosen})) if self._chosen else Scope()

    def set_documents(self, documents: Sequence[DocumentInfo]) -> None:
        readable = tuple(one for one in documents if one.status in _READABLE)
        if [one.id for one in readable] == [one.id for one in self._documents]:
            return
        self._documents = readable
        self._popup.set_documents(readable)
        self.choose(self._chosen)

    def choose(self, document_id: int) -> None:
        """Ask about one document, or about all (0, or a document that is gone)."""
        title = next((one.title for one in self._documents if one.id == document_id), "")
        self._chosen = document_id if title else 0
        words = title or _ALL
        room = self._theme.px(180)
        self.setText(self.fontMetrics().elidedText(words, Qt.TextElideMode.ElideMiddle, room))
        self.setAccessibleName(f"Ask about: {words}")
        self.setToolTip(f"Asking about: {words}\nChoose what to ask about")

    def _open(self) -> None:
        corner = self.mapToGlobal(QPoint(0, 0))
        self._popup.move(corner.x(), corner.y() - self._popup.height() - 8)
        self._popup.show()
