"""Passages whose text stands elsewhere in the prompt: the mark on a chip, and the inspector's list."""

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QSizePolicy, QVBoxLayout, QWidget

from app.theme import SMALL_PX, Theme
from app.widgets import Label, TextButton, clear, menu_words
from app.wording import place_name, plain_quote, spot_name, standing_sentence, standing_words
from core.metrics import count
from core.types import Spot, Standing, Stands

N_COLLAPSED = 6
_ICONS = {Stands.EARLIER: "earlier", Stands.SHORTENED: "shortened", Stands.RIDING: "file"}


def _shown(words: str) -> str:
    """``words`` on a button: a file's ``&`` is no shortcut."""
    return words.replace("&", "&&")


class StandingLink(TextButton):
    """Leads to where a block's text stands: an earlier turn, the parts of other passages, its document."""

    traced = Signal(object)
    """Carries the `Standing` whose earlier turn is to be shown."""
    spotted = Signal(object)
    """Carries the `Spot` to open."""

    def __init__(
        self, theme: Theme, standing: Standing, words: str, *, kind: str, icon_name: str = ""
    ) -> None:
        super().__init__(theme, _shown(words), kind=kind, icon_name=icon_name)
        self.standing = standing
        self._words = words
        sentence = standing_sentence(standing)
        self.setToolTip(sentence)
        self.setAccessibleName(f"{spot_name(standing.spot)}. {sentence}")
        self.setFont(theme.font(SMALL_PX))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.clicked.connect(self._follow)

    def whole_width(self) -> int:
        """Pixels in which nothing is elided."""
        return self.fontMetrics().horizontalAdvance(self._words) + self._beside_px() + 2

    def _beside_px(self) -> int:
        return 4 if self.icon().isNull() else self.iconSize().width() + 10

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        room = self.width() - self._beside_px()
        words = self.fontMetrics().elidedText(self._words, Qt.TextElideMode.ElideMiddle, max(0, room))
        self.setText(_shown(words))

    def _follow(self) -> None:
        standing = self.standing
        if standing.how is Stands.EARLIER:
            self.traced.emit(standing)
        elif len(standing.stretches) > 1:
            self._choose(standing.stretches)
        else:
            self.spotted.emit(standing.stretches[0] if standing.stretches else standing.spot)

    def _choose(self, stretches: Sequence[Spot]) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for spot in stretches:
            quote = plain_quote(spot.title, spot.quote)
            words = f"{spot_name(spot)}: {quote}" if quote else spot_name(spot)
            menu.addAction(menu_words(menu, self._theme, words)).setData(spot)
        menu.triggered.connect(lambda action: self.spotted.emit(action.data()))
        menu.popup(self.mapToGlobal(QPoint(0, self.height())))


class StandingMark(StandingLink):
    """The quiet line at the foot of a chip."""

    def __init__(self, theme: Theme, standing: Standing) -> None:
        super().__init__(
            theme, standing, standing_words(standing), kind="aside", icon_name=_ICONS[standing.how]
        )
        side = theme.px(13)
        self.setIconSize(QSize(side, side))


class StandingList(QWidget):
    """Every such block of an answer, a line each: its place, which leads on, and how it stands."""

    traced = Signal(object)
    spotted = Signal(object)

    def __init__(self, theme: Theme, above_px: int) -> None:
        super().__init__()
        self._theme = theme
        self._shown: tuple[Standing, ...] = ()
        self._open = False
        column = QVBoxLayout(self)
        column.setContentsMargins(0, above_px, 0, 0)
        column.setSpacing(4)
        column.addWidget(Label(theme, "Not read anew", bold=True))
        self._rows = QVBoxLayout()
        self._rows.setSpacing(0)
        column.addLayout(self._rows)
        self.more = TextButton(theme, "Show more passages", kind="link")
        self.more.clicked.connect(self._toggle)
        column.addWidget(self.more, 0, Qt.AlignmentFlag.AlignLeft)
        self.links: list[StandingLink] = []
        theme.changed.connect(self._fill)
        self.hide()

    def show_standings(self, standings: Sequence[Standing]) -> None:
        if tuple(standings) == self._shown:
            return
        self._shown, self._open = tuple(standings), False
        self._fill()

    def _fill(self) -> None:
        clear(self._rows)
        self.links = []
        for standing in self._shown if self._open else self._shown[:N_COLLAPSED]:
            spot = standing.spot
            link = StandingLink(self._theme, standing, place_name(spot.title, spot.page), kind="link")
            link.traced.connect(self.traced)
            link.spotted.connect(self.spotted)
            self.links.append(link)
            how = Label(self._theme, standing_words(standing), kind="muted", size=SMALL_PX)
            how.setWordWrap(False)
            row = QWidget()
            line = QHBoxLayout(row)
            line.setContentsMargins(0, 0, 0, 0)
            line.addWidget(link, 1)
            line.addWidget(how)
            self._rows.addWidget(row)
        rest = len(self._shown) - N_COLLAPSED
        words = "Show fewer passages" if self._open else f"Show {count(max(0, rest), 'more passage')}"
        self.more.setText(words)
        self.more.setToolTip(words)
        self.more.setAccessibleName(words)
        self.more.setVisible(rest > 0)
        self.setVisible(bool(self._shown))

    def _toggle(self) -> None:
        self._open = not self._open
        self._fill()
