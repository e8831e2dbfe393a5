"""Colours, fonts and sizes of the window: a handful of tokens, light and dark.

Everything visible asks the one `Theme` object, which follows the system or the user's choice and says
`changed` when either changes. Tier colours are the same in both schemes and always stand beside words.
"""

import dataclasses
from dataclasses import dataclass
from string import Template
from typing import Final

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

from app.icons import FOLDER
from core.config import Settings
from core.types import Tier

MIN_CONTRAST: Final = 4.5
"""WCAG AA for text."""

INTERFACE_PX: Final = 13
READING_PX: Final = 15
SMALL_PX: Final = 12
HEADING_PX: Final = 20

TIER_COLOURS: Final = {
    Tier.LIVE: "#009E73",
    Tier.RAM: "#0072B2",
    Tier.SSD: "#56B4E9",
    Tier.PREFILLED: "#E69F00",
    Tier.REFERENCED: "#8C8C88",
}
"""Safe for colour-blind eyes (Okabe-Ito); REFERENCED is drawn hatched. PENDING takes the border token."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Opaque colours as ``#RRGGBB``. Text, muted, accent and danger are readable on the first three."""

    background: str
    surface: str
    hover: str
    border: str
    text: str
    muted: str
    accent: str
    on_accent: str
    danger: str
    mark: str
    """Behind a quoted sentence; carries ``text``."""


LIGHT: Final = Tokens(
    background="#FFFFFF",
    surface="#F6F6F3",
    hover="#ECECE8",
    border="#DADAD4",
    text="#1D1D1B",
    muted="#60605A",
    accent="#2A5C8F",
    on_accent="#FFFFFF",
    danger="#AE2A1F",
    mark="#FBEBC4",
)
DARK: Final = Tokens(
    background="#1B1B1D",
    surface="#232326",
    hover="#2E2E32",
    border="#3D3D42",
    text="#E7E6E2",
    muted="#A9A8A2",
    accent="#8DB9E6",
    on_accent="#14202C",
    danger="#F2A097",
    mark="#4A3D1C",
)

_IMAGES = (("arrow", "combo"), ("check", "check"))
"""Names in the stylesheet, and files that come in both schemes."""

