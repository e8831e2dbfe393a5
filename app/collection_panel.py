"""What is written and switched of one collection: its name, and what its documents allow."""

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.theme import SMALL_PX, Theme
from app.widgets import Label, TextButton, confirm
from core.metrics import count
from core.types import CollectionInfo

LONGEST_NAME = 80


class NameEdit(QLineEdit):
    """Takes a collection's name, and knows which names are free."""

    escaped = Signal()
    left = Signal()
    """The keyboard went elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self._others: dict[str, str] = {}
        self.setMaxLength(LONGEST_NAME)
        self.setAccessibleName("Name of the collection")

    @property
    def name(self) -> str:
        """As the core stores it."""
        return " ".join(self.text().split())

    @property
    def problem(self) -> str:
        """Why this name cannot be taken; empty if it can."""
        taken = self._others.get(self.name.casefold())
        if taken:
            return f"There is a collection named “{taken}” already."
        return "" if self.name else "A collection needs a name."

    def set_others(self, names: Sequence[str]) -> None:
        """The names that other collections have."""
        self._others = {name.casefold(): name for name in names}

    def event(self, event: QEvent) -> bool:
        if (
            isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.ShortcutOverride
            and event.key() == Qt.Key.Key_Escape
        ):
            event.accept()  # it belongs to this line, not to the window
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.escaped.emit()
            return
        super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        if event.reason() not in (Qt.FocusReason.PopupFocusReason, Qt.FocusReason.ActiveWindowFocusReason):
            self.left.emit()


class NewCollection(QWidget):
    """One line: a name, Create, Cancel."""

    created = Signal(str)
    cancelled = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._n_documents = 0
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        row = QHBoxLayout()
        row.setSpacing(8)
        self.edit = NameEdit()
        self.edit.setPlaceholderText("Name of the new collection")
        self.edit.setToolTip("Enter creates it, Esc leaves it")
        self.edit.textChanged.connect(self._check)
        self.edit.returnPressed.connect(self._create)
        self.edit.escaped.connect(self.cancelled)
        self.create_button = TextButton(theme, "Create", kind="primary", tip="Create the collection (Enter)")
        self.create_button.clicked.connect(self._create)
        self.cancel = TextButton(theme, "Cancel", tip="Create nothing (Esc)")
        self.cancel.clicked.connect(self.cancelled)
        row.addWidget(self.edit, 1)
        row.addWidget(self.create_button)
        row.addWidget(self.cancel)
        column.addLayout(row)
        self.hint = Label(theme, kind="muted", size=SMALL_PX)
        column.addWidget(self.hint)

    def begin(self, names: Sequence[str], n_documents: int) -> None:
        """Take a name; so many documents are to move into the collection."""
        self._n_documents = n_documents
        self.edit.set_others(names)
        self.edit.clear()
        self._check()
        self.show()
        self.edit.setFocus()

    def _check(self) -> None:
        problem = self.edit.problem
        self.create_button.setEnabled(not problem)
        moves = f"{count(self._n_documents, 'selected document')} will move into it."
        self.hint.setText(problem if self.edit.name and problem else moves if self._n_documents else "")
        self.hint.setVisible(bool(self.hint.text()))

    def _create(self) -> None:
        if not self.edit.problem:
            self.created.emit(self.edit.name)


class Switch(QWidget):
    """A check box and, under it, what it does."""

    toggled = Signal(bool)
    """The user switched it."""

    def __init__(self, theme: Theme, words: str, explanation: str) -> None:
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        self.box = QCheckBox(words)
        self.box.setAccessibleName(words)
        self.box.setAccessibleDescription(explanation)
        self.box.setToolTip(explanation)
        self.box.clicked.connect(self.toggled)
        column.addWidget(self.box)
        self._theme = theme
        self._below = Label(theme, explanation, kind="muted", size=SMALL_PX)
        column.addWidget(self._below)
        theme.changed.connect(self._indent)
        self._indent()

    def _indent(self) -> None:
        """The explanation stands under the words, behind the box and its space."""
        self._below.setContentsMargins(self._theme.px(12) + 2 + self._theme.px(8), 0, 0, 0)


class CollectionPanel(QFrame):
    """The settings of one collection, in the page. Each takes effect at once."""

    changed = Signal(object)
    """Carries the `CollectionInfo` as the user wants it."""
    deleted = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("panel")
        self._info = CollectionInfo(0, "")
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 16, 12)
        column.setSpacing(12)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(Label(theme, "Name", kind="muted"))
        self.edit = NameEdit()
        self.edit.setToolTip("Enter renames the collection")
        self.edit.returnPressed.connect(self._rename)
        self.edit.left.connect(self._rename)
        self.edit.escaped.connect(self._restore)
        self.edit.textChanged.connect(self._check)
        row.addWidget(self.edit, 1)
        self.delete = TextButton(theme, "Delete…", icon_name="remove", tip="Delete the collection")
        self.delete.clicked.connect(self._delete)
        row.addWidget(self.delete)
        column.addLayout(row)
        self.hint = Label(theme, kind="muted", size=SMALL_PX)
        column.addWidget(self.hint)
        self.apart = Switch(
            theme,
            "Keep apart",
            "Its prompts share no cached text with others: nobody can tell by speed what was asked here.",
        )
        self.on_disk = Switch(
            theme,
            "May be kept on disk",
            "What was read of it is still there after a restart. Off: it is kept in memory alone.",
        )
        self.keep_warm = Switch(
            theme,
            "Keep warm",
            "Its documents are read whole, once, while nobody waits, and kept where that fits: "
            "the first question waits less.",
        )
        self.as_found = Switch(
            theme,
            "As found",
            "Passages stay in order of relevance and whole, unless it is kept warm; questions then wait "
            "longer.",
        )
        for switch in (self.apart, self.on_disk, self.keep_warm, self.as_found):
            switch.toggled.connect(self._switch)
            column.addWidget(switch)

    def minimumSizeHint(self) -> QSize:
        return QSize(super().minimumSizeHint().width(), 0)  # its height follows from its width alone

    def show_collection(self, info: CollectionInfo, names: Sequence[str]) -> None:
        """Show a collection as the core tells it. A name that is being written stays as it is."""
        writing = self.edit.hasFocus() and self.edit.isModified() and info.id == self._info.id
        self._info = info
        self.edit.set_others([name for name in names if name != info.name])
        if not writing:
            self.edit.setText(info.name)
        self._check()
        self.apart.box.setChecked(info.apart)
        self.on_disk.box.setChecked(info.on_disk)
        self.keep_warm.box.setChecked(info.keep_warm)
        self.as_found.box.setChecked(info.as_found)

    def _switch(self) -> None:
        self._info = replace(
            self._info,
            apart=self.apart.box.isChecked(),
            on_disk=self.on_disk.box.isChecked(),
            keep_warm=self.keep_warm.box.isChecked(),
            as_found=self.as_found.box.isChecked(),
        )
        self.changed.emit(self._info)

    def _rename(self) -> None:
        if self.edit.problem:
            return
        name = self.edit.name
        self.edit.setText(name)
        if name != self._info.name:
            self._info = replace(self._info, name=name)
            self.changed.emit(self._info)

    def _restore(self) -> None:
        self.edit.setText(self._info.name)

    def _check(self) -> None:
        self.hint.setText(self.edit.problem)
        self.hint.setVisible(bool(self.edit.problem))

    def _delete(self) -> None:
        explanation = "Its documents stay in the library, in no collection."
        if confirm(self, f"Delete the collection “{self._info.name}”?", explanation, "Delete"):
            self.deleted.emit(self._info.id)


class PanelRoom(QScrollArea):
    """As tall as the panel, and less where the window is low: then it scrolls."""

    def __init__(self, theme: Theme, panel: CollectionPanel) -> None:
        super().__init__()
        self._theme = theme
        self._panel = panel
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName("Collection settings")
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.setWidget(panel)

    def sizeHint(self) -> QSize:
        return QSize(self._panel.sizeHint().width(), self._panel.heightForWidth(self.viewport().width()))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self._theme.px(120))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.updateGeometry()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        done = super().eventFilter(watched, event)
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return done
