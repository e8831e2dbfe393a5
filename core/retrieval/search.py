"""A question to a context: by its words (BM25, and how near they stand to each other) and by its meaning
(vectors), with the sentence of each passage that matches best.
"""

import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from core.errors import EngineError
from core.retrieval import lexical
from core.retrieval.lexical import Query, Turn
from core.store import full_text
from core.store.database import Database
from core.store.documents import DocumentStore
from core.text import best_sentence, content_terms, stem, terms
from core.types import Block, Context, Passage, Scope

if TYPE_CHECKING:  # it brings kernels and llama.cpp along: by words one searches without them
    from core.retrieval.meaning import Meaning

_log = logging.getLogger(__name__)
MAX_CANDIDATES = 50
"""At most so many passages are counted in ``Context.n_found``."""

_LOOKED_AT = 120
"""So many candidates of each kind are ranked."""
_FROM_HISTORY = 60
_NEARNESS = 1.0
_MEANING = 1.5
"""What nearness and cosine count beside BM25 over its best. Fusing by rank instead (RRF) found less: where
one of the two is sure and the other guesses, their ranks do not tell (``core/bench/README.md``).
"""
_EARLIER = 0.4
"""Weight of what the question before means."""
_KEPT_FREQUENCIES = 20_000


@dataclass(frozen=True, slots=True)
class _Found:
    """A block that was found."""

    id: str
    text: str
    n_tokens: int
    """Estimated."""
    score: float
    matches: bool = True
    """It holds a word looked for, or means what was asked."""


