"""Full text search: the question's words to a context, with the sentence that matches best marked."""

import math
import re
import time
from collections import Counter
from collections.abc import Sequence

from core.store.database import Database
from core.store.documents import DocumentStore
from core.store.full_text import Match, match
from core.text import best_sentence, content_terms, other_number, terms
from core.types import Block, Context, Passage, Scope

MAX_CANDIDATES = 50
"""At most so many matching passages are looked at, and counted in ``Context.n_found``."""

_FEW_TERMS = 4
_REFERS_BACK = re.compile(
    r"^\s*(?:and|or|but|so|und|aber|et|mais|y|e|pero)\b"
    r"|\b(?:it|its|they|them|their|this|that|these|those|he|him|his|she|her|there|one|ones|former|latter|same|else"
    r"|first|second|third|last|next|other|another|more)\b"
    r"|[它他她这那其彼]|それ|これ|その|この|그것|이것|\b(?:هو|هي|هذا|هذه|ذلك|تلك)\b",
    re.IGNORECASE,
)


class Searcher:
    """Searches the library through the connection of the thread that made it."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._documents = DocumentStore(db)

    def search(
        self,
        question: str,
        *,
        scope: Scope,
        limit: int,
        token_budget: int,
        history: Sequence[str] = (),
    ) -> Context:
        """The blocks within ``scope`` that match ``question`` best (BM25), best first.

        ``n_found`` counts the blocks that hold a word of the question, up to ``MAX_CANDIDATES``. Of these
        the best ``limit`` that fit ``token_budget`` (estimated tokens) together are returned; one that
        does not fit is passed over for smaller ones after it. ``history`` holds the earlier questions of
        the conversation, the newest last; it helps a question that means nothing without it ("and the
        second one?"). If no block holds a word of the question, the beginnings of the documents in
        ``scope`` stand in (``is_opening``), unless they are more than ``limit``. An empty library or
        question gives an empty context.
        """
        started = time.perf_counter()
        wanted = [self._as_written(term, scope) for term in query_terms(question, history)]
        found = match(self._db, wanted, scope, MAX_CANDIDATES)
        is_opening = not found and bool(wanted)
        if is_opening:  # "what is this about?"
            found = [Match(*opening, score=0.0) for opening in self._documents.openings(scope, limit)]
        chosen = _within_budget(found, limit, token_budget)
        places = self._documents.places_of([candidate.block_id for candidate in chosen], scope)
        weights = _weights(wanted, chosen)
        passages = []
        for candidate in chosen:
            if candidate.block_id in places:  # else removed by another thread a moment ago
                start, end = best_sentence(candidate.text, wanted, weights=weights)
                passages.append(
                    Passage(
                        block=Block(candidate.block_id, candidate.text),
                        places=places[candidate.block_id],
                        score=candidate.score,
                        quote=candidate.text[start:end],
                        quote_start=start,
                    )
                )
        elapsed_ms = (time.perf_counter() - started) * 1000
        return Context(tuple(passages), len(found), elapsed_ms, is_opening and bool(passages))

    def _as_written(self, term: str, scope: Scope) -> str:
        """The term, or its plural or singular where only that stands in the documents.

        Only then: looking for both at once cost 1.7 points of evidence recall on a library of 320 documents.
        """
        other = other_number(term)
        if other and not match(self._db, [term], scope, 1) and match(self._db, [other], scope, 1):
            return other
        return term


def query_terms(question: str, history: Sequence[str] = ()) -> list[str]:
    """What to look for. For a question that refers back, its own terms count twice and the terms of the
    last two questions once.
    """
    # A question of stop words only ("to be or not to be") is looked for as it is.
    own = content_terms(question) or list(dict.fromkeys(terms(question)))
    refers_back = len(own) <= 1 or (len(own) <= _FEW_TERMS and _REFERS_BACK.search(question))
    if not history or not refers_back:
        return own
    earlier = [term for asked in reversed(history[-2:]) for term in content_terms(asked)]
    return own + own + [term for term in dict.fromkeys(earlier) if term not in own]


def _within_budget(found: Sequence[Match], limit: int, token_budget: int) -> list[Match]:
    chosen: list[Match] = []
    left = token_budget
    for candidate in found:
        if len(chosen) == limit:
            break
        if candidate.n_tokens_est <= left:
            chosen.append(candidate)
            left -= candidate.n_tokens_est
    return chosen


def _weights(wanted: Sequence[str], chosen: Sequence[Match]) -> dict[str, float]:
    """How much each term says: the fewer of the passages hold it, the more."""
    held: Counter[str] = Counter()
    for candidate in chosen:
        held.update(set(terms(candidate.text)).intersection(wanted))
    return {term: math.log(1 + (len(chosen) + 1) / (held[term] + 0.5)) for term in wanted}
