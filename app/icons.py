"""The icon set: line drawings in ``assets/icons``, tinted with a colour of the theme."""

from functools import cache
from pathlib import Path

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

FOLDER = Path(__file__).resolve().parent.parent / "assets" / "icons"


@cache
def _source(name: str) -> str:
    return (FOLDER / f"{name}.svg").read_text(encoding="utf-8")


@cache
def pixmap(name: str, colour: str, size_px: int, ratio: float = 1.0) -> QPixmap:
    """The icon ``name`` in ``colour`` at ``size_px`` device-independent pixels."""
    drawn = QPixmap(round(size_px * ratio), round(size_px * ratio))
    drawn.fill(Qt.GlobalColor.transparent)
    renderer = QSvgRenderer(QByteArray(_source(name).replace("currentColor", colour).encode()))
    painter = QPainter(drawn)
    renderer.render(painter, QRectF(0, 0, drawn.width(), drawn.height()))
    painter.end()
    drawn.setDevicePixelRatio(ratio)
    return drawn


def icon(name: str, colour: str, size_px: int = 20) -> QIcon:
    """A tinted icon, sharp on screens with one, two and three device pixels a pixel."""
    made = QIcon()
    for ratio in (1.0, 2.0, 3.0):
        made.addPixmap(pixmap(name, colour, size_px, ratio))
    return made


def app_icon() -> QIcon:
    return QIcon(str(FOLDER / "slipstream.svg"))
