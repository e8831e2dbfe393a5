"""Which documents a question is about: a quiet chip, and the list it opens."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QLineEdit, QListWidget, QListWidgetItem, QVBoxLayout

from app.icons import icon
from app.theme import Theme
from app.widgets import TextButton
from core.metrics import count
from core.types import CollectionInfo, DocumentInfo, DocumentStatus, Scope

_ALL = "All documents"
_ICON: Final = Qt.ItemDataRole.UserRole + 1
_READABLE = (DocumentStatus.READY, DocumentStatus.READY_WITH_NOTE)


class ScopePopup(QFrame):
    """All documents, a collection, or one document; typing narrows the list."""

    picked = Signal(object)
    """Carries a `Scope`."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(None, Qt.WindowType.Popup)
        self._theme = theme
        self.setObjectName("popup")
        self.setAccessibleName("Choose what to ask about")
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 8, 8, 8)
        column.setSpacing(8)
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("Find a collection or document")
        self.filter.setAccessibleName("Find a collection or document")
        self.filter.setToolTip("Type a part of its name")
        self.filter.textChanged.connect(self._narrow)
        self.filter.returnPressed.connect(self._take_first)
        self.list = QListWidget()
        self.list.setObjectName("plain")
        self.list.setAccessibleName("Collections and documents")
        self.list.setUniformItemSizes(True)
        self.list.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.itemClicked.connect(self._take)
        self.list.itemActivated.connect(self._take)
        column.addWidget(self.filter)
        column.addWidget(self.list)
        self.resize(theme.px(320), theme.px(300))
        theme.changed.connect(self._tint)

    def set_choices(
        self, collections: Sequence[tuple[CollectionInfo, int]], documents: Sequence[DocumentInfo]
    ) -> None:
        """Offer everything, these collections with their numbers of documents, and these documents."""
        self.list.clear()
        self._add(_ALL, Scope(), "library", "Every document of the library")
        for info, n_documents in collections:
            words = f"Collection, {count(n_documents, 'document')}"
            self._add(info.name, Scope(collection_id=info.id), "folder", words)
        for one in documents:
            self._add(one.title, Scope(frozenset({one.id})), "file", "Document")
        self.list.setCurrentRow(0)
        self._tint()
        self._narrow(self.filter.text())

    def show_chosen(self, scope: Scope) -> None:
        """Mark what is asked about now."""
        for row in range(self.list.count()):
            if self.list.item(row).data(Qt.ItemDataRole.UserRole) == scope:
                self.list.setCurrentRow(row)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.filter.clear()
        self.filter.setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Down:  # the line above the list has no use for it
            self.list.setFocus()
            return
        super().keyPressEvent(event)

    def _add(self, words: str, scope: Scope, icon_name: str, kind: str) -> None:
        item = QListWidgetItem(words)
        item.setData(Qt.ItemDataRole.UserRole, scope)
        item.setData(_ICON, icon_name)
        item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{words}, {kind}")
        item.setToolTip(f"{words}\n{kind}")
        self.list.addItem(item)

    def _tint(self) -> None:
        """What an entry is: its icon says so, and its tooltip does."""
        size = self._theme.px(16)
        self.list.setIconSize(QSize(size, size))
        drawn = {name: icon(name, self._theme.tokens.muted, size) for name in ("library", "folder", "file")}
        for row in range(self.list.count()):
            item = self.list.item(row)
            item.setIcon(drawn[item.data(_ICON)])

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
        self._collections: tuple[CollectionInfo, ...] = ()
        self._offered: object = None
        self._names: dict[Scope, str] = {}
        self._chosen = Scope()
        self._popup = ScopePopup(theme)
        self._popup.picked.connect(self.choose)
        self.clicked.connect(self._open)
        self._offer()

    @property
    def scope(self) -> Scope:
        return self._chosen

    def set_documents(self, documents: Sequence[DocumentInfo]) -> None:
        self._documents = tuple(one for one in documents if one.status in _READABLE)
        self._offer()

    def set_collections(self, collections: Sequence[CollectionInfo]) -> None:
        self._collections = tuple(collections)
        self._offer()

    def choose(self, scope: Scope) -> None:
        """Ask about a collection or a document; about all where that is gone."""
        self._chosen = scope if scope in self._names else Scope()
        words = self._names.get(scope, _ALL)
        room = self._theme.px(180)
        self.setText(self.fontMetrics().elidedText(words, Qt.TextElideMode.ElideMiddle, room))
        self.setAccessibleName(f"Ask about: {words}")
        self.setToolTip(f"Asking about: {words}\nChoose what to ask about")

    def _offer(self) -> None:
        """A collection without a readable document is left out: nothing could be asked of it."""
        sizes = Counter(one.collection_id for one in self._documents)
        collections = [(info, sizes[info.id]) for info in self._collections if sizes[info.id]]
        offered = (
            [(info.id, info.name, n_documents) for info, n_documents in collections],
            [(one.id, one.title) for one in self._documents],
        )
        if offered == self._offered:
            return
        self._offered = offered
        self._names = {Scope(frozenset({one.id})): one.title for one in self._documents}
        self._names |= {Scope(collection_id=info.id): info.name for info, _ in collections}
        self._popup.set_choices(collections, self._documents)
        self.choose(self._chosen)

    def _open(self) -> None:
        corner = self.mapToGlobal(QPoint(0, 0))
        self._popup.move(corner.x(), corner.y() - self._popup.height() - 8)
        self._popup.show_chosen(self._chosen)
        self._popup.show()
