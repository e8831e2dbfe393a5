"""The library: which documents there are, adding and removing them, and how far reading is."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QItemSelectionModel, QSortFilterProxyModel, QStandardPaths, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFileDialog,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QProgressBar,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.library_list import LibraryList, LibraryModel
from app.message_list import COLUMN_PX, SIDE_PX
from app.theme import HEADING_PX, SMALL_PX, Theme
from app.widgets import ElidedLabel, EmptyState, IconButton, Label, TextButton, confirm
from app.wording import ingest_sentence, problem_line
from core.metrics import count
from core.types import DocumentInfo, DocumentStatus, IngestProgress

_SHOW_AFTER_MS = 300
"""What is read faster than this shows no progress: nothing flashes."""
_PROBLEM_LINES = 4


class ReadingStrip(QWidget):
    """What is being read, how far it is, how long it still takes, and Cancel."""

    cancelled = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._last: IngestProgress | None = None
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 4, 0, 8)
        column.setSpacing(6)
        row = QHBoxLayout()
        row.setSpacing(8)
        words = QVBoxLayout()
        words.setSpacing(2)
        self.current = ElidedLabel(theme, bold=True)
        self.facts = Label(theme, kind="muted", size=SMALL_PX)
        words.addWidget(self.current)
        words.addWidget(self.facts)
        row.addLayout(words, 1)
        self.cancel = TextButton(theme, "Cancel", tip="Stop reading; files that are done stay")
        self.cancel.clicked.connect(self._cancel)
        row.addWidget(self.cancel, 0, Qt.AlignmentFlag.AlignTop)
        self.close_button = IconButton(theme, "close", "Hide this line")
        self.close_button.clicked.connect(self.hide)
        row.addWidget(self.close_button, 0, Qt.AlignmentFlag.AlignTop)
        column.addLayout(row)
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName("Reading files")
        column.addWidget(self.bar)
        self.problems = QListWidget()
        self.problems.setAccessibleName("Files that could not be read")
        self.problems.setWordWrap(True)
        self.problems.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.problems.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.problems.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.problems.setObjectName("problems")
        self.problems.hide()
        column.addWidget(self.problems)
        self._theme = theme
        self._delay = QTimer(self)
        self._delay.setSingleShot(True)
        self._delay.setInterval(_SHOW_AFTER_MS)
        self._delay.timeout.connect(self.show)
        self.hide()

    def show_progress(self, progress: IngestProgress) -> None:
        if progress.running and (self._last is None or not self._last.running):
            self.cancel.setText("Cancel")
            self.cancel.setEnabled(True)
            self._delay.start()
        self._last = progress
        self.cancel.setVisible(progress.running)
        self.close_button.setVisible(not progress.running)
        self.bar.setVisible(progress.running)
        self.current.setVisible(progress.running)
        if progress.running:
            name = Path(progress.current).name
            self.current.set_whole(f"Reading {name}" if name else "Looking for files…")
        else:
            self._delay.stop()
            self.setVisible(progress.n_files > 0 or bool(progress.problems))
        self.facts.setText(ingest_sentence(progress))
        base = progress.n_bytes or progress.n_files
        done = progress.n_bytes_done if progress.n_bytes else progress.n_done
        self.bar.setRange(0, 1000)
        self.bar.setValue(round(1000 * done / base) if base else 0)
        self._show_problems(progress.problems)

    def _show_problems(self, problems: Sequence[tuple[str, str]]) -> None:
        """Which files could not be read and why; some of them are in no list, since they do not exist."""
        self.problems.clear()
        for path, reason in problems:
            item = QListWidgetItem(problem_line(path, reason))
            item.setToolTip(path)
            self.problems.addItem(item)
        self.problems.setVisible(bool(problems))
        self.problems.setFixedHeight(self._theme.px(min(len(problems), _PROBLEM_LINES) * 26 + 10))

    def _cancel(self) -> None:
        self.cancel.setText("Stopping…")
        self.cancel.setEnabled(False)
        self.cancelled.emit()


class LibraryPage(QWidget):
    added = Signal(object)
    """Carries a list of `Path`, files and folders."""
    removed = Signal(int)
    cancelled = Signal()

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
        self.add_folder = TextButton(theme, "Add folder…", icon_name="folder")
        self.add_folder.clicked.connect(self.choose_folder)
        head.addWidget(self.add_files, 0, Qt.AlignmentFlag.AlignVCenter)
        head.addWidget(self.add_folder, 0, Qt.AlignmentFlag.AlignVCenter)
        self._column.addLayout(head)

        self.strip = ReadingStrip(theme)
        self.strip.cancelled.connect(self.cancelled)
        self._column.addWidget(self.strip)

        self._model = LibraryModel()
        self._shown = QSortFilterProxyModel(self)
        self._shown.setSourceModel(self._model)
        self._shown.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.filter = QLineEdit()
        self.filter.setPlaceholderText("Find a document")
        self.filter.setAccessibleName("Find a document")
        self.filter.setToolTip("Type a part of a document's name")
        self.filter.setClearButtonEnabled(True)
        self.filter.textChanged.connect(self._shown.setFilterFixedString)
        self.remove = TextButton(theme, "Remove…", icon_name="remove", tip="Remove the selected (Delete)")
        self.remove.clicked.connect(self.ask_removal)
        tools = QHBoxLayout()
        tools.setSpacing(8)
        tools.addWidget(self.filter, 1)
        tools.addWidget(self.remove)
        self._tools = QWidget()
        self._tools.setLayout(tools)
        tools.setContentsMargins(0, 0, 0, 0)
        self._column.addWidget(self._tools)

        self.list = LibraryList(theme)
        self.list.setModel(self._shown)
        self.list.removal_wanted.connect(self.ask_removal)
        self.list.selectionModel().selectionChanged.connect(self._enable)
        add = TextButton(theme, "Add files…", kind="primary", icon_name="new")
        add.clicked.connect(self.choose_files)
        self.empty = EmptyState(
            theme, "No documents yet: add files, or drop files and folders on this window.", add
        )
        self._stack = QStackedWidget()
        self._stack.addWidget(self.empty)
        self._stack.addWidget(self.list)
        self._column.addWidget(self._stack, 1)
        self.detail = Label(theme, kind="muted", size=SMALL_PX)
        self.detail.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.detail.setAccessibleName("About the selected document")
        self._column.addWidget(self.detail)
        self._folder = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
        self.set_documents(())

    def set_documents(self, documents: Sequence[DocumentInfo]) -> None:
        chosen = {one.id for one in self.list.selected()}
        scrolled = self.list.verticalScrollBar().value()
        self._model.set_documents(documents)
        self._choose_again(chosen)
        self.list.verticalScrollBar().setValue(scrolled)
        self._stack.setCurrentIndex(1 if documents else 0)
        self._tools.setVisible(bool(documents))
        self.add_files.setVisible(bool(documents))  # else the empty state has it
        broken = sum(
            one.status in (DocumentStatus.FAILED, DocumentStatus.NEEDS_PASSWORD) for one in documents
        )
        n_blocks = sum(one.n_blocks for one in documents)
        words = f"{count(len(documents), 'document')} · {count(n_blocks, 'block')}"
        self.summary.setText(f"{words} · {broken:,} not read" if broken else words)
        self.summary.setVisible(bool(documents))
        self._enable()

    def _choose_again(self, ids: set[int]) -> None:
        """The list is told anew while files are read; what was selected stays selected."""
        if not ids:
            return
        for row in range(self._shown.rowCount()):
            index = self._shown.index(row, 0)
            if index.data(Qt.ItemDataRole.UserRole).id in ids:
                self.list.selectionModel().select(index, QItemSelectionModel.SelectionFlag.Select)

    def choose_files(self) -> None:
        names, _ = QFileDialog.getOpenFileNames(self, "Add files to the library", self._folder)
        if names:
            self._folder = str(Path(names[0]).parent)
            self.added.emit([Path(name) for name in names])

    def choose_folder(self) -> None:
        name = QFileDialog.getExistingDirectory(self, "Add a folder to the library", self._folder)
        if name:
            self._folder = str(Path(name).parent)
            self.added.emit([Path(name)])

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
        chosen = self.list.selected()
        self.remove.setEnabled(bool(chosen))
        one = chosen[0] if len(chosen) == 1 else None
        self.detail.setText(one.note if one is not None else "")
        shown = one is not None and bool(one.note)
        if shown and not self.detail.isVisible():  # it takes room from the list
            QTimer.singleShot(0, self.list, lambda: self.list.scrollTo(self.list.currentIndex()))
        self.detail.setVisible(shown)
