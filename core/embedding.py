"""Finding by meaning, as the service runs it: the embedder, the thread that embeds blocks, and when it rests.

Blocks get their vectors on a thread of their own, after they can be found by their words; it rests while a
question is answered, and goes on where it stopped after a restart. Questions are embedded where they are
searched, in a context of their own, so that they wait for nothing.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from core import jit
from core.config import Settings
from core.engine.model_files import embedded_embedder, total_memory
from core.errors import Cancelled, ModelError, SlipstreamError
from core.store.database import Database
from core.store.vectors import VectorStore
from core.types import EmbeddingProgress
from core.worker import Worker

if TYPE_CHECKING:
    from core.engine.embedder import Embedder, EmbedderContext
    from core.retrieval.meaning import Meaning

_log = logging.getLogger(__name__)
_REST_S = 0.05
_PROGRESS_EVERY_S = 0.5
_LEAST_MEMORY = 3 << 30
"""``auto`` does without on a machine with less memory in bytes, or a single core."""


class Embedding:
    def __init__(
        self,
        data_dir: Path,
        settings: Settings,
        *,
        rests: Callable[[], bool],
        ready: Callable[[], None],
        tell: Callable[[EmbeddingProgress], None],
        report: Callable[[SlipstreamError], None],
    ) -> None:
        """``rests`` says whether something more urgent is going on; ``ready`` is called once an embedder is
        loaded. All four are called on the embedding thread.
        """
        self._rests = rests
        self._ready = ready
        self._tell = tell
        self._report = report
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._version = 0
        """Counts what was wanted: what was begun for an earlier one ends."""
        self._embedder: Embedder | None = None
        """The one in use; None while none is loaded, or another one is wanted."""
        self._loaded: Embedder | None = None
        self._context: EmbedderContext | None = None
        self._queued = threading.Event()
        self._told_s = 0.0
        self._worker = Worker("embedding", data_dir, report)
        self.change(settings)

    def change(self, settings: Settings) -> None:
        """Use the embedder that ``settings`` name, or none.

        To be called once every ``Meaning`` of the one before is closed.
        """
        path = _wanted(settings)
        with self._lock:
            self._version += 1
            version = self._version
            self._embedder = None  # what is being embedded with it ends by that
        self._worker.put(lambda: self._switch(path, version))

    def wake(self) -> None:
        """There may be blocks without vectors."""
        if not self._queued.is_set():
            self._queued.set()
            self._worker.put(self._run)

    def meaning(self, db: Database) -> "Meaning | None":
        """For the thread of ``db``; None as long as there is no embedder, or where it does not work."""
        embedder = self._embedder
        if embedder is None:
            return None
        from core.retrieval.meaning import Meaning

        try:
            return Meaning(embedder, db)
        except ModelError as error:  # by their words passages are found all the same
            self._report(error)
            self._embedder = None
            return None

    def close(self) -> None:
        """Stop, once every ``Meaning`` is closed. Waits."""
        self._closing.set()
        self._worker.stop()
        self._worker.join()
        self._drop()

    # --- on the embedding thread --------------------------------------------------------------------

    def _switch(self, path: Path | None, version: int) -> None:
        if self._loaded is not None:
            self._drop()
            self._tell(EmbeddingProgress(0, 0, 0.0))
        if path is None or version != self._version:
            return
        jit.ensure_compiled(self._closing)
        if self._closing.is_set() or version != self._version:
            return
        from core.engine.embedder import Embedder

        self._loaded = Embedder(path)
        with self._lock:
            if version != self._version:
                return  # the next switch drops it
            self._embedder = self._loaded
        self.wake()
        self._ready()
        VectorStore(self._worker.db, self._loaded.id, self._loaded.n_dims).forget_others()

    def _drop(self) -> None:
        if self._context is not None:
            self._context.close()
            self._context = None
        if self._loaded is not None:
            self._loaded.close()
            self._loaded = None

    def _run(self) -> None:
        self._queued.clear()
        embedder = self._embedder
        if embedder is None or self._closing.is_set():
            return
        from core.engine.embedder import EmbedderContext
        from core.retrieval.meaning import embed_missing

        if self._context is None:
            self._context = EmbedderContext(embedder, max(1, (os.cpu_count() or 2) // 2))
        store = VectorStore(self._worker.db, embedder.id, embedder.n_dims)
        started = time.monotonic()
        n_new = 0
        rested_s = 0.0

        def wait() -> None:
            nonlocal rested_s
            begun = time.monotonic()
            while self._rests() and self._embedder is embedder and not self._closing.wait(_REST_S):
                pass
            rested_s += time.monotonic() - begun
            if self._closing.is_set() or self._embedder is not embedder:
                raise Cancelled

        def progress(n: int) -> None:
            nonlocal n_new
            n_new += n
            now = time.monotonic()
            if now - self._told_s >= _PROGRESS_EVERY_S:
                tell(now)

        def tell(now: float) -> None:
            self._told_s = now
            seconds = now - started - rested_s
            self._tell(EmbeddingProgress(*store.count(), n_new / seconds if seconds > 0 else 0.0))

        try:
            embed_missing(embedder, self._context, self._worker.db, wait=wait, progress=progress)
        except Cancelled:
            _log.debug("embedding was stopped")
        else:
            tell(time.monotonic())


def _wanted(settings: Settings) -> Path | None:
    """The embedder to use, or None where there is none or the machine is too weak for it.

    Raises nothing: a file that is missing is reported when it is loaded.
    """
    if settings.find_by_meaning == "off":
        return None
    weak = 0 < total_memory() < _LEAST_MEMORY or (os.cpu_count() or 1) < 2
    if settings.find_by_meaning == "auto" and weak and not settings.embedder:
        return None
    return Path(settings.embedder).expanduser() if settings.embedder else embedded_embedder()
