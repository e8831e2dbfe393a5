"""Above the list of documents: which collection is shown, a new one, and what the shown one allows."""

from collections.abc import Sequence

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QActionGroup
from PySide6.QtWidgets import QHBoxLayout, QMenu, QVBoxLayout, QWidget

from app.collection_panel import CollectionPanel, NewCollection, PanelRoom
from app.theme import SMALL_PX, Theme
from app.widgets import Label, TextButton, menu_words
from app.wording import collection_rules
from core.types import CollectionInfo

ALL = "All documents"


class CollectionsBar(QWidget):
    chosen = Signal()
    """Another collection, or everything, is shown."""
    created = Signal(str, object)
    """A name, and a list of the ids of the documents to move into the collection."""
    changed = Signal(object)
    """Carries the `CollectionInfo` as the user wants it."""
    deleted = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._collections: tuple[CollectionInfo, ...] = ()
        self._shown: int | None = None
        self._awaited = ""
        """Name of the collection that was just created here: it is shown when it is there."""
        self._moving: list[int] = []
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 4, 0, 0)
        column.setSpacing(8)
        self.row = row = QHBoxLayout()
        """Takes what else stands beside the chooser."""
        row.setSpacing(8)
        self.chooser = TextButton(theme, ALL, kind="quiet", icon_name="down")
        self.chooser.setLayoutDirection(Qt.LayoutDirection.RightToLeft)  # the arrow stands behind the words
        self.chooser.clicked.connect(self._open)
        self.menu = QMenu(self)
        self.menu.setAccessibleName("Collections")
        row.addWidget(self.chooser)
        self.rules = Label(theme, kind="muted", size=SMALL_PX)
        row.addWidget(self.rules, 1)
        self.settings = TextButton(
            theme,
            "Collection settings",
            kind="quiet",
            icon_name="settings",
            tip="Its name, and what its documents allow",
        )
        self.settings.setCheckable(True)
        row.addWidget(self.settings)
        column.addLayout(row)
        self.new = NewCollection(theme)
        self.new.created.connect(self._create)
        self.new.cancelled.connect(self._leave_new)
        self.new.hide()
        column.addWidget(self.new)
        self.panel = CollectionPanel(theme)
        self.panel.changed.connect(self.changed)
        self.panel.deleted.connect(self.deleted)
        self._room = PanelRoom(theme, self.panel)
        self._room.hide()
        column.addWidget(self._room)
        self.settings.toggled.connect(self._show_panel)
        self._show()

    @property
    def collections(self) -> tuple[CollectionInfo, ...]:
        return self._collections

    @property
    def collection(self) -> CollectionInfo | None:
        """The one that is shown; None for everything."""
        return next((info for info in self._collections if info.id == self._shown), None)

    def set_collections(self, collections: Sequence[CollectionInfo]) -> None:
        self._collections = tuple(collections)
        made = next((info for info in collections if info.name == self._awaited), None)
        if made is not None:
            self._awaited = ""
            self.choose(made.id)
        elif self._shown is not None and self.collection is None:
            self.choose(None)
        else:
            self._show()

    def choose(self, collection_id: int | None) -> None:
        """Show a collection, or everything."""
        self._shown = collection_id
        self._shown = None if self.collection is None else collection_id
        self.settings.setChecked(False)
        self.new.hide()
        self._show()
        self.chosen.emit()

    def begin_new(self, document_ids: Sequence[int] = ()) -> None:
        """Ask for the name of a new collection, into which these documents move."""
        self._moving = list(document_ids)
        self.settings.setChecked(False)
        self.new.begin([info.name for info in self._collections], len(document_ids))

    def _open(self) -> None:
        self.menu.clear()
        group = QActionGroup(self.menu)
        for number, words in ((None, ALL), *((one.id, one.name) for one in self._collections)):
            if number == (self._collections[0].id if self._collections else None):
                self.menu.addSeparator()
            action = self.menu.addAction(menu_words(self.menu, self._theme, words))
            action.setCheckable(True)
            action.setChecked(number == self._shown)
            action.triggered.connect(lambda _checked, wanted=number: self.choose(wanted))
            group.addAction(action)
        self.menu.addSeparator()
        self.menu.addAction("New collection…", self.begin_new)
        self.menu.popup(self.chooser.mapToGlobal(QPoint(0, self.chooser.height() + 4)))
        if (shown := group.checkedAction()) is not None:
            self.menu.setActiveAction(shown)

    def _show(self) -> None:
        info = self.collection
        words = ALL if info is None else info.name
        room = self._theme.px(240)
        self.chooser.setText(self.chooser.fontMetrics().elidedText(words, Qt.TextElideMode.ElideMiddle, room))
        self.chooser.setAccessibleName(f"Shown: {words}")
        self.chooser.setToolTip(f"Shown: {words}\nChoose a collection, or make a new one")
        self.rules.setText("" if info is None else collection_rules(info))
        self.settings.setVisible(info is not None)
        if info is not None:
            self.panel.show_collection(info, [one.name for one in self._collections])

    def _show_panel(self, shown: bool) -> None:
        self.new.hide()
        self._room.setVisible(shown)

    def _create(self, name: str) -> None:
        self._awaited = name
        self.new.hide()
        self.chooser.setFocus()
        self.created.emit(name, self._moving)

    def _leave_new(self) -> None:
        self.new.hide()
        self.chooser.setFocus()
