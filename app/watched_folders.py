"""Which folders are kept up to date, in the place of the list of documents, and an end to that."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QMessageBox, QScrollArea, QVBoxLayout, QWidget

from app.icons import icon, pixmap
from app.theme import SMALL_PX, Theme
from app.widgets import ElidedLabel, Label, TextButton, clear
from app.wording import folder_facts, watched_sentence
from core.metrics import count
from core.types import CollectionInfo, WatchedFolder

_ROW_PX = 54
"""As a row of the list of documents."""


class FolderRow(QFrame):
    """One folder: its path, how it is, and Stop."""

    stopped = Signal(object)
    """Carries the `WatchedFolder`."""

    def __init__(self, theme: Theme, folder: WatchedFolder, collection: str) -> None:
        super().__init__()
        self.setObjectName("row")
        self.setFixedHeight(theme.px(_ROW_PX))
        row = QHBoxLayout(self)
        row.setContentsMargins(theme.px(8), 0, theme.px(8), 0)
        row.setSpacing(theme.px(10))
        self._theme = theme
        self._is_there = folder.is_there
        self._sign = Label(theme)
        row.addWidget(self._sign, 0, Qt.AlignmentFlag.AlignVCenter)
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addStretch(1)
        self.path = ElidedLabel(theme, bold=True)
        self.path.set_whole(folder.path)
        facts = folder_facts(folder, collection)
        self.facts = ElidedLabel(theme, kind="muted" if folder.is_there else "danger", size=SMALL_PX)
        self.facts.set_whole(facts)
        self.facts.setToolTip(folder.note or facts)
        words.addWidget(self.path)
        words.addWidget(self.facts)
        words.addStretch(1)
        row.addLayout(words, 1)
        self.stop = TextButton(theme, "Stop…", tip="Keep this folder up to date no longer")
        self.stop.setAccessibleName(f"Stop keeping {folder.path} up to date")
        self.stop.clicked.connect(lambda: self.stopped.emit(folder))
        row.addWidget(self.stop, 0, Qt.AlignmentFlag.AlignVCenter)
        theme.changed.connect(self._tint)
        self._tint()

    def _tint(self) -> None:
        tokens, size = self._theme.tokens, self._theme.px(20)
        name, colour = ("folder", tokens.muted) if self._is_there else ("caution", tokens.danger)
        self._sign.setPixmap(pixmap(name, colour, size, self.devicePixelRatioF()))


class WatchedFolders(QScrollArea):
    """A row for each folder. ``toggle``, which stands elsewhere, says how many there are and shows them."""

    unwatched = Signal(str, bool)
    """A folder's path, and whether its documents leave the library."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._folders: tuple[WatchedFolder, ...] = ()
        self._names: dict[int, str] = {}
        self.rows: list[FolderRow] = []
        self.toggle = TextButton(theme, "Folders", kind="quiet", icon_name="folder")
        self.toggle.setCheckable(True)
        self.toggle.hide()
        inner = QWidget()
        inner.setObjectName("centre")
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 4, 0, 0)
        column.setSpacing(4)
        column.addWidget(Label(theme, "Folders kept up to date", bold=True))
        words = (
            "New and changed files in them are read by themselves. What is deleted there leaves the library."
        )
        column.addWidget(Label(theme, words, kind="muted", size=SMALL_PX))
        self._rows = QVBoxLayout()
        self._rows.setSpacing(0)
        column.addLayout(self._rows)
        column.addStretch(1)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName("Folders kept up to date")
        self.setWidget(inner)
        theme.changed.connect(self._tint)

    @property
    def folders(self) -> tuple[WatchedFolder, ...]:
        return self._folders

    def set_collections(self, collections: Sequence[CollectionInfo]) -> None:
        names = {info.id: info.name for info in collections}
        if names != self._names:
            self._names = names
            self._show()

    def set_folders(self, folders: Sequence[WatchedFolder]) -> None:
        """The folders as the core tells them."""
        if tuple(folders) != self._folders:
            self._folders = tuple(folders)
            self._show()

    def _show(self) -> None:
        focused = any(row.stop.hasFocus() for row in self.rows)
        clear(self._rows)
        self.rows = []
        for folder in self._folders:
            row = FolderRow(self._theme, folder, self._names.get(folder.collection_id or 0, ""))
            row.stopped.connect(self._ask)
            self._rows.addWidget(row)
            self.rows.append(row)
        words = watched_sentence(self._folders)
        n_gone = sum(not one.is_there for one in self._folders)
        which = "" if len(self._folders) == 1 else f"{n_gone:,} "
        gone = f" · {which}not there" if n_gone else ""
        self.toggle.setText(f"{count(len(self._folders), 'folder')}{gone}")
        self.toggle.setToolTip(f"{words}. Show them, or the documents again")
        self.toggle.setAccessibleName(words)
        self.toggle.setVisible(bool(self._folders))
        self._tint()
        if not self._folders:
            self.toggle.setChecked(False)
        elif focused:  # the row that had the keyboard was made anew
            self.toggle.setFocus()

    def _tint(self) -> None:
        tokens = self._theme.tokens
        if any(not one.is_there for one in self._folders):
            self.toggle.setIcon(icon("caution", tokens.danger, self._theme.px(16)))
        else:
            self.toggle.setIcon(icon("folder", tokens.muted, self._theme.px(16)))

    def _ask(self, folder: WatchedFolder) -> None:
        remove = ask_what_becomes_of(self, folder) if folder.n_documents else False
        if remove is not None:
            self.unwatched.emit(folder.path, remove)


def ask_what_becomes_of(parent: QWidget, folder: WatchedFolder) -> bool | None:
    """Whether the documents of a folder leave the library with it; None where the user thinks better."""
    name = Path(folder.path).name or folder.path
    question = f"Stop keeping “{name}” up to date?"
    box = QMessageBox(QMessageBox.Icon.NoIcon, question, question, parent=parent)
    box.setInformativeText(
        f"{count(folder.n_documents, 'document')} in the library came from there. "
        "The files themselves stay where they are in any case."
    )
    box.setTextFormat(Qt.TextFormat.PlainText)
    remove = box.addButton("Remove documents", QMessageBox.ButtonRole.DestructiveRole)
    keep = box.addButton("Keep documents", QMessageBox.ButtonRole.AcceptRole)
    box.addButton(QMessageBox.StandardButton.Cancel)
    box.setDefaultButton(keep)
    box.exec()
    clicked = box.clickedButton()
    return True if clicked is remove else False if clicked is keep else None
