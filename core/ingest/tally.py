"""What became of the files of one run, as it is told while they are read and at the end."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from core.ingest.walk import storable
from core.types import DocumentInfo, IngestProgress

_PROGRESS_EVERY_S = 0.05


@dataclass(frozen=True, slots=True)
class IngestSummary:
    """What became of the files."""

    n_files: int = 0
    n_added: int = 0
    """Read for the first time, or under a new name."""
    n_changed: int = 0
    """Read again because they had changed."""
    n_unchanged: int = 0
    """In the library already."""
    n_failed: int = 0
    """Could not be read; each one is in ``problems``."""
    n_skipped: int = 0
    """In folders, of a kind that is not read."""
    n_blocks: int = 0
    """Blocks of the files added and changed; shared ones count each time."""
    n_bytes: int = 0
    """Of the files added and changed."""
    seconds: float = 0.0
    cancelled: bool = False
    problems: tuple[tuple[str, str], ...] = ()
    """Path, and what is wrong with it and what to do."""


class Tally:
    """The counts of one run, and whoever wants to know them."""

    def __init__(self, progress: Callable[[IngestProgress], None], finished: Callable[[Path], None]) -> None:
        """``progress`` is told at most 20 times a second, ``finished`` of each file that was dealt with."""
        self._progress = progress
        self._finished = finished
        self._started = time.monotonic()
        self._reported_s = 0.0
        self._counts = {"added": 0, "changed": 0, "unchanged": 0, "failed": 0}
        self._problems: list[tuple[str, str]] = []
        self._n_files = 0
        self._n_bytes = 0
        self._n_bytes_done = 0
        self._n_bytes_read = 0
        self._n_blocks = 0

    def expect(self, n_files: int, n_bytes: int) -> None:
        """So many files were found, besides the paths that are problems already."""
        self._n_files = n_files + self._counts["failed"]
        self._n_bytes = n_bytes

    def problem(self, path: str, message: str, size: int = 0) -> None:
        """A path could not be read."""
        self._problems.append((storable(path), storable(message)))
        self._count("failed", size)

    def unchanged(self, path: Path, size: int) -> None:
        self._count("unchanged", size)
        self._finished(path)

    def was_read(self, path: Path, size: int, info: DocumentInfo, *, again: bool) -> None:
        self._n_blocks += info.n_blocks
        self._n_bytes_read += info.n_bytes
        self._count("changed" if again else "added", size)
        self._finished(path)

    def failed(self, path: Path, size: int, message: str) -> None:
        self.problem(str(path), message, size)
        self._finished(path)

    def _count(self, outcome: str, size: int) -> None:
        self._counts[outcome] += 1
        self._n_bytes_done += size

    def report(self, current: str) -> None:
        """Tell how far it is, unless that was told just now. ``current``: name of the file in hand."""
        if time.monotonic() - self._started - self._reported_s >= _PROGRESS_EVERY_S:
            self.report_now(current)

    def report_now(
        self, current: str = "", *, running: bool = True, cancelled: bool = False, paused: bool = False
    ) -> None:
        self._reported_s = time.monotonic() - self._started
        self._progress(
            IngestProgress(
                running=running,
                n_files=self._n_files,
                n_done=sum(self._counts.values()),
                n_failed=self._counts["failed"],
                n_blocks=self._n_blocks,
                n_bytes_done=self._n_bytes_done,
                n_bytes=self._n_bytes,
                current=storable(current),
                elapsed_s=self._reported_s,
                cancelled=cancelled,
                problems=() if running else tuple(self._problems),
                paused=paused,
            )
        )

    def summary(self, *, n_skipped: int, cancelled: bool) -> IngestSummary:
        return IngestSummary(
            n_files=self._n_files,
            n_added=self._counts["added"],
            n_changed=self._counts["changed"],
            n_unchanged=self._counts["unchanged"],
            n_failed=self._counts["failed"],
            n_skipped=n_skipped,
            n_blocks=self._n_blocks,
            n_bytes=self._n_bytes_read,
            seconds=time.monotonic() - self._started,
            cancelled=cancelled,
            problems=tuple(self._problems),
        )
