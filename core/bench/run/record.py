"""What an interrupted run leaves: its settings and every question that was measured, a JSON line each."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from core.bench.run.measured import Measured, as_row, from_row
from core.errors import KnownError, SettingsError

_VERSION = 1


class Record:
    """A file that grows by a line a question; without a path nothing is kept."""

    def __init__(self, path: Path | None, settings: Mapping[str, Any]) -> None:
        """Read what is there, or begin a new file. ``settings``: what two runs must agree on to be one.

        Raises SettingsError for a file of a run with other settings, KnownError for one that is no record.
        """
        self.rows: dict[str, list[Measured]] = {}
        """By policy, in the order in which it asked."""
        self.fixed: dict[str, Any] = dict(settings)
        """The settings as the file says them: sizes that the first run chose stay."""
        self._file: TextIO | None = None
        if path is None:
            return
        try:
            lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
            whole = self._read(path, lines, settings)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("w" if not whole else "r+", encoding="utf-8")
            if whole:
                self._file.truncate(sum(len(line.encode()) + 1 for line in whole))
                self._file.seek(0, 2)
            else:
                self._write({"version": _VERSION, "settings": self.fixed})
        except OSError as error:
            raise KnownError(f"The record {path} cannot be used.", details=str(error)) from error

    def _read(self, path: Path, lines: list[str], settings: Mapping[str, Any]) -> list[str]:
        """The lines that are whole: the last one may have been cut."""
        whole: list[str] = []
        for number, line in enumerate(lines):
            try:
                entry = json.loads(line)
                if number == 0:
                    self._compare(path, entry, settings)
                else:
                    self.rows.setdefault(entry["policy"], []).append(from_row(entry["row"]))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                if number and number == len(lines) - 1:
                    break
                raise KnownError(
                    f"{path} is no record of a benchmark.",
                    hint="Name another file with --resume, or remove it.",
                    details=f"line {number + 1}: {error}",
                ) from error
            whole.append(line)
        return whole

    def _compare(self, path: Path, entry: dict[str, Any], settings: Mapping[str, Any]) -> None:
        if entry["version"] != _VERSION:
            raise KnownError(
                f"{path} was written by another version.", hint="Name another file with --resume."
            )
        self.fixed = entry["settings"]
        plain = json.loads(json.dumps(settings))
        for name, value in plain.items():
            if not name.endswith("_bytes") and self.fixed.get(name) != value:
                raise SettingsError(
                    f"{path} is the record of another run:"
                    f" its {name} is {self.fixed.get(name)!r}, not {value!r}.",
                    hint="Name another file with --resume, or give the same options.",
                )

    def add(self, policy: str, row: Measured) -> None:
        self._write({"policy": policy, "row": as_row(row)})

    def _write(self, entry: Mapping[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(entry) + "\n")
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