_STYLE = Template("""
QWidget#bar, QWidget#pane, QWidget#rightPane { background: $surface; }
QWidget#rightPane { border-left: 1px solid $border; }
QWidget#centre, QAbstractScrollArea#paper { background: $background; }
QAbstractScrollArea#paper, QListView#plain { border: none; }
QListView#plain { background: transparent; outline: none; }
QTextBrowser { background: transparent; border: none; selection-background-color: $accent;
  selection-color: $on_accent; }
QStackedWidget#reading { border-top: 1px solid $border; }
QLabel#muted { color: $muted; }
QLabel#danger { color: $danger; }
QPushButton { color: $text; background: $background; border: 1px solid $border; border-radius: ${r}px;
  padding: ${p1}px ${p2}px; min-height: ${target}px; }
QPushButton:hover { background: $hover; }
QPushButton:pressed { background: $border; }
QPushButton:checked { color: $accent; background: $hover; border: 1px solid $accent; }
QPushButton:disabled { color: $muted; background: $surface; border: 1px solid $border; }
QPushButton:checked:disabled { background: $hover; }
QPushButton:focus { border: 1px solid $accent; }
QPushButton#primary { color: $on_accent; background: $accent; border: 1px solid $accent; }
QPushButton#primary:focus { border: 2px solid $text; }
QPushButton#primary:disabled { color: $muted; background: $hover; border: 1px solid $border; }
QPushButton#quiet { background: transparent; border: 1px solid transparent; text-align: left; }
QPushButton#quiet:hover { background: $hover; }
QPushButton#quiet:checked { color: $text; background: $hover; border: 1px solid transparent; }
QPushButton#quiet:focus { border: 1px solid $accent; }
QPushButton#link { background: transparent; color: $accent; border: 1px solid transparent;
  padding: ${p1}px 0px; text-align: left; }
QPushButton#link:hover { text-decoration: underline; }
QPushButton#link:focus { border: 1px solid $accent; }
QPushButton#aside { background: transparent; color: $muted; border: 1px solid transparent; padding: 0px;
  min-height: 0px; text-align: left; }
QPushButton#aside:hover { color: $text; text-decoration: underline; }
QPushButton#aside:focus { border: 1px solid $accent; }
QPushButton#prompt { text-align: left; padding: ${p2}px ${p3}px; }
QPushButton::menu-indicator { width: 0px; }
QToolButton { background: transparent; border: 1px solid transparent; border-radius: ${r}px;
  min-width: ${square}px; min-height: ${square}px; }
QToolButton:hover { background: $hover; }
QToolButton:pressed, QToolButton:checked { background: $hover; }
QToolButton:focus { border: 1px solid $accent; }
QToolButton#send { background: $accent; }
QToolButton#send:focus { border: 2px solid $text; }
QToolButton#send:disabled { background: $hover; }
QToolButton#stop { background: $text; }
QToolButton#stop:focus { border: 2px solid $accent; }
QFrame#inputBox { background: $background; border: 1px solid $border; border-radius: ${r2}px; }
QFrame#inputBox[active="true"] { border: 1px solid $accent; }
QFrame#inputBox QPlainTextEdit { background: transparent; border: none; }
QFrame#problem { background: $surface; border: 1px solid $border; border-left: 3px solid $danger;
  border-radius: ${r}px; }
QFrame#row { border: none; border-bottom: 1px solid $border; }
QFrame#panel { background: $surface; border: 1px solid $border; border-radius: ${r}px; }
QListWidget#problems { background: $surface; border: 1px solid $border; border-radius: ${r}px;
  padding: ${p1}px; outline: none; }
QListWidget#problems::item { color: $text; padding: ${p1}px; }
QFrame#popup { background: $background; border: 1px solid $border; }
QFrame#popup QListView::item { color: $text; padding: ${p1}px; border-radius: ${r}px; }
QFrame#popup QListView::item:hover, QFrame#popup QListView::item:selected { background: $hover; }
QLineEdit, QComboBox { background: $background; color: $text; border: 1px solid $border;
  border-radius: ${r}px; padding: ${p1}px ${p2}px; min-height: ${target}px;
  selection-background-color: $accent; selection-color: $on_accent; }
QLineEdit:focus, QComboBox:focus { border: 1px solid $accent; }
QComboBox::drop-down { border: none; width: ${square}px; }
QComboBox::down-arrow { image: url("$arrow"); width: ${p3}px; height: ${p3}px; }
QCheckBox { spacing: ${p2}px; }
QCheckBox::indicator { background: $background; border: 1px solid $muted; border-radius: 4px;
  width: ${p3}px; height: ${p3}px; }
QCheckBox::indicator:checked { background: $accent; border: 1px solid $accent; image: url("$check"); }
QCheckBox::indicator:focus { border: 2px solid $accent; width: ${inside}px; height: ${inside}px; }
QCheckBox::indicator:checked:focus { border: 2px solid $text; }
QComboBox QAbstractItemView { background: $background; border: 1px solid $border; outline: none; }
QTabBar { qproperty-drawBase: 0; }
QTabBar::tab { color: $muted; padding: ${p2}px ${p1}px; margin-right: ${p2}px; border: none;
  border-bottom: 2px solid transparent; }
QTabBar::tab:selected { color: $text; border-bottom: 2px solid $accent; }
QTabBar::tab:hover { color: $text; }
QTabBar:focus { outline: none; }
QTabBar::tab:selected:focus { border-bottom: 3px solid $accent; }
QProgressBar { background: $border; border: none; border-radius: 2px; max-height: 4px; min-height: 4px; }
QProgressBar::chunk { background: $accent; border-radius: 2px; }
QDialogButtonBox { dialogbuttonbox-buttons-have-icons: 0; }
QMenu { background: $background; border: 1px solid $border; padding: ${p1}px; }
QMenu::item { color: $text; padding: ${p1}px ${p3}px; border-radius: ${r}px; }
QMenu::item:selected { background: $hover; }
QMenu::item:disabled { color: $muted; }
QMenu::separator { background: $border; height: 1px; margin: ${p1}px ${p2}px; }
QToolTip { color: $text; background: $surface; border: 1px solid $border; padding: ${p1}px; }
QAbstractScrollArea::corner { background: transparent; border: none; }
QScrollBar:vertical { background: transparent; width: 10px; margin: 0; }
QScrollBar::handle:vertical { background: $border; border-radius: 3px; min-height: 32px; margin: 2px; }
QScrollBar::handle:vertical:hover { background: $muted; }
QScrollBar:horizontal { background: transparent; height: 10px; margin: 0; }
QScrollBar::handle:horizontal { background: $border; border-radius: 3px; min-width: 32px; margin: 2px; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: none; }
""")


