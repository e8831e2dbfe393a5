"""Numbers as people read them: always with their unit, a dash where there is none."""

import math
from collections.abc import Callable, Mapping

MISSING = "–"


def seconds(value: float | None) -> str:
    """Three digits are enough everywhere: the spread of what is measured is wider."""
    if value is None:
        return MISSING
    size = abs(value)
    if 0 < size < 0.1:
        return _minus(f"{value * 1000:.3g} ms")
    return _minus(f"{value:.2f} s" if size < 10 else f"{value:.1f} s" if size < 100 else f"{value:,.0f} s")


def milliseconds(value: float | None) -> str:
    return MISSING if value is None else seconds(value / 1000) if abs(value) >= 100 else f"{value:.3g} ms"


def ratio(value: float | None) -> str:
    if value is None:
        return MISSING
    return f"{value:.3f}" if abs(value) < 0.1 else f"{value:.2f}" if abs(value) < 10 else f"{value:,.1f}"


def nats(value: float | None) -> str:
    """A difference, with its sign and without its unit."""
    return MISSING if value is None else _minus(f"{value:+.3f}")


def plain(value: float | None, digits: int = 2) -> str:
    return MISSING if value is None else _minus(f"{value:,.{digits}f}")


def count(value: float | None) -> str:
    """Whole numbers; from a million on in millions, so that columns stay narrow."""
    if value is None:
        return MISSING
    return f"{value:,.0f}" if abs(value) < 999_999.5 else f"{value / 1e6:,.2f}M"


def percent(share: float | None) -> str:
    """``share`` of 1. Whoever prints it names the base."""
    if share is None:
        return MISSING
    return f"{share * 100:.0f} %" if share >= 0.0995 or share == 0 else f"{share * 100:.1f} %"


def size(n_bytes: float | None) -> str:
    """Decimal units, as disks are sold."""
    if n_bytes is None:
        return MISSING
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if n_bytes >= factor:
            return (
                f"{n_bytes / factor:.3g} {unit}"
                if n_bytes < 999.5 * factor
                else f"{n_bytes / factor:,.0f} {unit}"
            )
    return f"{n_bytes:.0f} bytes"


def interval(low: float | None, high: float | None, *, signed: bool = False) -> str:
    """``0.22 to 0.27``; a dash where it is not known."""
    if low is None or high is None:
        return MISSING
    show = nats if signed else ratio
    return f"{show(low)} to {show(high)}"


def named(name: str, value: object) -> tuple[str, str]:
    """(label, text) of a figure of which only the name is known: its ending says the unit, as everywhere."""
    label = name.replace("_", " ")
    if isinstance(value, list | tuple):
        return label, ", ".join(named(name, one)[1] for one in value)
    if isinstance(value, Mapping):
        return label, ", ".join(f"{key} {named(str(key), one)[1]}" for key, one in value.items())
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return label, MISSING
    if isinstance(value, bool) or not isinstance(value, int | float):
        return label, str(value)
    for ending, show in _ENDINGS:
        if name.endswith(ending):
            return name.removesuffix(ending).replace("_", " "), show(value)
    if isinstance(value, int):
        return label, count(value)
    return label, f"{value:.2g}" if 0 < abs(value) < 0.01 else plain(value, 3)


def _gigabytes_a_second(value: float) -> str:
    return f"{value:.3g} GB/s"


_ENDINGS: tuple[tuple[str, Callable[[float], str]], ...] = (
    ("_gb_s", _gigabytes_a_second),
    ("_ms", milliseconds),
    ("_s", seconds),
    ("_bytes", size),
)


def _minus(text: str) -> str:
    """A minus as wide as a plus, so that columns of signs align."""
    return text.replace("-", "−")
