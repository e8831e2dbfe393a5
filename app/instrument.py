"""The prefill instrument: one bar, as wide as the prompt, split by chunk, coloured by where it came from."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QFontMetricsF,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.theme import SMALL_PX, Theme
from app.wording import TIER_NAMES, chunk_name
from core.types import ChunkView, Tier

ORDER = (Tier.LIVE, Tier.RAM, Tier.SSD, Tier.PREFILLED, Tier.REFERENCED, Tier.PENDING)


def with_references(chunks: Sequence[ChunkView], n_deduplicated_tokens: int) -> tuple[ChunkView, ...]:
    """The chunks, and behind them the tokens that a reference saved where no chunk shows them."""
    if n_deduplicated_tokens and not any(chunk.tier is Tier.REFERENCED for chunk in chunks):
        return (*chunks, ChunkView("already in the prompt", n_deduplicated_tokens, Tier.REFERENCED))
    return tuple(chunks)


def tokens_by_tier(chunks: Sequence[ChunkView]) -> dict[Tier, int]:
    """Tokens of each tier that occurs, in the fixed order of the legend."""
    return {
        tier: total
        for tier in ORDER
        if (total := sum(chunk.n_tokens for chunk in chunks if chunk.tier is tier))
    }


def paint_tier(painter: QPainter, theme: Theme, where: QRectF, tier: Tier) -> None:
    if tier is Tier.REFERENCED:
        painter.fillRect(where, QColor(theme.tokens.hover))
        painter.save()
        painter.setClipRect(where, Qt.ClipOperation.IntersectClip)
        painter.setPen(QPen(theme.colour(tier), 1.4))
        x = where.left() - where.height()
        while x < where.right():
            painter.drawLine(int(x), int(where.bottom()), int(x + where.height()), int(where.top()))
            x += 5
        painter.restore()
    else:
        painter.fillRect(where, theme.colour(tier))


class Instrument(QWidget):
    """The bar itself. ``slim`` is the one above a running answer; the full one can be walked by keys."""

    pointed = Signal(str)
    """The chunk under the pointer or reached with the arrow keys, in words; empty when it left."""

    def __init__(self, theme: Theme, *, slim: bool = False) -> None:
        super().__init__()
        self._theme = theme
        self._slim = slim
        self._chunks: tuple[ChunkView, ...] = ()
        self._n_ahead = 0.0
        self._current = -1
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Prefill, chunk by chunk")
        if not slim:
            self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    @property
    def chunks(self) -> tuple[ChunkView, ...]:
        return self._chunks

    def set_chunks(
        self, chunks: Sequence[ChunkView], n_deduplicated_tokens: int, sentence: str, n_ahead: float = 0.0
    ) -> None:
        """Show a prompt. ``sentence`` says the same for those who cannot see it.

        ``n_ahead``: about so many tokens of the first pending chunk are read; they are drawn paler.
        """
        self._n_ahead = n_ahead
        self._chunks = with_references(chunks, n_deduplicated_tokens)
        if self._current >= len(self._chunks):
            self._current = -1
        if self._current >= 0:  # what is pointed at may have been read since
            self.pointed.emit(self._words(self._current))
        self.setAccessibleDescription(sentence)
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(120, self._theme.px(8 if self._slim else 24))

    def minimumSizeHint(self) -> QSize:
        return QSize(40, self.sizeHint().height())

    def rects(self) -> list[QRectF]:
        """Where each chunk stands: its share of the width is its share of the tokens."""
        total = sum(chunk.n_tokens for chunk in self._chunks)
        if not total:
            return []
        rects, start = [], 0
        for chunk in self._chunks:
            left = self.width() * start / total
            start += chunk.n_tokens
            rects.append(QRectF(left, 0, self.width() * start / total - left, self.height()))
        return rects

    def chunk_at(self, x: float) -> int:
        return next((i for i, rect in enumerate(self.rects()) if rect.left() <= x < rect.right()), -1)

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        whole = QRectF(self.rect())
        outline = QPainterPath()
        radius = min(4.0, self.height() / 2)
        outline.addRoundedRect(whole, radius, radius)
        painter.save()
        painter.setClipPath(outline)
        painter.fillRect(whole, QColor(self._theme.tokens.hover))
        gap = QColor(self._theme.tokens.background)
        n_ahead = self._n_ahead
        for index, rect in enumerate(self.rects()):
            chunk = self._chunks[index]
            paint_tier(painter, self._theme, rect, chunk.tier)
            if chunk.tier is Tier.PENDING and n_ahead:
                part = QRectF(rect)
                part.setWidth(rect.width() * n_ahead / chunk.n_tokens)
                painter.fillRect(part, self._paler(Tier.PREFILLED))
                n_ahead = 0.0
            if index and rect.width() > 3:
                painter.fillRect(QRectF(rect.left(), 0, 1, self.height()), gap)
        painter.restore()
        if self._current >= 0:
            painter.setPen(QPen(QColor(self._theme.tokens.text), 2))
            painter.drawRect(self.rects()[self._current].adjusted(1, 1, -1, -1))
        elif self.hasFocus():
            painter.setPen(QPen(QColor(self._theme.tokens.accent), 2))
            painter.drawRoundedRect(whole.adjusted(1, 1, -1, -1), radius, radius)
        painter.end()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._point(self.chunk_at(event.position().x()))

    def leaveEvent(self, _event: QEvent) -> None:
        self._point(-1)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._point(-1)
        super().focusOutEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Right: 1, Qt.Key.Key_Left: -1}.get(Qt.Key(event.key()), 0)
        if not step or not self._chunks:
            super().keyPressEvent(event)
            return
        self._point((self._current + step) % len(self._chunks) if self._current >= 0 else 0)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            index = self.chunk_at(event.pos().x())
            QToolTip.showText(event.globalPos(), self._words(index), self)
            return True
        return super().event(event)

    def _paler(self, tier: Tier) -> QColor:
        made = QColor(self._theme.colour(tier))
        made.setAlphaF(0.55)
        return made

    def _words(self, index: int) -> str:
        return chunk_name(self._chunks[index]) if 0 <= index < len(self._chunks) else ""

    def _point(self, index: int) -> None:
        if index != self._current and not self._slim:
            self._current = index
            self.pointed.emit(self._words(index))
            self.update()


class Legend(QWidget):
    """The colours of the bar with their names and tokens, in as many lines as they need."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._tokens: dict[Tier, int] = {}
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def set_tokens(self, tokens: dict[Tier, int]) -> None:
        if tokens == self._tokens:
            return
        self._tokens = tokens
        words = ", ".join(f"{TIER_NAMES[tier]} {count:,} tokens" for tier, count in tokens.items())
        self.setAccessibleName(words or "Legend")
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(200, self.heightForWidth(max(self.width(), 200)))

    def heightForWidth(self, width: int) -> int:
        places = self._places(width)
        line = self._theme.px(20)
        return int(places[-1][1].top()) + line if places else 0

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.font(SMALL_PX))
        side = self._theme.px(10)
        for tier, where, words in self._places(self.width()):
            square = QRectF(where.left(), where.center().y() - side / 2, side, side)
            paint_tier(painter, self._theme, square, tier)
            painter.setPen(QColor(self._theme.tokens.text))
            painter.drawText(
                where.adjusted(side + self._theme.px(6), 0, 0, 0), Qt.AlignmentFlag.AlignVCenter, words
            )
        painter.end()

    def _places(self, width: int) -> list[tuple[Tier, QRectF, str]]:
        metrics = QFontMetricsF(self._theme.font(SMALL_PX))
        line, lead, space = self._theme.px(20), self._theme.px(16), self._theme.px(12)
        places, x, y = [], 0.0, 0.0
        for tier, count in self._tokens.items():
            words = f"{TIER_NAMES[tier]} {count:,} tokens"
            needed = lead + metrics.horizontalAdvance(words) + 2
            if x and x + needed > width:
                x, y = 0.0, y + line
            places.append((tier, QRectF(x, y, needed, line), words))
            x += needed + space
        return places