class Searcher:
    """Searches the library through the connection of the thread that made it."""

    def __init__(self, db: Database, meaning: "Meaning | None" = None) -> None:
        """Without ``meaning`` it searches by words alone."""
        self._db = db
        self._documents = DocumentStore(db)
        self._meaning = meaning
        self._frequencies: dict[str, int] = {}
        self._counted = (0, -1)
        """Highest rowid and version of the database when words were counted."""

    def search(
        self,
        question: str,
        *,
        scope: Scope,
        limit: int,
        token_budget: int,
        history: Sequence[Turn] = (),
        cached: Collection[str] = (),
        cache_margin: float = 0.0,
    ) -> Context:
        """The blocks within ``scope`` that answer ``question`` best, best first.

        The best ``limit`` that fit ``token_budget`` (estimated tokens) together are returned; one that does
        not fit is passed over for smaller ones after it. ``history`` holds the earlier turns of the
        conversation, the newest last; it helps a question that means little without it ("and the second
        one?"). If no block holds a word of the question or means it, the beginnings of the documents in
        ``scope`` stand in (``is_opening``), unless they are more than ``limit``. An empty library or question
        gives an empty context.

        ``cached`` are ids of blocks whose prefill would be saved: one of them is chosen before a block that
        is better by less than ``cache_margin`` of its score. The order stays that of relevance.
        """
        started = time.perf_counter()
        query = lexical.query(question, history)
        found = self.ranked(query, question, scope, history)
        is_opening = not found and bool(query.weights)
        if is_opening:  # "what is this about?"
            openings = self._documents.openings(scope, limit)
            found = [_Found(id_, text, n_tokens, 0.0) for id_, text, n_tokens in openings]
        chosen = _within_budget(_preferring(found, cached, cache_margin), limit, token_budget)
        chosen.sort(key=lambda one: -one.score)
        places = self._documents.places_of([one.id for one in chosen], scope)
        idfs = {word: self._idf(word) for word in query.own}
        passages = []
        for one in chosen:
            if one.id in places:  # else removed by another thread a moment ago
                start, end = self._quote(one.text, question, idfs)
                passages.append(
                    Passage(
                        block=Block(one.id, one.text),
                        places=places[one.id],
                        score=one.score,
                        quote=one.text[start:end],
                        quote_start=start,
                    )
                )
        elapsed_ms = (time.perf_counter() - started) * 1000
        n_found = min(sum(one.matches for one in found), MAX_CANDIDATES)
        return Context(tuple(passages), n_found, elapsed_ms, is_opening and bool(passages))

    def ranked(self, query: Query, question: str, scope: Scope, history: Sequence[Turn] = ()) -> list[_Found]:
        """All candidates, best first; equal ones by block id, so that the order does not depend on when a
        file was added.
        """
        if not query.weights:
            return []  # nothing was asked
        with_words = self._with_words(query, scope)
        by_meaning = self._by_meaning(question, scope, history, with_words)
        # Not embedded yet: no better than the last of the nearest, which come first.
        unknown = min(list(by_meaning.values())[:_LOOKED_AT], default=0.0)
        means_it = self._meaning.means_it if self._meaning is not None else 1.0
        blocks = self._documents.blocks(list({*with_words, *by_meaning}))
        fits = self._fits(query, blocks)
        best = max((one.bm25 for one in fits.values()), default=0.0)
        found = []
        for rowid, (id_, text, n_tokens) in blocks.items():
            fit, cosine = fits[rowid], by_meaning.get(rowid, unknown)
            matches = fit.bm25 > 0 or cosine >= means_it
            if best == 0.0 and not matches:
                continue
            by_words = (fit.bm25 / best if best else 0.0) + _NEARNESS * fit.nearness
            found.append(_Found(id_, text, n_tokens, by_words + _MEANING * cosine, matches))
        return sorted(found, key=lambda one: (-one.score, one.id))

    def _with_words(self, query: Query, scope: Scope) -> list[int]:
        """Rowids of blocks that hold words looked for, each once."""
        self._count_again_if_changed()

        def wanted(words: Iterable[str]) -> list[tuple[str, int]]:
            by_worth = sorted(words, key=lambda word: -self._idf(word) * query.weights[word])
            return [(word, self._frequency(word)) for word in by_worth]

        own = query.own
        found = full_text.candidates(self._db, wanted(own), scope, _LOOKED_AT)
        if len(own) < len(query.weights):
            found += full_text.candidates(self._db, wanted(query.weights), scope, _FROM_HISTORY)
        return list(dict.fromkeys(found))

    def _fits(self, query: Query, blocks: Mapping[int, tuple[str, str, int]]) -> dict[int, lexical.Fit]:
        """How well each block answers by its words."""
        idfs = {word: self._idf(word) for word in query.weights}
        words = full_text.indexed(self._db, list(blocks))
        return {
            rowid: lexical.fit(query, idfs, words.get(rowid, ""), n_tokens)
            for rowid, (_, _, n_tokens) in blocks.items()
        }

    def _by_meaning(
        self, question: str, scope: Scope, history: Sequence[Turn], also: Sequence[int]
    ) -> dict[int, float]:
        """Cosines of the nearest blocks and of those in ``also``, by rowid; none where no vectors are."""
        if self._meaning is None:
            return {}
        within = None
        if scope.document_ids or scope.collection_id is not None:
            within = np.array(self._documents.rowids_in(scope), np.int64)
        texts = {turn.question: _EARLIER for turn in history[-1:]} | {question: 1.0}
        try:
            return self._meaning.nearest(texts, _LOOKED_AT, within, np.array(also, np.int64))
        except EngineError:
            _log.warning("a question was looked for by its words alone", exc_info=True)
            return {}

    def _quote(self, text: str, question: str, idfs: Mapping[str, float]) -> tuple[int, int]:
        wanted = content_terms(question) or terms(question)
        weights = {term: idfs.get(stem(term), 0.0) for term in wanted}
        return best_sentence(text, wanted, weights=weights)

    def _idf(self, word: str) -> float:
        return lexical.idf(self._counted[0], self._frequency(word))

    def _frequency(self, word: str) -> int:
        found = self._frequencies.get(word)
        if found is None:
            if len(self._frequencies) >= _KEPT_FREQUENCIES:
                self._frequencies.clear()
            found = self._frequencies[word] = full_text.frequency(self._db, word)
        return found

    def _count_again_if_changed(self) -> None:
        state = (full_text.n_blocks(self._db), self._db.version())
        if state != self._counted:
            self._frequencies.clear()
            self._counted = state


def _preferring(found: Sequence[_Found], cached: Collection[str], margin: float) -> list[_Found]:
    if not cached or margin <= 0:
        return list(found)
    return sorted(found, key=lambda one: -one.score * (1 + margin * (one.id in cached)))


def _within_budget(found: Sequence[_Found], limit: int, token_budget: int) -> list[_Found]:
    chosen: list[_Found] = []
    left = token_budget
    for one in found:
        if len(chosen) == limit:
            break
        if one.n_tokens <= left:
            chosen.append(one)
            left -= one.n_tokens
    return chosen
