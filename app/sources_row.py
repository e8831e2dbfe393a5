"""The passages found for a question, as a row of quiet chips: document, page, best sentence."""

from math import ceil

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QEnterEvent,
    QFont,
    QFontMetricsF,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QTextLayout,
    QTextOption,
)
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.icons import pixmap
from app.standing import StandingMark
from app.theme import SMALL_PX, Theme
from app.turns import TurnState
from app.widgets import GAP, TextButton
from app.wording import page_name, place_name, plain_quote, standing_words
from core.metrics import count
from core.types import Passage, Standing

N_COLLAPSED = 3
_QUOTE_LINES = 3
_MIN_CHIP_PX = 180


def lines_of(text: str, font: QFont, width: float, most: int) -> list[str]:
    """``text`` broken into at most ``most`` lines; the last one elided."""
    layout = QTextLayout(text, font)
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    layout.setTextOption(option)
    layout.beginLayout()
    lines: list[str] = []
    while (line := layout.createLine()).isValid():
        line.setLineWidth(width)
        start = line.textStart()
        if len(lines) == most - 1:
            rest = QFontMetricsF(font).elidedText(text[start:], Qt.TextElideMode.ElideRight, width)
            lines.append(rest)
            break
        lines.append(text[start : start + line.textLength()].rstrip())
    layout.endLayout()
    return lines


class SourceChip(QAbstractButton):
    """One passage. Clicking opens it in its document; a mark says where its text stands if not here."""

    traced = Signal(object)
    spotted = Signal(object)

    def __init__(self, theme: Theme, passage: Passage) -> None:
        super().__init__()
        self._theme = theme
        self.passage = passage
        self._number = 0
        self.mark: StandingMark | None = None
        """In place of the quote's last line."""
        self._quote = plain_quote(passage.place.title, passage.quote)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        name = place_name(passage.place.title, passage.place.page)
        self.setAccessibleName(f"Source: {name}")
        self.setAccessibleDescription(self._quote)
        self.setToolTip(f"{name}\n“{self._quote}”\nShow it in the document")

    def set_number(self, number: int) -> None:
        if number != self._number:
            self._number = number
            self.update()

    def set_standing(self, standing: Standing | None) -> None:
        """Say how the passage stands in the prompt. Not in public: it would be one thing more to hit."""
        if self._theme.kiosk or standing is None or self.mark is not None:
            return
        self.mark = StandingMark(self._theme, standing)
        self.mark.setParent(self)
        self.mark.traced.connect(self.traced)
        self.mark.spotted.connect(self.spotted)
        self.setAccessibleDescription(f"{self._quote} ({standing_words(standing)})")
        self._place_mark()
        self.mark.show()
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_mark()

    def _place_mark(self) -> None:
        if self.mark is not None:
            pad, height = self._theme.px(10), self._theme.px(20)
            width = min(self.mark.whole_width(), self.width() - 2 * pad)
            self.mark.setGeometry(pad - 2, self.height() - height - self._theme.px(5), width, height)

    def sizeHint(self) -> QSize:
        line = QFontMetricsF(self._theme.font(SMALL_PX)).lineSpacing()
        height = self._theme.px(8) * 2 + self._theme.px(20) + self._theme.px(2) + line * _QUOTE_LINES
        return QSize(self._theme.px(_MIN_CHIP_PX), ceil(height))

    def enterEvent(self, event: QEnterEvent) -> None:
        self.update()
        super().enterEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme, tokens = self._theme, self._theme.tokens
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        frame = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        ring = QColor(tokens.accent if self.hasFocus() else tokens.border)
        painter.setPen(QPen(ring, 2 if self.hasFocus() else 1))
        painter.setBrush(QColor(tokens.hover if self.underMouse() else tokens.background))
        painter.drawRoundedRect(frame, 8, 8)

        pad, line = theme.px(10), theme.px(20)
        left, top, right = float(pad), float(theme.px(8)), float(self.width() - pad)
        side = theme.px(14)
        if self._number:
            painter.setFont(theme.font(SMALL_PX, bold=True))
            painter.setPen(QColor(tokens.accent))
            words = str(self._number)
            painter.drawText(QRectF(left, top, side, line), Qt.AlignmentFlag.AlignVCenter, words)
            left += painter.fontMetrics().horizontalAdvance(words) + theme.px(6)
        else:
            drawn = pixmap("file", tokens.muted, side, self.devicePixelRatioF())
            painter.drawPixmap(QPointF(left - 1, top + (line - side) / 2), drawn)
            left += side + theme.px(4)
        painter.setFont(theme.font(SMALL_PX))
        page = page_name(self.passage.place.page)
        if page:
            advance = painter.fontMetrics().horizontalAdvance(page) + 2
            painter.setPen(QColor(tokens.muted))
            place = QRectF(right - advance, top, advance, line)
            painter.drawText(place, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, page)
            right -= advance + theme.px(6)
        painter.setFont(theme.font(SMALL_PX, bold=True))
        painter.setPen(QColor(tokens.text))
        title = painter.fontMetrics().elidedText(
            self.passage.place.title, Qt.TextElideMode.ElideMiddle, int(right - left)
        )
        painter.drawText(QRectF(left, top, right - left, line), Qt.AlignmentFlag.AlignVCenter, title)

        font = theme.font(SMALL_PX)
        painter.setFont(font)
        painter.setPen(QColor(tokens.muted))
        metrics = QFontMetricsF(font)
        y = top + line + theme.px(2)
        most = _QUOTE_LINES - (self.mark is not None)
        for words in lines_of(self._quote, font, self.width() - 2 * pad, most):
            painter.drawText(QPointF(pad, y + metrics.ascent()), words)
            y += metrics.lineSpacing()
        painter.end()


