"""The documents: a model over `DocumentInfo`, and how a row is painted."""

from collections.abc import Mapping, Sequence
from typing import Final

from PySide6.QtCore import QAbstractListModel, QModelIndex, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QKeyEvent, QPainter
from PySide6.QtWidgets import QAbstractItemView, QListView, QStyledItemDelegate, QStyleOptionViewItem

from app.conversation_list import _NO_PARENT, Index, paint_row
from app.icons import pixmap
from app.theme import SMALL_PX, Theme
from app.wording import document_facts, warmth_meaning, warmth_words
from core.types import DocumentInfo, DocumentStatus, DocumentWarmth

_WORDS = {
    DocumentStatus.READY: "Ready",
    DocumentStatus.READY_WITH_NOTE: "Ready, with a note",
    DocumentStatus.NEEDS_PASSWORD: "Needs a password",
    DocumentStatus.FAILED: "Not read",
}
_BROKEN = (DocumentStatus.NEEDS_PASSWORD, DocumentStatus.FAILED)
FACTS: Final = Qt.ItemDataRole.UserRole + 1
"""Role of the line under the title."""


class LibraryModel(QAbstractListModel):
    """``UserRole`` holds the `DocumentInfo`; ``DisplayRole`` its title, for filtering."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: tuple[DocumentInfo, ...] = ()
        self._names: Mapping[int, str] = {}
        self._warmth: Mapping[int, DocumentWarmth] = {}

    def set_documents(self, documents: Sequence[DocumentInfo], names: Mapping[int, str]) -> None:
        """The rows, and the names of the collections that a row is to tell of."""
        self.beginResetModel()
        self._rows, self._names = tuple(documents), names
        self.endResetModel()

    def set_warmth(self, warmth: Mapping[int, DocumentWarmth]) -> None:
        self._warmth = warmth
        if self._rows:
            self.dataChanged.emit(self.index(0), self.index(len(self._rows) - 1))

    def rowCount(self, parent: Index = _NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        document = self._rows[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return document.title
        if role == Qt.ItemDataRole.ToolTipRole:
            warmth = self._warmth.get(document.id)
            lines = (document.path, document.note, warmth_meaning(warmth) if warmth else "")
            return "\n".join(line for line in lines if line)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            parts = (document.title, self._facts(document), _WORDS[document.status], document.note)
            return ", ".join(part for part in parts if part)
        if role == FACTS:
            return self._facts(document)
        return document if role == Qt.ItemDataRole.UserRole else None

    def _facts(self, document: DocumentInfo) -> str:
        parts = [document_facts(document)]
        collection = self._names.get(document.collection_id or 0)
        if collection:
            parts.append(f"in {collection}")
        if document.id in self._warmth:
            parts.append(warmth_words(self._warmth[document.id]))
        return " · ".join(parts)


class LibraryDelegate(QStyledItemDelegate):
    """Icon, title, facts; at the right the status. A failed file says why under its title."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme

    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        return QSize(0, self._theme.px(54))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        document: DocumentInfo = index.data(Qt.ItemDataRole.UserRole)
        theme, tokens = self._theme, self._theme.tokens
        broken = document.status in _BROKEN
        painter.save()
        room, _ = paint_row(painter, theme, option, inset=0)
        under = option.rect
        painter.fillRect(under.left(), under.bottom(), under.width(), 1, QColor(tokens.border))
        side = theme.px(20)
        drawn = pixmap(
            "caution" if broken else "file",
            tokens.danger if broken else tokens.muted,
            side,
            painter.device().devicePixelRatioF(),
        )
        painter.drawPixmap(int(room.left()), int(room.center().y() - side / 2), drawn)
        left = room.left() + side + theme.px(10)
        half = room.height() / 2

        painter.setFont(theme.font(SMALL_PX))
        words = _WORDS[document.status]
        advance = painter.fontMetrics().horizontalAdvance(words) + 4
        painter.setPen(QColor(tokens.danger if broken else tokens.muted))
        status = QRectF(room.right() - advance, room.top(), advance, room.height())
        painter.drawText(status, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, words)

        width = status.left() - theme.px(16) - left
        painter.setFont(theme.font(bold=True))
        painter.setPen(QColor(tokens.text))
        title = painter.fontMetrics().elidedText(document.title, Qt.TextElideMode.ElideMiddle, int(width))
        upper = QRectF(left, room.top() + 6, width, half - 4)
        painter.drawText(upper, Qt.AlignmentFlag.AlignVCenter, title)
        painter.setFont(theme.font(SMALL_PX))
        painter.setPen(QColor(tokens.danger if broken else tokens.muted))
        facts: str = index.data(FACTS)
        if document.note:
            facts = document.note if broken else f"{facts} · {document.note}"
        facts = painter.fontMetrics().elidedText(facts, Qt.TextElideMode.ElideRight, int(width))
        lower = QRectF(left, room.top() + half, width, half - 6)
        painter.drawText(lower, Qt.AlignmentFlag.AlignVCenter, facts)
        painter.restore()


class LibraryList(QListView):
    """The documents. Delete asks to remove the selected ones."""

    removal_wanted = Signal()
    opened = Signal()
    """Enter or a double click on a row."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._delegate = LibraryDelegate(theme)
        self.setObjectName("plain")
        self.setItemDelegate(self._delegate)
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Documents in the library")
        self.doubleClicked.connect(self.opened)
        theme.changed.connect(self.doItemsLayout)

    def selected(self) -> list[DocumentInfo]:
        indexes = sorted(self.selectedIndexes(), key=QModelIndex.row)
        return [index.data(Qt.ItemDataRole.UserRole) for index in indexes]

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace) and self.selectedIndexes():
            self.removal_wanted.emit()
            return
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.selectedIndexes():
            self.opened.emit()
            return
        super().keyPressEvent(event)
