"""All vectors in memory, so that the blocks nearest to a question are found in milliseconds.

Every vector is looked at: at 100,000 blocks that takes less time than reading one page, and it is exact.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from core.retrieval.vector_kernels import products
from core.store.vectors import StoredVectors, VectorStore, quantized

_WINDOWS_A_BLOCK = 4
"""About as many windows a block has at most: the best so many windows hold ``limit`` blocks."""


class VectorIndex:
    """The vectors that one embedder made, as far as ``refresh`` has seen them. For one thread."""

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        self._held: StoredVectors | None = None
        self._n_blocks = 0
        self._version: int | None = None

    def __len__(self) -> int:
        """Blocks that are held."""
        return self._n_blocks

    def refresh(self) -> None:
        """Take over what was stored and removed since the last call."""
        version = self._store.version()
        if version == self._version:
            return
        held = self._held
        fresh = self._store.since(0 if held is None or not len(held) else int(held.ids[-1]))
        if held is None or not len(held):
            held = fresh
        elif len(fresh):
            held = StoredVectors(
                np.concatenate([held.ids, fresh.ids]),
                np.concatenate([held.blocks, fresh.blocks]),
                np.concatenate([held.scales, fresh.scales]),
                np.concatenate([held.vectors, fresh.vectors]),
            )
        n_stored, _ = self._store.count()
        n_held = len(np.unique(held.ids))
        if n_held != n_stored:  # some were removed: their vectors leave the memory as well
            kept = np.isin(held.ids, self._store.ids())
            held = replace(
                held,
                ids=held.ids[kept],
                blocks=held.blocks[kept],
                scales=held.scales[kept],
                vectors=np.ascontiguousarray(held.vectors[kept]),
            )
            n_held = len(np.unique(held.ids))
        self._held, self._n_blocks, self._version = held, n_held, version

    def nearest(
        self,
        query: NDArray[np.float32],
        limit: int,
        within: NDArray[np.int64] | None = None,
        also: NDArray[np.int64] | None = None,
    ) -> dict[int, float]:
        """Cosines of the ``limit`` nearest blocks, and of those in ``also`` that are held, by rowid.

        The nearest come first. A block is as near as its nearest window. ``within`` are the rowids that may
        be found, None for all.
        """
        held = self._held
        if held is None or not len(held):
            return {}
        vectors, scales, blocks = held.vectors, held.scales, held.blocks
        if within is not None:
            inside = np.flatnonzero(np.isin(blocks, within))
            vectors, scales, blocks = vectors[inside], scales[inside], blocks[inside]
        whole, scale = quantized(query[None, :])
        cosines = products(vectors, scales, whole[0]) * scale[0]
        n_windows = min(len(blocks), _WINDOWS_A_BLOCK * limit)
        best = np.argpartition(-cosines, n_windows - 1)[:n_windows] if n_windows else np.empty(0, np.int64)
        found: dict[int, float] = {}
        for window in best[np.lexsort((blocks[best], -cosines[best]))].tolist():
            if len(found) == limit:
                break
            found.setdefault(int(blocks[window]), float(cosines[window]))
        if also is not None:
            asked = np.flatnonzero(np.isin(blocks, also))
            for window in asked[np.argsort(-cosines[asked])].tolist():
                found.setdefault(int(blocks[window]), float(cosines[window]))
        return found
