"""What retrieval benchmarks do with a library: embed all of it, or make it larger."""

import contextlib
import random
import sys
import time
from pathlib import Path

import numpy as np

from core.config import Settings
from core.engine.embedder import Embedder, EmbedderContext
from core.engine.llama import physical_cores
from core.engine.model_files import embedded_embedder
from core.errors import KnownError
from core.retrieval.meaning import Meaning, embed_missing
from core.store.database import Database
from core.store.documents import DocumentStore, NewBlock, NewDocument
from core.store.vectors import VectorStore
from core.text import sentences
from core.types import Block

_SEED = 7
_BLOCKS_A_DOCUMENT = 100


def open_embedder(settings: Settings, stack: contextlib.ExitStack) -> Embedder:
    """The embedder of the settings, closed with the stack. Raises KnownError where there is none."""
    path = settings.embedder or embedded_embedder()
    if not path:
        raise KnownError("There is no embedder.", hint="Set one in the settings, or use --no-embeddings.")
    embedder = Embedder(Path(path))
    stack.callback(embedder.close)
    return embedder


def embed_library(
    db: Database, settings: Settings, stack: contextlib.ExitStack
) -> tuple[Meaning, dict[str, float]]:
    """Embed what has no vectors yet, saying how far it is; what finds by meaning, and how fast it went."""
    embedder = open_embedder(settings, stack)
    context = EmbedderContext(embedder, settings.n_threads or physical_cores())
    stack.callback(context.close)
    n_before, n_blocks = VectorStore(db, embedder.id, embedder.n_dims).count()
    started = time.monotonic()
    n_done = n_before

    def progress(n: int) -> None:
        nonlocal n_done
        n_done += n
        seconds = time.monotonic() - started
        left_s = seconds / max(1, n_done - n_before) * (n_blocks - n_done)
        sys.stderr.write(f"\rembedding: {n_done:,} of {n_blocks:,} blocks, {left_s:,.0f} s left    ")

    embed_missing(embedder, context, db, wait=lambda: None, progress=progress)
    seconds = time.monotonic() - started
    speed = {}
    if n_done > n_before:
        sys.stderr.write("\n")
        speed = {"embedding_s": seconds, "passages_per_s": (n_done - n_before) / seconds}
    meaning = Meaning(embedder, db)
    stack.callback(meaning.close)
    meaning.refresh()
    return meaning, speed


def add_made_up_blocks(db: Database, n_blocks: int, settings: Settings, *, vectors: bool) -> None:
    """Fill the library with blocks made of its own sentences until it has ``n_blocks``.

    Their vectors are those of its blocks with noise: to embed them would take hours and search does not care.
    """
    rng = random.Random(_SEED)
    texts = [row[0] for row in db.rows("SELECT text FROM blocks ORDER BY rowid")]
    pool = [text[start:end] for text in texts for start, end in sentences(text)]
    store = DocumentStore(db)
    n_missing = n_blocks - len(texts)
    for number in range(0, max(0, n_missing), _BLOCKS_A_DOCUMENT):
        blocks = []
        for _ in range(min(_BLOCKS_A_DOCUMENT, n_missing - number)):
            n_sentences = len(sentences(rng.choice(texts)))
            block = Block.of(" ".join(rng.choice(pool) for _ in range(max(3, n_sentences))))
            blocks.append(NewBlock(block, 0, len(block.text), len(block.text) // 4))
        text = "\n".join(new.block.text for new in blocks)
        name = f"made up {len(texts) + number}"
        store.save(NewDocument(name, name, name, text=text, blocks=tuple(blocks)))
        sys.stderr.write(f"\r{len(texts) + number:,} of {n_blocks:,} blocks made")
    sys.stderr.write("\n")
    if vectors:
        with contextlib.ExitStack() as stack:
            embedder = open_embedder(settings, stack)
            _make_up_vectors(db, VectorStore(db, embedder.id, embedder.n_dims))


def _make_up_vectors(db: Database, store: VectorStore) -> None:
    held = store.since(0)
    if not len(held):
        raise KnownError("Embed the library first: run it with --keep and without --blocks.")
    rng = np.random.default_rng(_SEED)
    after = 0
    while rows := store.missing(after, _BLOCKS_A_DOCUMENT):
        after = rows[-1][0]
        made = []
        for rowid, block_id, text in rows:
            chosen = rng.integers(0, len(held), max(1, len(text) // 600))
            windows = held.vectors[chosen].astype(np.float32) * held.scales[chosen, None]
            windows = windows + rng.normal(0, 0.03, windows.shape).astype(np.float32)
            made.append((rowid, block_id, windows / np.linalg.norm(windows, axis=1, keepdims=True)))
        store.add(made)
    db.row("PRAGMA optimize")
