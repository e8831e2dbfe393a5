"""Energy, where the platform tells: the counters of the processor packages under Linux (RAPL)."""

from pathlib import Path

_POWERCAP = Path("/sys/class/powercap")


class EnergyMeter:
    """Counters of all packages together. They wrap around, and are often for the administrator only."""

    def __init__(self, folder: Path = _POWERCAP) -> None:
        self._counters: list[tuple[Path, int]] = []
        for package in sorted(folder.glob("intel-rapl:?")):
            try:
                largest = int((package / "max_energy_range_uj").read_text())
                int((package / "energy_uj").read_text())
            except (OSError, ValueError):
                continue
            self._counters.append((package / "energy_uj", largest))

    def read(self) -> list[int] | None:
        """Microjoules of each package; None where nothing is told."""
        try:
            return [int(path.read_text()) for path, _ in self._counters] or None
        except (OSError, ValueError):
            return None

    def joules(self, before: list[int] | None, after: list[int] | None) -> float | None:
        """Between two readings."""
        if before is None or after is None:
            return None
        spans = zip(before, after, self._counters, strict=True)
        return sum((late - early) % (largest + 1) for early, late, (_, largest) in spans) / 1e6