def luminance(colour: str) -> float:
    """Relative luminance of an opaque ``#RRGGBB`` colour as WCAG 2 defines it: 0 black, 1 white."""

    def linear(channel: int) -> float:
        value = channel / 255
        return value / 12.92 if value <= 0.04045 else float(((value + 0.055) / 1.055) ** 2.4)

    red, green, blue = (linear(int(colour[i : i + 2], 16)) for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two opaque colours: 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def readable(tokens: Tokens, accent: str) -> bool:
    """Whether ``accent`` can stand in for the tokens' own as text and as a button."""
    grounds = (tokens.background, tokens.surface, tokens.hover)
    return all(contrast(accent, ground) >= MIN_CONTRAST for ground in (*grounds, tokens.on_accent))


class Theme(QObject):
    """What the window looks like now. `apply` puts it on the application."""

    changed = Signal()

    def __init__(self, settings: Settings, *, kiosk: bool = False) -> None:
        super().__init__()
        self.kiosk = kiosk
        self._settings = settings
        self._system_accent = QGuiApplication.palette().color(QPalette.ColorRole.Accent).name()
        self._family = QFont(QApplication.font())
        self.tokens = LIGHT
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._follow_system)

    @property
    def dark(self) -> bool:
        if self._settings.theme == "system":
            return QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark
        return self._settings.theme == "dark"

    @property
    def scale(self) -> float:
        return self._settings.text_scale * (1.5 if self.kiosk else 1.0)

    def px(self, size: float) -> int:
        """A length in device-independent pixels, scaled with the text."""
        return round(size * self.scale)

    def font(self, size: int = INTERFACE_PX, *, bold: bool = False) -> QFont:
        """The system font; its digits are all of one width."""
        font = QFont(self._family)
        font.setPixelSize(self.px(size))
        font.setWeight(QFont.Weight.DemiBold if bold else QFont.Weight.Normal)
        font.setFeature(QFont.Tag("tnum"), 1)
        return font

    def colour(self, tier: Tier) -> QColor:
        return QColor(TIER_COLOURS.get(tier, self.tokens.border))

    def set_settings(self, settings: Settings) -> None:
        self._settings = settings
        self.apply()

    def apply(self) -> None:
        """Set palette, font and stylesheet of the application."""
        tokens = DARK if self.dark else LIGHT
        if readable(tokens, self._system_accent):
            tokens = dataclasses.replace(tokens, accent=self._system_accent)
        self.tokens = tokens
        app = QApplication.instance()
        if not isinstance(app, QApplication):
            return
        app.setPalette(palette(tokens))
        app.setFont(self.font())
        app.setStyleSheet(self._style())
        self.changed.emit()

    def _style(self) -> str:
        scheme = "dark" if self.tokens.background == DARK.background else "light"
        files = {name: (FOLDER / f"{file}-{scheme}.svg").as_posix() for name, file in _IMAGES}
        lengths = {
            "r": 8,
            "r2": 12,
            "p1": self.px(4),
            "p2": self.px(8),
            "p3": self.px(12),
            "inside": self.px(12) - 2,
            "target": 46 if self.kiosk else self.px(18),
            "square": 48 if self.kiosk else self.px(28),
        }
        return _STYLE.substitute(dataclasses.asdict(self.tokens), **files, **lengths)

    def _follow_system(self) -> None:
        if self._settings.theme == "system":
            self.apply()


def palette(tokens: Tokens) -> QPalette:
    """The tokens in the roles that the platform's style asks for."""
    role = QPalette.ColorRole
    made = QPalette()
    for name, colour in (
        (role.Window, tokens.background),
        (role.Base, tokens.background),
        (role.AlternateBase, tokens.surface),
        (role.Button, tokens.surface),
        (role.Light, tokens.background),
        (role.Midlight, tokens.hover),
        (role.Mid, tokens.border),
        (role.Dark, tokens.muted),
        (role.Shadow, tokens.border),
        (role.WindowText, tokens.text),
        (role.Text, tokens.text),
        (role.ButtonText, tokens.text),
        (role.BrightText, tokens.danger),
        (role.PlaceholderText, tokens.muted),
        (role.ToolTipBase, tokens.surface),
        (role.ToolTipText, tokens.text),
        (role.Highlight, tokens.accent),
        (role.HighlightedText, tokens.on_accent),
        (role.Accent, tokens.accent),
        (role.Link, tokens.accent),
        (role.LinkVisited, tokens.accent),
    ):
        made.setColor(name, QColor(colour))
    for name in (role.WindowText, role.Text, role.ButtonText):
        made.setColor(QPalette.ColorGroup.Disabled, name, QColor(tokens.muted))
    return made
