"""Beside the list of documents: finding one, and what can be done with the selected ones."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLineEdit, QMenu, QWidget

from app.theme import Theme
from app.widgets import GAP, TextButton, menu_words
from core.types import CollectionInfo, DocumentInfo, DocumentStatus

_READY = (DocumentStatus.READY, DocumentStatus.READY_WITH_NOTE)
_LEAST_FILTER_PX = 140


class LibraryTools(QWidget):
    moved = Signal(object, object)
    """A list of document ids, and the collection's id; None for no collection."""
    new_wanted = Signal(object)
    """A list of document ids that are to move into a new collection."""
    kept_warm = Signal(int, bool)
    """A document's id, and whether it is to be kept warm."""
    removal_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._selected: list[DocumentInfo] = []
        self._collections: tuple[CollectionInfo, ...] = ()
        self._rows = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._rows.setSpacing(GAP)
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("Find a document")
        self.filter.setAccessibleName("Find a document")
        self.filter.setToolTip("Type a part of a document's name")
        self.filter.setClearButtonEnabled(True)
        self._rows.addWidget(self.filter, 1)
        self._buttons = QHBoxLayout()
        self._buttons.setSpacing(GAP)
        self.warm = TextButton(theme, "Keep warm")
        self.warm.setCheckable(True)
        self.warm.clicked.connect(self._keep_warm)
        self.move_to = TextButton(
            theme, "Move to…", icon_name="folder", tip="Move the selected into a collection"
        )
        self.menu = QMenu(self.move_to)
        self.menu.setAccessibleName("Move to")
        self.menu.aboutToShow.connect(self._fill)
        self.move_to.setMenu(self.menu)
        self.remove = TextButton(theme, "Remove…", icon_name="remove", tip="Remove the selected (Delete)")
        self.remove.clicked.connect(self.removal_wanted)
        for button in (self.warm, self.move_to, self.remove):
            self._buttons.addWidget(button)
        self._rows.addLayout(self._buttons)
        self.set_selected([], ())

    def set_selected(self, documents: Sequence[DocumentInfo], collections: Sequence[CollectionInfo]) -> None:
        self._selected = list(documents)
        self._collections = tuple(collections)
        self.remove.setEnabled(bool(documents))
        self.move_to.setEnabled(bool(documents))
        names = {info.id: info.name for info in collections if info.keep_warm}
        ready = [one for one in documents if one.status in _READY]
        own = [one for one in ready if one.collection_id not in names]
        self.warm.setEnabled(bool(own))
        self.warm.setChecked(bool(ready) and all(one.keep_warm for one in own))
        if documents and not ready:
            why = "Only documents that were read can be kept warm"
        elif ready and not own:
            why = f"Kept warm with the collection “{names[ready[0].collection_id or 0]}”"
        else:
            why = "Read the selected whole, once, while nobody waits, and keep that: questions wait less"
        self.warm.setToolTip(why)
        self.warm.setAccessibleDescription(why)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        least = self._buttons.sizeHint().width() + GAP + self._theme.px(_LEAST_FILTER_PX)
        narrow = self.width() < least
        direction = QBoxLayout.Direction
        self._rows.setDirection(direction.TopToBottom if narrow else direction.LeftToRight)

    def _keep_warm(self, wanted: bool) -> None:
        names = {info.id for info in self._collections if info.keep_warm}
        for one in self._selected:
            if one.status in _READY and one.collection_id not in names and one.keep_warm != wanted:
                self.kept_warm.emit(one.id, wanted)

    def _fill(self) -> None:
        self.menu.clear()
        ids = [one.id for one in self._selected]
        places = {one.collection_id for one in self._selected}
        choices = [(info.id, info.name) for info in self._collections]
        for number, words in (*choices, (None, "No collection")):
            if number is None and choices:
                self.menu.addSeparator()
            action = self.menu.addAction(menu_words(self.menu, self._theme, words))
            action.setEnabled(places != {number})  # they are there already
            action.triggered.connect(lambda _checked, wanted=number: self.moved.emit(ids, wanted))
        self.menu.addSeparator()
        self.menu.addAction("New collection…", lambda: self.new_wanted.emit(ids))
