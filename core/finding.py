"""Questions to contexts, as the service runs it: one searcher on the retrieval thread, by meaning too where
there is an embedder.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from core.config import Settings
from core.embedding import Embedding
from core.errors import SlipstreamError
from core.store.conversations import ConversationStore
from core.types import Context, EmbeddingProgress, Question
from core.worker import Worker

if TYPE_CHECKING:
    from core.retrieval.meaning import Meaning
    from core.retrieval.search import Searcher


class Finding:
    def __init__(
        self,
        data_dir: Path,
        settings: Settings,
        worker: Worker,
        *,
        rests: Callable[[], bool],
        tell: Callable[[EmbeddingProgress], None],
        report: Callable[[SlipstreamError], None],
    ) -> None:
        """``worker`` searches. ``rests``, ``tell`` and ``report``: as for ``Embedding``."""
        self._settings = settings
        self._worker = worker
        self._searcher: Searcher | None = None
        self._meaning: Meaning | None = None
        self.cached: frozenset[str] = frozenset()
        """Ids of blocks whose prefill would be saved; looked at only where the settings prefer them."""
        self._embedding = Embedding(
            data_dir,
            settings,
            rests=rests,
            ready=lambda: worker.put(self.refresh),
            tell=tell,
            report=report,
        )

    # --- on the thread of the worker ----------------------------------------------------------------

    def find(self, question: Question) -> Context:
        """The passages for a question, with the conversation before it."""
        from core.retrieval.lexical import Turn

        history: tuple[Turn, ...] = ()
        if question.conversation_id is not None:
            turns = ConversationStore(self._worker.db).turns(question.conversation_id)
            history = tuple(Turn(turn.question, turn.answer.text) for turn in turns)
        return self._ready_searcher().search(
            question.text,
            scope=question.scope,
            limit=self._settings.passages,
            token_budget=self._settings.passage_tokens,
            history=history,
            cached=self.cached,
            cache_margin=self._settings.prefer_cached,
        )

    def refresh(self) -> None:
        """Take over what was embedded and removed: the first question is not to wait for it, and vectors of
        what was removed leave the memory.
        """
        self._ready_searcher()
        if self._meaning is not None:
            self._meaning.refresh()

    def _ready_searcher(self) -> "Searcher":
        """It finds by meaning as soon as there is an embedder."""
        from core.retrieval.search import Searcher

        if self._searcher is None or self._meaning is None:
            self._meaning = self._embedding.meaning(self._worker.db)
            self._searcher = Searcher(self._worker.db, self._meaning)
        return self._searcher

    def _close_meaning(self) -> None:
        if self._meaning is not None:
            self._meaning.close()
            self._meaning = self._searcher = None

    # --- from any thread ----------------------------------------------------------------------------

    def wake(self) -> None:
        """There may be blocks without vectors."""
        self._embedding.wake()

    def change(self, settings: Settings) -> None:
        """Use the embedder that ``settings`` name, or none."""

        def change() -> None:
            self._close_meaning()
            self._embedding.change(settings)

        self._worker.put(change)

    def end(self) -> None:
        """Queue what the worker must do before it stops."""
        self._worker.put(self._close_meaning)

    def close(self) -> None:
        """Stop embedding, once the worker has ended. Waits."""
        self._embedding.close()
