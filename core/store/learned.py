"""What was learned in use: a state a subject, replaced as a whole, so that a kill leaves the old one."""

import io
import logging
import struct
import time
import zipfile
import zlib
from collections.abc import Mapping
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.errors import DamagedState
from core.store.database import Database

ORDER = "order:"
"""Names of order statistics begin with it; the namespace follows."""
_log = logging.getLogger(__name__)
_DAMAGE = (
    DamagedState,
    ValueError,
    OSError,
    EOFError,
    KeyError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
    NotImplementedError,  # a kind of archive that zipfile does not read
    RuntimeError,  # an encrypted one
)
"""What reading a damaged archive raises."""


class Learner(Protocol):
    """Something that can be taken up where it was left."""

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Arrays of plain numbers, bounded in size."""

    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Raises DamagedState, with nothing changed."""


_L = TypeVar("_L", bound=Learner)


class LearnedStore:
    def __init__(self, db: Database) -> None:
        self._db = db

    def save(self, name: str, learner: Learner) -> None:
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **learner.state())
        with self._db.write():
            self._db.run(
                "INSERT OR REPLACE INTO learned (name, state, updated_at) VALUES (?, ?, ?)",
                [name, buffer.getvalue(), time.time()],
            )

    def load(self, name: str, learner: _L) -> _L:
        """Let ``learner`` go on from what was stored; one that is new or damaged starts afresh."""
        row = self._db.row("SELECT state FROM learned WHERE name = ?", [name])
        if row is not None:
            try:
                with np.load(io.BytesIO(row[0]), allow_pickle=False) as arrays:
                    learner.restore(dict(arrays))
            except _DAMAGE:
                _log.warning("what was learned of %s is damaged; it starts afresh", name, exc_info=True)
        return learner

    def names(self, prefix: str) -> set[str]:
        """What follows ``prefix`` in the names that begin with it."""
        rows = self._db.rows("SELECT name FROM learned WHERE substr(name, 1, ?) = ?", [len(prefix), prefix])
        return {row[0][len(prefix) :] for row in rows}

    def delete(self, name: str) -> None:
        with self._db.write():
            self._db.run("DELETE FROM learned WHERE name = ?", [name])
        self._db.forget_deleted()

    def delete_all(self, prefix: str) -> None:
        """Delete everything whose name begins with ``prefix``."""
        with self._db.write():
            self._db.run("DELETE FROM learned WHERE substr(name, 1, ?) = ?", [len(prefix), prefix])
        self._db.forget_deleted()
