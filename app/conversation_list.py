"""The conversations in the left bar: a model over `ConversationInfo`, and how a row is painted."""

from collections.abc import Sequence
from time import time

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPen
from PySide6.QtWidgets import (
    QAbstractItemView,
    QListView,
    QMenu,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
)

from app.theme import SMALL_PX, Theme
from app.wording import ago
from core.metrics import count
from core.types import ConversationInfo

Index = QModelIndex | QPersistentModelIndex
_NO_PARENT = QModelIndex()


class ConversationModel(QAbstractListModel):
    """Newest first, as the core sends them. ``UserRole`` holds the `ConversationInfo`."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: tuple[ConversationInfo, ...] = ()

    def set_conversations(self, conversations: Sequence[ConversationInfo]) -> None:
        self.beginResetModel()
        self._rows = tuple(conversations)
        self.endResetModel()

    def rowCount(self, parent: Index = _NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid():
            return None
        info = self._rows[index.row()]
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return info.title
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{info.title}, {count(info.n_turns, 'question')}"
        return info if role == Qt.ItemDataRole.UserRole else None

    def row_of(self, conversation_id: int | None) -> int:
        return next((row for row, info in enumerate(self._rows) if info.id == conversation_id), -1)


def paint_row(
    painter: QPainter, theme: Theme, option: QStyleOptionViewItem, *, inset: int = 8
) -> tuple[QRectF, bool]:
    """Ground and focus ring of a list's row; returns the room for its content."""
    state = option.state
    where = QRectF(option.rect).adjusted(inset, 1, -inset, -1)
    selected = bool(state & QStyle.StateFlag.State_Selected)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    if selected or state & QStyle.StateFlag.State_MouseOver:
        painter.setBrush(QColor(theme.tokens.hover))
        painter.drawRoundedRect(where, 8, 8)
    if state & QStyle.StateFlag.State_HasFocus and state & QStyle.StateFlag.State_KeyboardFocusChange:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(QColor(theme.tokens.accent), 1))
        painter.drawRoundedRect(where.adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
    return where.adjusted(theme.px(8), 0, -theme.px(8), 0), selected


class ConversationDelegate(QStyledItemDelegate):
    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme

    def sizeHint(self, _option: QStyleOptionViewItem, _index: Index) -> QSize:
        return QSize(0, self._theme.px(48))

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        info: ConversationInfo = index.data(Qt.ItemDataRole.UserRole)
        painter.save()
        room, _ = paint_row(painter, self._theme, option)
        half = room.height() / 2
        upper = QRectF(room.left(), room.top() + 4, room.width(), half - 2)
        lower = QRectF(room.left(), room.top() + half, room.width(), half - 5)
        painter.setFont(self._theme.font())
        painter.setPen(QColor(self._theme.tokens.text))
        title = painter.fontMetrics().elidedText(info.title, Qt.TextElideMode.ElideRight, int(room.width()))
        painter.drawText(upper, Qt.AlignmentFlag.AlignVCenter, title)
        painter.setFont(self._theme.font(SMALL_PX))
        painter.setPen(QColor(self._theme.tokens.muted))
        words = f"{count(info.n_turns, 'question')} · {ago(info.updated_at, time())}"
        painter.drawText(lower, Qt.AlignmentFlag.AlignVCenter, words)
        painter.restore()


class ConversationList(QListView):
    """Click opens; Delete, or the context menu, deletes."""

    opened = Signal(int)
    deleted = Signal(object)
    """Carries the `ConversationInfo` that the user wants deleted."""
    typed = Signal(str)
    """Text typed while the list has the focus: it is meant for the question."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.rows = ConversationModel()
        self.setObjectName("plain")
        self.setModel(self.rows)
        self._delegate = ConversationDelegate(theme)
        self.setItemDelegate(self._delegate)
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Conversations")
        self.setToolTip("Open a conversation; Delete removes it")
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._menu)
        self.clicked.connect(self._open)
        self.activated.connect(self._open)
        theme.changed.connect(self.doItemsLayout)

    def show_current(self, conversation_id: int | None) -> None:
        row = self.rows.row_of(conversation_id)
        if row < 0:
            self.clearSelection()
            self.setCurrentIndex(QModelIndex())
        else:
            self.setCurrentIndex(self.rows.index(row))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace) and self.currentIndex().isValid():
            self.deleted.emit(self.currentIndex().data(Qt.ItemDataRole.UserRole))
            return
        super().keyPressEvent(event)

    def keyboardSearch(self, search: str) -> None:
        self.typed.emit(search)

    def _open(self, index: QModelIndex) -> None:
        self.opened.emit(index.data(Qt.ItemDataRole.UserRole).id)

    def _menu(self, where: QPoint) -> None:
        index = self.indexAt(where)
        if not index.isValid():
            return
        menu = QMenu(self)
        menu.addAction("Open", lambda: self._open(index))
        menu.addAction("Delete…", lambda: self.deleted.emit(index.data(Qt.ItemDataRole.UserRole)))
        menu.exec(self.viewport().mapToGlobal(where))
        menu.deleteLater()