class SourcesRow(QWidget):
    """The chips, three at first. The owner gives it a width with `fit`."""

    opened = Signal(object)
    """A chip was clicked; carries the `Passage`."""
    traced = Signal(object)
    """The user asked which turn gave a passage; carries its `Standing`."""
    spotted = Signal(object)
    """The user asked for text that a passage leaves out; carries the `Spot` where it stands."""
    resized = Signal()

    def __init__(self, theme: Theme, turn: TurnState) -> None:
        super().__init__()
        self._theme = theme
        self._turn = turn
        self._chips: list[SourceChip] = []
        self._more = TextButton(theme, "", kind="link")
        self._more.setParent(self)
        self._more.clicked.connect(self._toggle)
        self.setAccessibleName("Sources")

    @property
    def chips(self) -> list[SourceChip]:
        return self._chips

    def focus_chain(self) -> list[QWidget]:
        """What Tab visits: each chip, and the mark on it."""
        return [one for chip in self._chips for one in (chip, chip.mark) if one is not None]

    def reveal(self, block_id: str) -> SourceChip | None:
        """The chip of a block, shown even where it is not among the first; None if there is none."""
        chip = next((one for one in self._chips if one.passage.block.id == block_id), None)
        if chip in self._chips[N_COLLAPSED:] and not self._turn.sources_open:
            self._toggle()
        return chip

    def refresh(self) -> None:
        """Show the turn's passages and, once it is answered, the numbers they are cited by."""
        if [chip.passage for chip in self._chips] != list(self._turn.passages):
            for chip in self._chips:
                chip.hide()
                chip.deleteLater()
            self._chips = [SourceChip(self._theme, passage) for passage in self._turn.passages]
            for chip in self._chips:
                chip.setParent(self)
                chip.clicked.connect(self._open)
                chip.traced.connect(self.traced)
                chip.spotted.connect(self.spotted)
        for chip in self._chips:
            chip.set_number(self._turn.number_of(chip.passage))
            chip.set_standing(self._turn.standing_of(chip.passage))
        rest = len(self._chips) - N_COLLAPSED
        words = "Show fewer sources" if self._turn.sources_open else f"Show {count(rest, 'more source')}"
        self._more.setText(words)
        self._more.setToolTip(words)
        self._more.setAccessibleName(words)

    def fit(self, width: int) -> None:
        """Place the chips in as many equal columns as fit, and take the height this needs."""
        shown = self._chips if self._turn.sources_open else self._chips[:N_COLLAPSED]
        room = (width + GAP) // (self._theme.px(_MIN_CHIP_PX) + GAP)
        columns = max(1, min(room, 3, max(2, len(shown))))
        each = (width - GAP * (columns - 1)) // columns
        height = self._chips[0].sizeHint().height() if self._chips else 0
        y = 0
        for index, chip in enumerate(self._chips):
            chip.setVisible(index < len(shown))
            row, column = divmod(index, columns)
            if index < len(shown):
                y = row * (height + GAP)
                chip.setGeometry(column * (each + GAP), y, each, height)
        bottom = y + height if shown else 0
        self._more.setVisible(len(self._chips) > N_COLLAPSED)
        if self._more.isVisibleTo(self):
            hint = self._more.sizeHint()
            self._more.setGeometry(0, bottom + 4, hint.width(), hint.height())
            bottom += 4 + hint.height()
        self.setFixedHeight(bottom)

    def _open(self) -> None:
        chip = self.sender()
        if isinstance(chip, SourceChip):
            self.opened.emit(chip.passage)

    def _toggle(self) -> None:
        self._turn.sources_open = not self._turn.sources_open
        self.refresh()
        self.resized.emit()
