"""What the user asked to have read and has not been read yet: it outlives a crash."""

import json
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.store.database import Database


@dataclass(frozen=True, slots=True)
class ToRead:
    """One path that was asked for. A password is never kept."""

    id: int
    path: Path
    ocr: bool


class ReadingStore:
    def __init__(self, db: Database) -> None:
        self._db = db

    def list(self) -> tuple[ToRead, ...]:
        """Everything that was asked for and is not done, the oldest first."""
        rows = self._db.rows("SELECT id, path, options FROM to_read ORDER BY id")
        return tuple(
            ToRead(number, Path(os.fsdecode(path)), ocr=bool(json.loads(options).get("ocr")))
            for number, path, options in rows
        )

    def add(self, paths: Sequence[Path], *, ocr: bool = False) -> tuple[int, ...]:
        """Note paths; their numbers, in order."""
        options = json.dumps({"ocr": True} if ocr else {})
        with self._db.write():
            return tuple(
                self._db.run(
                    "INSERT INTO to_read (path, options, added_at) VALUES (?, ?, ?)",
                    [os.fsencode(path), options, time.time()],
                )
                for path in paths
            )

    def remove(self, numbers: Iterable[int]) -> None:
        """These are done, or not wanted any more."""
        with self._db.write():
            self._db.run_many("DELETE FROM to_read WHERE id = ?", ((number,) for number in numbers))
