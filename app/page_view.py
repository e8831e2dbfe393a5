"""One page of a PDF as a sheet of paper, with what was cited marked on it.

The view only says which page it wants and how wide; pages arrive later. Until then the old one stays, and
after `WORDS_AFTER_MS` words say what is being waited for.
"""

from typing import Final

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QImage, QKeyEvent, QPainter, QPaintEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea, QWidget

from app.theme import SMALL_PX, Theme
from core.types import PageImage, Rectangle

WORDS_AFTER_MS: Final = 300
_ASK_AFTER_MS: Final = 120
"""While the view changes its size, a page is asked for only when it rests."""
_MARGIN_PX: Final = 12
_WIDEST_PX: Final = 860
"""A page that fits the width of a very wide view would be too large to read at a glance."""
_ZOOM_STEP: Final = 1.25
_ZOOM_LIMITS: Final = (0.5, 4.0)
_PUSH: Final = 240
"""Two notches of the wheel past the end of a page turn it."""
_PAPER_MARK: Final = "#FFE08A"
"""On white paper, whatever the theme: multiplied, so that the print stays black."""

_PAPER_BAR: Final = "#E5C568"
"""Beside the passage that the quote is from: quieter than the mark."""


class Paper(QWidget):
    """The page itself: always white, with a border."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.page: PageImage | None = None
        self._picture = QImage()
        theme.changed.connect(self.update)

    def show_page(self, page: PageImage | None) -> None:
        self.page = page
        self._picture = QImage()
        if page is not None:
            drawn = QImage(page.rgb, page.width, page.height, page.stride, QImage.Format.Format_RGB888)
            # A copy, since the picture above only borrows its bytes; 32 bits are what is painted fastest.
            self._picture = drawn.convertToFormat(QImage.Format.Format_RGB32)
        self.update()

    def sheet(self) -> QRectF:
        """Where the paper lies in this widget, in device-independent pixels."""
        margin = self._theme.px(_MARGIN_PX)
        return QRectF(self.rect().adjusted(margin, margin, -margin, -margin))

    def place(self, part: Rectangle) -> QRectF:
        sheet = self.sheet()
        return QRectF(
            sheet.x() + part.left * sheet.width(),
            sheet.y() + part.top * sheet.height(),
            (part.right - part.left) * sheet.width(),
            (part.bottom - part.top) * sheet.height(),
        )

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self.page is None:
            return
        painter = QPainter(self)
        painter.setRenderHints(QPainter.RenderHint.SmoothPixmapTransform | QPainter.RenderHint.Antialiasing)
        sheet = self.sheet()
        painter.drawImage(sheet, self._picture)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_Multiply)
        painter.setBrush(QColor(_PAPER_MARK))
        for part in self.page.highlights:
            painter.drawRoundedRect(self.place(part).adjusted(-2, -1, 2, 1), 2, 2)
        painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceOver)
        painter.setBrush(QColor(_PAPER_BAR))
        for bar in self._bars():
            painter.drawRoundedRect(bar, 1, 1)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QColor(self._theme.tokens.border))
        painter.drawRect(sheet.adjusted(-0.5, -0.5, 0.5, 0.5))
        painter.end()

    def _bars(self) -> list[QRectF]:
        """Lines beside the passage that was cited from, one for each column it stands in."""
        if self.page is None:
            return []
        columns: list[list[QRectF]] = []
        for part in map(self.place, self.page.passage):
            last = columns[-1][-1] if columns else None
            if last is not None and _goes_on(last, part):
                columns[-1].append(part)
            else:
                columns.append([part])
        if any(len(parts) > 1 for parts in columns):  # page numbers and the like need no line
            columns = [parts for parts in columns if len(parts) > 1]
        bars = []
        for parts in columns:
            box = parts[0]
            for part in parts:
                box = box.united(part)
            if sum(part.height() > part.width() for part in parts) * 2 < len(parts):  # no vertical text
                bars.append(QRectF(max(box.left() - 6, self.sheet().left() + 2), box.top(), 2, box.height()))
        return bars


def _goes_on(last: QRectF, part: QRectF) -> bool:
    """Whether ``part`` is in the same column as the line before it, or on that line."""
    beside = abs(part.top() - last.top()) < part.height()
    below = last.top() < part.top() < last.bottom() + 3 * part.height()
    shares = part.left() < last.right() and last.left() < part.right()
    return beside or (below and shares)


class PageView(QScrollArea):
    wanted = Signal(int, int)
    """Page (1-based) and width in device pixels that are to be drawn; it arrives at `show_page`."""
    turned = Signal(int, int)
    """Another page is wanted: its number, and how many there are."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._page = 1
        self._n_pages = 1
        self._zoom = 1.0
        self._whole_page = (1.0, 1.4)
        """Width and height of the page that was drawn last: pixel for pixel nothing is blurred."""
        self._to_mark = True
        self._at_end = False
        """The page that comes is to be shown from its end."""
        self._pushed = 0
        self._stale = False
        """What is shown belongs to another document."""
        self.paper = Paper(theme)
        self.setWidget(self.paper)
        self.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Page of the document")
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)  # else the width would jump
        self.viewport().setAutoFillBackground(False)
        self.paper.setAutoFillBackground(False)
        self._words = QLabel(self)
        self._words.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._words.setTextFormat(Qt.TextFormat.PlainText)
        self._words.hide()
        self._ask_timer = QTimer(self)
        self._ask_timer.setSingleShot(True)
        self._ask_timer.timeout.connect(self._ask)
        self._words_timer = QTimer(self)
        self._words_timer.setSingleShot(True)
        self._words_timer.setInterval(WORDS_AFTER_MS)
        self._words_timer.timeout.connect(self._say)
        theme.changed.connect(self._fit)

    @property
    def page(self) -> int:
        """The page that is shown or on its way, 1-based."""
        return self._page

    @property
    def n_pages(self) -> int:
        return self._n_pages

    def open(self, page: int, n_pages: int, *, same_document: bool) -> None:
        """Want a page of a document, with what is cited in view."""
        self._stale = self._stale or not same_document
        self._page, self._n_pages = page, max(1, n_pages)
        self._to_mark, self._at_end = True, False
        self.turned.emit(self._page, self._n_pages)
        self._wait(0)

    def turn(self, page: int, *, at_end: bool = False) -> None:
        """Go to another page of the same document; what is past its ends changes nothing."""
        page = min(max(1, page), self._n_pages)
        if page == self._page:
            return
        self._page, self._to_mark, self._at_end = page, True, at_end
        self.turned.emit(self._page, self._n_pages)
        self._wait(0)

    def zoom(self, steps: int) -> None:
        """Make the page larger or smaller; 0 fits it to the width again."""
        low, high = _ZOOM_LIMITS
        top = self._mark_top()
        self._zoom = min(max(self._zoom * _ZOOM_STEP**steps, low), high) if steps else 1.0
        self._fit()
        if top is not None:
            self._show_mark_at(top)
        self._wait(_ASK_AFTER_MS)

    def show_page(self, page: PageImage) -> None:
        """A page arrived. One that nobody wants any more is left out."""
        if page.page != self._page:
            return
        self._stop_waiting()
        self._stale = False
        if page.n_pages != self._n_pages:
            self._n_pages = page.n_pages
            self.turned.emit(self._page, self._n_pages)
        self._whole_page = (page.width, page.height)
        self.paper.show_page(page)
        self._fit()
        if self._to_mark:
            self._to_mark = False
            self._scroll_to_mark()

    def forget(self) -> None:
        """Show nothing, and keep nothing of what was shown."""
        self.stop()
        self._page = self._n_pages = 1
        self.paper.show_page(None)

    def stop(self) -> None:
        """Nothing comes any more for what was wanted last."""
        self._ask_timer.stop()
        self._stop_waiting()

    # --- size -------------------------------------------------------------------------------------

    def _paper_width(self) -> int:
        """Device-independent pixels."""
        room = self.viewport().width() - 2 * self._theme.px(_MARGIN_PX)
        return max(40, round(min(room, self._theme.px(_WIDEST_PX)) * self._zoom))

    def _fit(self) -> None:
        """Give the paper its size; what was in the middle stays there."""
        bars = (self.horizontalScrollBar(), self.verticalScrollBar())
        shares = [(bar.value() + bar.pageStep() / 2) / (bar.maximum() + bar.pageStep()) for bar in bars]
        width, (page_width, page_height) = self._paper_width(), self._whole_page
        margins = 2 * self._theme.px(_MARGIN_PX)
        self.paper.resize(QSize(width + margins, round(width * page_height / page_width) + margins))
        for bar, share in zip(bars, shares, strict=True):
            bar.setValue(round(share * (bar.maximum() + bar.pageStep()) - bar.pageStep() / 2))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()
        self._words.setGeometry(0, 0, self.width(), self._theme.px(44))
        if self.paper.page is not None and not self._ask_timer.isActive():
            self._wait(_ASK_AFTER_MS)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.DevicePixelRatioChange and self.paper.page is not None:
            self._wait(_ASK_AFTER_MS)  # the window went to a screen with finer or coarser pixels
        return super().event(event)

    # --- waiting ----------------------------------------------------------------------------------

    def _wait(self, ms: int) -> None:
        self._ask_timer.start(ms)
        if not self._words_timer.isActive() and self._words.isHidden():
            self._words_timer.start()

    def _ask(self) -> None:
        self.wanted.emit(self._page, round(self._paper_width() * self.devicePixelRatioF()))

    def _say(self) -> None:
        if self._stale:  # so long it may stay under another document's name
            self.paper.show_page(None)
        tokens = self._theme.tokens
        self._words.setFont(self._theme.font(SMALL_PX))
        self._words.setStyleSheet(f"background: {tokens.surface}; color: {tokens.muted};")
        self._words.setText(f"Page {self._page:,} is being drawn…")
        self._words.show()
        self._words.raise_()

    def _stop_waiting(self) -> None:
        self._words_timer.stop()
        self._words.hide()

    def _scroll_to_mark(self) -> None:
        """The first of what is cited in the upper third; a page without it from its beginning."""
        bar = self.verticalScrollBar()
        if self._at_end:
            bar.setValue(bar.maximum())
        elif self._first_mark() is not None:
            self._show_mark_at(self.viewport().height() / 4)
        else:
            bar.setValue(0)
        self._at_end = False

    def _first_mark(self) -> QRectF | None:
        """The uppermost part of what is cited, on the paper."""
        page = self.paper.page
        marks = (page.highlights or page.passage) if page is not None else ()
        return self.paper.place(min(marks, key=lambda one: one.top)) if marks else None

    def _mark_top(self) -> float | None:
        """How far below the view's upper edge that is; None if it is out of sight."""
        first = self._first_mark()
        if first is None:
            return None
        top = first.top() - self.verticalScrollBar().value()
        return top if 0 <= top < self.viewport().height() else None

    def _show_mark_at(self, top: float) -> None:
        first = self._first_mark()
        if first is None:
            return
        self.verticalScrollBar().setValue(round(first.top() - top))
        across, width = self.horizontalScrollBar(), self.viewport().width()
        if not across.value() < first.left() < first.right() < across.value() + width:
            across.setValue(round(first.left() - 2 * self._theme.px(_MARGIN_PX)))

    # --- keys and wheel ---------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        bar, across = self.verticalScrollBar(), self.horizontalScrollBar()
        keys = Qt.Key
        backwards = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        key = event.key()
        if key == keys.Key_Space:
            key = keys.Key_PageUp if backwards else keys.Key_PageDown
        if key == keys.Key_PageDown and bar.value() == bar.maximum():
            self.turn(self._page + 1)
        elif key == keys.Key_PageUp and bar.value() == bar.minimum():
            self.turn(self._page - 1, at_end=True)
        elif key in (keys.Key_PageDown, keys.Key_PageUp):
            step = round(self.viewport().height() * 0.9)
            bar.setValue(bar.value() + (step if key == keys.Key_PageDown else -step))
        elif key == keys.Key_Right and not across.maximum():
            self.turn(self._page + 1)
        elif key == keys.Key_Left and not across.maximum():
            self.turn(self._page - 1)
        elif key == keys.Key_Home:
            self.turn(1)
        elif key == keys.Key_End:
            self.turn(self._n_pages)
        elif key in (keys.Key_Plus, keys.Key_Equal):
            self.zoom(1)
        elif key == keys.Key_Minus:
            self.zoom(-1)
        elif key == keys.Key_0:
            self.zoom(0)
        else:
            super().keyPressEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        down = -event.angleDelta().y()
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.zoom(-1 if down > 0 else 1)
            event.accept()
            return
        bar = self.verticalScrollBar()
        at_edge = bar.value() == (bar.maximum() if down > 0 else bar.minimum())
        self._pushed = self._pushed + down if at_edge and self._pushed * down >= 0 else 0
        if abs(self._pushed) >= _PUSH:
            self.turn(self._page + (1 if down > 0 else -1), at_end=down < 0)
            self._pushed = 0
        super().wheelEvent(event)
