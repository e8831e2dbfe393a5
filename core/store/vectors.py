"""Vectors of blocks, as whole numbers and a scale each. They go with their block."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.store.database import Database

_ROWS_PER_READ = 2000
_MOST_INT8 = 127


@dataclass(frozen=True, slots=True, eq=False)
class StoredVectors:
    """The vectors of many blocks, one window a row."""

    ids: NDArray[np.int64]
    """Number of the block's entry, ascending and never used again: int64 ``(n,)``."""
    blocks: NDArray[np.int64]
    """Rowid of the block: int64 ``(n,)``."""
    scales: NDArray[np.float32]
    """What a row is multiplied by to get its vector: float32 ``(n,)``."""
    vectors: NDArray[np.int8]
    """int8 ``(n, n_dims)``."""

    def __len__(self) -> int:
        return len(self.ids)


def quantized(vectors: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Rows as whole numbers in −127 … 127, and the scale of each."""
    scales = np.maximum(np.abs(vectors).max(axis=1), np.float32(1e-12)) / np.float32(_MOST_INT8)
    return np.rint(vectors / scales[:, None]).astype(np.int8), scales.astype(np.float32)


class VectorStore:
    """The vectors that one embedder made."""

    def __init__(self, db: Database, embedder_id: str, n_dims: int) -> None:
        self._db = db
        self._embedder_id = embedder_id
        self._n_dims = n_dims

    def add(self, rows: Sequence[tuple[int, str, NDArray[np.float32]]]) -> None:
        """Store the vectors of blocks, each with rowid, block id and its windows, float32 ``(n, n_dims)``.

        A block that is gone meanwhile, or was stored before, is passed over.
        """
        found = []
        for rowid, block_id, windows in rows:
            vectors, scales = quantized(windows)
            found.append((self._embedder_id, scales.tobytes(), vectors.tobytes(), rowid, block_id))
        with self._db.write():
            self._db.run_many(
                "INSERT OR IGNORE INTO block_vectors (block, embedder_id, scales, vectors)"
                " SELECT rowid, ?, ?, ? FROM blocks WHERE rowid = ? AND id = ?",
                found,
            )

    def missing(self, after: int, limit: int) -> list[tuple[int, str, str]]:
        """Rowid, id and text of the next blocks without vectors behind the rowid ``after``."""
        rows = self._db.rows(
            "SELECT rowid, id, text FROM blocks WHERE rowid > ? AND NOT EXISTS (SELECT 1 FROM block_vectors"
            " WHERE embedder_id = ? AND block = blocks.rowid) ORDER BY rowid LIMIT ?",
            (after, self._embedder_id, limit),
        )
        return [(rowid, block_id, text) for rowid, block_id, text in rows]

    def version(self) -> int:
        """As ``Database.version``."""
        return self._db.version()

    def count(self) -> tuple[int, int]:
        """Blocks that have vectors, and blocks."""
        row = self._db.row(
            "SELECT (SELECT count(*) FROM block_vectors WHERE embedder_id = ?),"
            " (SELECT count(*) FROM blocks)",
            [self._embedder_id],
        )
        return (0, 0) if row is None else (int(row[0]), int(row[1]))

    def ids(self) -> NDArray[np.int64]:
        """Numbers of all entries, ascending: int64 ``(n_blocks,)``."""
        rows = self._db.rows(
            "SELECT id FROM block_vectors WHERE embedder_id = ? ORDER BY id", [self._embedder_id]
        )
        return np.array([row[0] for row in rows], np.int64)

    def since(self, last_id: int) -> StoredVectors:
        """What was stored after the entry ``last_id``."""
        ids: list[NDArray[np.int64]] = []
        blocks: list[NDArray[np.int64]] = []
        scales: list[NDArray[np.float32]] = []
        vectors: list[NDArray[np.int8]] = []
        while rows := self._db.rows(
            "SELECT id, block, scales, vectors FROM block_vectors WHERE embedder_id = ? AND id > ?"
            " ORDER BY id LIMIT ?",
            (self._embedder_id, last_id, _ROWS_PER_READ),
        ):
            last_id = int(rows[-1][0])
            n_windows = [len(row[2]) // 4 for row in rows]
            ids.append(np.repeat(np.array([row[0] for row in rows], np.int64), n_windows))
            blocks.append(np.repeat(np.array([row[1] for row in rows], np.int64), n_windows))
            scales.append(np.frombuffer(b"".join(row[2] for row in rows), np.float32))
            vectors.append(np.frombuffer(b"".join(row[3] for row in rows), np.int8).reshape(-1, self._n_dims))
        return StoredVectors(
            np.concatenate(ids) if ids else np.empty(0, np.int64),
            np.concatenate(blocks) if blocks else np.empty(0, np.int64),
            np.concatenate(scales) if scales else np.empty(0, np.float32),
            np.concatenate(vectors) if vectors else np.empty((0, self._n_dims), np.int8),
        )

    def forget_others(self) -> None:
        """Remove what other embedders made."""
        with self._db.write():
            self._db.run("DELETE FROM block_vectors WHERE embedder_id <> ?", [self._embedder_id])
