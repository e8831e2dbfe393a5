"""Which blocks mean what a question means: its vector against those of all blocks."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from core.engine.embedder import Embedder, EmbedderContext
from core.retrieval.vector_index import VectorIndex
from core.store.database import Database
from core.store.vectors import VectorStore

_BLOCKS_A_TIME = 8
_QUERY_THREADS = 2
_KEPT_VECTORS = 16


class Meaning:
    """Finds by meaning, through the connection of the thread that made it."""

    def __init__(self, embedder: Embedder, db: Database) -> None:
        self._context = EmbedderContext(embedder, _QUERY_THREADS)
        self.means_it = embedder.means_it
        """Cosine from which on a block is taken for an answer though it holds no word of the question."""
        self._known: dict[str, NDArray[np.float32]] = {}
        self._index = VectorIndex(VectorStore(db, embedder.id, embedder.n_dims))

    def close(self) -> None:
        self._context.close()

    def refresh(self) -> None:
        """Take over the vectors made and removed meanwhile; the first time that means reading all."""
        self._index.refresh()

    def nearest(
        self,
        texts: Mapping[str, float],
        limit: int,
        within: NDArray[np.int64] | None,
        also: NDArray[np.int64],
    ) -> dict[int, float]:
        """Cosines of the blocks nearest to texts, each with its weight, and of those in ``also``, by rowid.

        The nearest come first. Empty as long as no block has a vector.
        """
        self._index.refresh()
        if not len(self._index):
            return {}
        wanted = sum(np.float32(weight) * self._vector(text) for text, weight in texts.items())
        wanted = np.asarray(wanted, np.float32)
        return self._index.nearest(wanted / np.linalg.norm(wanted), limit, within, also)

    def _vector(self, text: str) -> NDArray[np.float32]:
        """Of a conversation the question before was embedded when it was asked."""
        vector = self._known.pop(text, None)
        if vector is None:
            vector = self._context.query(text)
        self._known[text] = vector
        while len(self._known) > _KEPT_VECTORS:
            del self._known[next(iter(self._known))]
        return vector


def embed_missing(
    embedder: Embedder,
    context: EmbedderContext,
    db: Database,
    *,
    wait: Callable[[], None],
    progress: Callable[[int], None],
) -> None:
    """Give every block that has none its vectors, a few at a time: what is done stays done.

    ``wait`` is called before each step of the model, to let others go first or to raise Cancelled;
    ``progress`` is told how many blocks were done, each time.
    """
    store = VectorStore(db, embedder.id, embedder.n_dims)
    after = 0
    while rows := store.missing(after, _BLOCKS_A_TIME):
        vectors, owners = context.passages([text for _, _, text in rows], wait)
        store.add([(rowid, id_, vectors[owners == index]) for index, (rowid, id_, _) in enumerate(rows)])
        after = rows[-1][0]
        progress(len(rows))
