"""The library: which documents there are and in which collection, adding, moving and removing them."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import (
    QItemSelection,
    QItemSelectionModel,
    QSortFilterProxyModel,
    QStandardPaths,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QMenu,
    QSizePolicy,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.collections_bar import CollectionsBar
from app.document_detail import DocumentDetail
from app.library_list import LibraryList, LibraryModel
from app.library_tools import LibraryTools
from app.message_list import COLUMN_PX, SIDE_PX
from app.reading_strip import ReadingStrip
from app.theme import HEADING_PX, SMALL_PX, Theme
from app.watched_folders import WatchedFolders
from app.widgets import EmptyState, Label, TextButton, confirm
from app.wording import embedding_sentence
from core.metrics import count
from core.types import (
    CollectionInfo,
    DocumentInfo,
    DocumentStatus,
    DocumentWarmth,
    EmbeddingProgress,
    WatchedFolder,
)

_LIST, _EMPTY, _EMPTY_COLLECTION, _FOLDERS = range(4)


class LibraryPage(QWidget):
    added = Signal(object)
    """Carries a list of `Path`, files and folders."""
    watched = Signal(object)
    """Carries the `Path` of a folder that is to be kept up to date."""
    removed = Signal(int)
    cancelled = Signal()
    moved = Signal(object, object)
    """A list of document ids, and the collection's id; None for no collection."""
    kept_warm = Signal(int, bool)
    """A document's id, and whether it is to be kept warm."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("centre")
        self._theme = theme
        self._column = QVBoxLayout(self)
        self._column.setSpacing(8)

        head = QHBoxLayout()
        head.setSpacing(8)
        titles = QVBoxLayout()
        titles.setSpacing(0)
        titles.addWidget(Label(theme, "Library", size=HEADING_PX, bold=True))
        self.summary = Label(theme, kind="muted")
        titles.addWidget(self.summary)
        head.addLayout(titles, 1)
        self.add_files = TextButton(theme, "Add files…", kind="primary", icon_name="new")
        self.add_files.clicked.connect(self.choose_files)
        self.add_folder = TextButton(
            theme, "Add folder…", icon_name="folder", tip="Add what is in a folder, once or from now on"
        )
        self.folder_menu = QMenu(self.add_folder)
        self.folder_menu.setAccessibleName("Add folder")
        self.folder_menu.addAction("Add its files once…", self.choose_folder)
        self.folder_menu.addAction("Keep it up to date…", self.choose_watched)
        self.add_folder.setMenu(self.folder_menu)
        head.addWidget(self.add_files, 0, Qt.AlignmentFlag.AlignVCenter)
        head.addWidget(self.add_folder, 0, Qt.AlignmentFlag.AlignVCenter)
        self._column.addLayout(head)

        self.strip = ReadingStrip(theme)
        self.strip.cancelled.connect(self.cancelled)
        self._column.addWidget(self.strip)
        self.meaning = Label(theme, kind="muted", size=SMALL_PX)
        self.meaning.setToolTip(
            "They are found by their words already, and by their meaning one after another"
        )
        self.meaning.hide()
        self._column.addWidget(self.meaning)

        self.bar = CollectionsBar(theme)
        self.bar.chosen.connect(self._show_documents)
        self._column.addWidget(self.bar)
        self._model = LibraryModel()
        self._shown = QSortFilterProxyModel(self)
        self._shown.setSourceModel(self._model)
        self._shown.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.tools = LibraryTools(theme)
        self.filter, self.remove = self.tools.filter, self.tools.remove
        self.filter.textChanged.connect(self._shown.setFilterFixedString)
        self.tools.removal_wanted.connect(self.ask_removal)
        self.tools.moved.connect(self.moved)
        self.tools.new_wanted.connect(self.bar.begin_new)
        self.tools.kept_warm.connect(self.kept_warm)
        self._column.addWidget(self.tools)

        self.list = LibraryList(theme)
        self.list.setModel(self._shown)
        self.list.removal_wanted.connect(self.ask_removal)
        self.list.selectionModel().selectionChanged.connect(self._enable)
        add = TextButton(theme, "Add files…", kind="primary", icon_name="new")
        add.clicked.connect(self.choose_files)
        self.empty = EmptyState(
            theme, "No documents yet: add files, or drop files and folders on this window.", add
        )
        everything = TextButton(theme, "Show all documents")
        everything.clicked.connect(lambda: self.bar.choose(None))
        self.empty_collection = EmptyState(
            theme, "Nothing is in this collection yet: add files, or move documents here.", everything
        )
        self._stack = QStackedWidget()
        self._stack.setMinimumHeight(theme.px(96))
        self._stack.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Ignored)  # what is left
        self.folders = WatchedFolders(theme)
        self.folders.toggle.toggled.connect(self._show)
        self.bar.row.addWidget(self.folders.toggle)
        for page in (self.list, self.empty, self.empty_collection, self.folders):
            self._stack.addWidget(page)
        self._column.addWidget(self._stack, 1)
        self.detail = DocumentDetail(theme)
        self.list.opened.connect(self.detail.act)
        self._column.addWidget(self.detail)
        self._folder = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
        self._documents: tuple[DocumentInfo, ...] = ()
        self._show()

    @property
    def collection(self) -> CollectionInfo | None:
        """The collection that is shown; None for all documents."""
        return self.bar.collection

    def set_documents(self, documents: Sequence[DocumentInfo]) -> None:
        self._documents = tuple(documents)
        self._show()

    def set_collections(self, collections: Sequence[CollectionInfo]) -> None:
        self.bar.set_collections(collections)
        self.folders.set_collections(collections)
        self._show()

    def set_folders(self, folders: Sequence[WatchedFolder]) -> None:
        self.folders.set_folders(folders)
        self._show()

    def set_embedding(self, progress: EmbeddingProgress) -> None:
        """How many passages are found by their meaning, until all of them are."""
        self.meaning.setText(embedding_sentence(progress))
        self.meaning.setVisible(progress.n_done < progress.n_blocks)

    def set_warmth(self, warmth: Sequence[DocumentWarmth]) -> None:
        self._model.set_warmth({one.document_id: one for one in warmth})

    def _show_documents(self) -> None:
        """Another collection was chosen: it is the documents that are wanted."""
        self.folders.toggle.setChecked(False)
        self._show()

    def _show(self) -> None:
        """The documents of the chosen collection, and what there is to say of them."""
        chosen = {one.id for one in self.list.selected()}
        scrolled = self.list.verticalScrollBar().value()
        collection = self.bar.collection
        documents = [
            one for one in self._documents if collection is None or one.collection_id == collection.id
        ]
        names = {} if collection is not None else {info.id: info.name for info in self.bar.collections}
        self._model.set_documents(documents, names)
        self._choose_again(chosen)
        self.list.verticalScrollBar().setValue(scrolled)
        nothing = _EMPTY if not self._documents else _EMPTY_COLLECTION
        in_folders = self.folders.toggle.isChecked()
        self._stack.setCurrentIndex(_FOLDERS if in_folders else _LIST if documents else nothing)
        self.bar.setVisible(bool(self._documents or self.bar.collections or self.folders.folders))
        self.tools.setVisible(bool(documents) and not in_folders)
        self.add_files.setVisible(bool(self._documents))  # else the empty state has it
        self.summary.setText(self._summary(documents))
        self.summary.setVisible(bool(self._documents))
        self._enable()

    def _summary(self, documents: Sequence[DocumentInfo]) -> str:
        whole = count(len(self._documents), "document")
        words = whole if self.bar.collection is None else f"{len(documents):,} of {whole}"
        words += f" · {count(sum(one.n_blocks for one in documents), 'block')}"
        broken = sum(
            one.status in (DocumentStatus.FAILED, DocumentStatus.NEEDS_PASSWORD) for one in documents
        )
        return f"{words} · {broken:,} not read" if broken else words

    def _choose_again(self, ids: set[int]) -> None:
        """The list is told anew while files are read; what was selected stays selected."""
        if not ids:
            return
        selection = QItemSelection()  # one for all: every change of it is told to the tools and the detail
        first = None
        n_rows = self._shown.rowCount()
        for row in range(n_rows + 1):
            here = row < n_rows and self._shown.index(row, 0).data(Qt.ItemDataRole.UserRole).id in ids
            if here and first is None:
                first = row
            elif not here and first is not None:
                selection.select(self._shown.index(first, 0), self._shown.index(row - 1, 0))
                first = None
        self.list.selectionModel().select(selection, QItemSelectionModel.SelectionFlag.Select)

    def choose_files(self) -> None:
        names, _ = QFileDialog.getOpenFileNames(self, "Add files to the library", self._folder)
        if names:
            self._folder = str(Path(names[0]).parent)
            self.added.emit([Path(name) for name in names])

    def choose_folder(self) -> None:
        if folder := self._ask_folder("Add a folder to the library"):
            self.added.emit([folder])

    def choose_watched(self) -> None:
        if folder := self._ask_folder("Keep a folder up to date in the library"):
            self.watched.emit(folder)

    def _ask_folder(self, title: str) -> Path | None:
        name = QFileDialog.getExistingDirectory(self, title, self._folder)
        if not name:
            return None
        self._folder = str(Path(name).parent)
        return Path(name)

    def ask_removal(self) -> None:
        chosen = self.list.selected()
        if not chosen:
            return
        what = f"“{chosen[0].title}”" if len(chosen) == 1 else count(len(chosen), "document")
        explanation = (
            "Its passages leave the library and the cache. The file itself stays where it is."
            if len(chosen) == 1
            else "Their passages leave the library and the cache. The files themselves stay where they are."
        )
        if confirm(self, f"Remove {what} from the library?", explanation, "Remove"):
            for document in chosen:
                self.removed.emit(document.id)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        side = SIDE_PX + max(0, (self.width() - 2 * SIDE_PX - self._theme.px(COLUMN_PX)) // 2)
        self._column.setContentsMargins(side, 8, side, 12)

    def _enable(self) -> None:
        chosen = [] if self.folders.toggle.isChecked() else self.list.selected()
        self.tools.set_selected(chosen, self.bar.collections)
        shown = self.detail.show_selected(chosen)
        if shown and not self.detail.isVisible():  # it takes room from the list
            QTimer.singleShot(0, self.list, lambda: self.list.scrollTo(self.list.currentIndex()))
        self.detail.setVisible(shown)
