"""SVG by hand: shapes, axes and rows that all plots of the page share.

Text and lines take the page's colour (``currentColor``), so that one picture serves light, dark and paper.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from core.bench.report.escape import escape

WIDTH = 760
"""Units of the viewBox; the page scales it. Text is 13 of them, as the page's own."""
LEFT = 196
RIGHT = 150
PLOT = WIDTH - LEFT - RIGHT
_LETTER = 6.6
"""A wide guess of a letter's width at size 13: names are cut by it, never measured."""
_MUTED = ".7"


@dataclass(frozen=True, slots=True)
class Scale:
    """Values → x. ``ticks`` are what the axis shows; logarithmic scales begin above 0."""

    low: float
    high: float
    ticks: tuple[float, ...]
    logarithmic: bool = False

    def x(self, value: float) -> float:
        """Values beyond the scale stand at its ends."""
        inside = min(max(value, self.low), self.high)
        if self.logarithmic:
            part = math.log(inside / self.low) / math.log(self.high / self.low)
        else:
            part = (inside - self.low) / (self.high - self.low)
        return LEFT + PLOT * part


def linear(values: Sequence[float], *, n_ticks: int = 5) -> Scale:
    """From the least to the greatest value, out to round numbers; 0 is always on it."""
    low, high = min(0.0, *values), max(0.0, *values)
    if high == low:
        high = low + 1.0
    rough = (high - low) / n_ticks
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((factor * power for factor in (1, 2, 5) if factor * power >= rough), 10 * power)
    first, last = math.floor(low / step), math.ceil(high / step)
    return Scale(first * step, last * step, tuple(n * step for n in range(first, last + 1)))


def logarithmic(values: Sequence[float]) -> Scale:
    """Ticks at 1, 2 and 5 of every power of ten; only at powers where there would be many."""
    positive = [value for value in values if value > 0] or [1.0]
    marks = [
        float(f"{factor}e{power}")
        for power in range(
            math.floor(math.log10(min(positive))) - 1, math.ceil(math.log10(max(positive))) + 2
        )
        for factor in (1, 2, 5)
    ]
    low = max(mark for mark in marks if mark <= min(positive))
    high = min(mark for mark in marks if mark >= max(positive) and mark > low)
    ticks = [mark for mark in marks if low <= mark <= high]
    if len(ticks) > 9:
        powers = [mark for mark in ticks if f"{mark:e}".startswith("1.0")]
        ticks = powers[:: 1 + len(powers) // 9]
    return Scale(low, high, tuple(ticks), logarithmic=True)


def picture(height: float, parts: Sequence[str], label: str) -> str:
    """The whole ``svg`` element; ``label`` says in words what is to be seen."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="{escape(label)}" font-size="13">{"".join(parts)}</svg>'
    )


def text(
    x: float,
    y: float,
    what: str,
    *,
    anchor: str = "start",
    muted: bool = False,
    bold: bool = False,
    size: int = 13,
) -> str:
    look = (f' fill-opacity="{_MUTED}"' if muted else "") + (' font-weight="600"' if bold else "")
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="currentColor"{look}>'
        f"{escape(what)}</text>"
    )


def rect(
    x: float, y: float, width: float, height: float, colour: str, *, title: str = "", opacity: str = ""
) -> str:
    look = f' fill-opacity="{opacity}"' if opacity else ""
    inside = f"<title>{escape(title)}</title>" if title else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}" '
        f'fill="{colour}"{look}>{inside}</rect>'
    )


def line(
    x1: float, y1: float, x2: float, y2: float, *, width: float = 1, opacity: str = "1", dash: str = ""
) -> str:
    look = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="currentColor" '
        f'stroke-width="{width}" stroke-opacity="{opacity}"{look}/>'
    )


def arrow(x: float, y: float, colour: str, *, left: bool) -> str:
    """Points out of the plot: the value lies beyond its edge."""
    tip, back = (x - 7, x + 4) if left else (x + 7, x - 4)
    return f'<path d="M{tip:.1f} {y:.1f}L{back:.1f} {y - 6:.1f}L{back:.1f} {y + 6:.1f}Z" fill="{colour}"/>'


def dot(x: float, y: float, radius: float, colour: str = "currentColor") -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}"/>'


def row_label(y: float, name: str, below: str, *, strong: bool = False) -> str:
    """The name of a row, and a few words under it; ``y`` is the row's middle."""
    room = LEFT - 14
    small = text(0, y + 12, cut(below, room * 13 / 11.5), muted=True, size=11) if below else ""
    return (
        f"<g><title>{escape(name)}</title>"
        f"{text(0, y - 2 if below else y + 4, cut(name, room), bold=strong)}{small}</g>"
    )


def axis(scale: Scale, top: float, bottom: float, labels: Sequence[str]) -> list[str]:
    """Faint lines at the ticks, and what they stand for below."""
    parts = []
    for tick, label in zip(scale.ticks, labels, strict=True):
        x = scale.x(tick)
        parts += [
            line(x, top, x, bottom, opacity=".15"),
            text(x, bottom + 16, label, anchor="middle", muted=True, size=11),
        ]
    return parts


def legend(y: float, entries: Sequence[tuple[str, str]]) -> list[str]:
    """``(colour, words)`` side by side from the plot's left edge; from the picture's where they are long."""
    widths = [34 + len(words) * _LETTER * 12 / 13 for _, words in entries]
    x = float(LEFT) if sum(widths) < WIDTH - LEFT else 0.0
    parts = []
    for (colour, words), width in zip(entries, widths, strict=True):
        parts += [rect(x, y - 10, 11, 11, colour), text(x + 16, y, words, size=12)]
        x += width
    return parts


def cut(what: str, room: float) -> str:
    """Shortened at its end to about ``room`` units; the whole stands in the row's title."""
    letters = max(1, int(room / _LETTER))
    return what if len(what) <= letters else what[: letters - 1] + "…"
