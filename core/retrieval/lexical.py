"""What a question looks for, and how well the words of a block answer it. Pure.

BM25 over stems, with two additions: words that stand side by side in the question count again where they do
so in a block, and a question of a conversation also looks, more faintly, for the words of those before it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from core.text import content_terms, stem, terms

_K1 = 0.9
_B = 0.4
"""Blocks are of like size and a long one is no worse: less is made of length than for whole documents."""
_TYPICAL_TOKENS = 360
_PAIR = 0.5
"""Weight of two words side by side."""
_STRETCH = 200
"""Characters of stems, about two sentences: words that answer a question stand near each other."""
_MOST_PLACES = 40
_PER_TURN = 0.4
"""Weight of the words of a question before this one, once more for each turn back."""
_FROM_ANSWER = 0.05
"""Weight of a word of the answer before."""
_TURNS = 3
_MOST_TERMS = 64
"""Of a question that is a pasted page the first terms say what it is about; each one costs time."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What was asked and answered before."""

    question: str
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for, by stem."""

    weights: Mapping[str, float]
    """1 for the question's own, less for what comes from earlier turns; the question's own come first."""
    pairs: tuple[tuple[str, str], ...]
    """The question's own words that stand side by side."""

    @property
    def own(self) -> list[str]:
        return [stem for stem, weight in self.weights.items() if weight == 1.0]


def query(question: str, history: Sequence[Turn] = ()) -> Query:
    """What to look for. ``history`` holds the earlier turns of the conversation, the newest last."""
    # A question of stop words only ("to be or not to be") is looked for as it is.
    own = list(dict.fromkeys(map(stem, content_terms(question) or terms(question))))[:_MOST_TERMS]
    weights = dict.fromkeys(own, 1.0)
    for back, turn in enumerate(reversed(history[-_TURNS:]), start=1):
        for word in _distinct(turn.question):
            weights.setdefault(word, _PER_TURN**back)
    if history:
        for word in _distinct(history[-1].answer):
            weights.setdefault(word, _FROM_ANSWER)
    words = [stem(term) for term in terms(question)]
    kept = set(own)
    side_by_side = (pair for pair in pairwise(words) if pair[0] in kept and pair[1] in kept)
    return Query(weights, tuple(dict.fromkeys(side_by_side)))


def idf(n_blocks: int, n_holding: int) -> float:
    """How much a stem says that stands in ``n_holding`` of the blocks."""
    return math.log(1 + (max(n_blocks, n_holding) - n_holding + 0.5) / (n_holding + 0.5))


@dataclass(frozen=True, slots=True)
class Fit:
    """How well a block answers, by its words."""

    bm25: float
    """Comparable between the blocks of one query only."""
    nearness: float
    """Share of what is looked for, by what each word says, that stands within one stretch: 0 … 1."""


def fit(query: Query, idfs: Mapping[str, float], words: str, n_tokens: int) -> Fit:
    """How well a block answers.

    ``words`` are its stems in order, one space between them; ``n_tokens`` is its estimated length. ``idfs``
    has every stem of the query. A pair says as much as the rarer of its two words and half of the other.
    """
    norm = _K1 * (1 - _B + _B * n_tokens / _TYPICAL_TOKENS)
    # Looked for in the text as it is: ten times as quick as cutting it into words.
    padded = f" {words} "
    found: list[tuple[int, float, str]] = []
    total = wanted = 0.0
    for word, weight in query.weights.items():
        worth = weight * idfs[word]
        wanted += worth
        places = _places(padded, f" {word} ")
        if places:
            n = len(places)
            total += worth * n * (_K1 + 1) / (n + norm)
            found += [(place, worth, word) for place in places]
    for one, two in query.pairs:
        if n := padded.count(f" {one} {two} "):
            total += _PAIR * _pair_idf(idfs[one], idfs[two]) * n * (_K1 + 1) / (n + norm)
    return Fit(total, _most_within(sorted(found)) / wanted if wanted else 0.0)


def _places(text: str, wanted: str) -> list[int]:
    """Where it stands, in characters; of a word that stands everywhere the first places."""
    places: list[int] = []
    at = text.find(wanted)
    while at >= 0 and len(places) < _MOST_PLACES:
        places.append(at)
        at = text.find(wanted, at + 1)
    return places


def _most_within(found: Sequence[tuple[int, float, str]]) -> float:
    """The most that different words within one stretch are worth; ``found`` is ordered by place."""
    best = 0.0
    for first, (begin, _, _) in enumerate(found):
        seen: set[str] = set()
        worth = 0.0
        for place, value, word in found[first:]:
            if place - begin > _STRETCH:
                break
            if word not in seen:
                seen.add(word)
                worth += value
        best = max(best, worth)
    return best


def _pair_idf(one: float, two: float) -> float:
    return max(one, two) + min(one, two) / 2


def _distinct(text: str) -> list[str]:
    return list(dict.fromkeys(map(stem, content_terms(text))))[:_MOST_TERMS]
