"""Which passages of the prompt support which sentences of an answer, by our own matching.

A small model's obedience is not relied on: whether it names its sources or not, a citation is made where
the words of a sentence stand in a passage, and nowhere else.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from core.text import content_terms, sentences, stem, terms
from core.types import AnswerSentence, Citation, Passage

_ENOUGH = 0.7
"""Share of a sentence's terms that a stretch of a passage must hold."""
_ENOUGH_WITH_QUESTION = 0.6
"""The same for a single term together with those of the question."""
_FEW_TERMS = 4
"""A sentence with so few terms needs all of them; a longer one at least those with a digit."""
_AS_GOOD = 0.9
"""A second passage is cited as well if it holds nearly as much as the best one."""
_TERMS_FOR_A_PAIR = 6
"""A shorter sentence says one thing: from two sentences of a passage it could be pieced together wrongly."""
_SHORTEST_NAME = 2
_MOST_PER_SENTENCE = 2
_NO_CLAIM = frozenset(
    map(
        stem,
        (
            "answer",
            "question",
            "passage",
            "document",
            "text",
            "source",
            "yes",
            "no",
            "according",
            "mentioned",
            "stated",
        ),
    )
)
"""Words about the answer itself, which say nothing about the documents."""


_NEGATIONS = frozenset(
    re.findall(
        r"\w+",
        """not no never none nor neither cannot nicht kein keine keinen nie ne pas jamais
        aucun aucune nunca non mai nao 不 没 無 无 非 لا لم لن ليس""",
    )
)
"""What turns a statement into its opposite must stand in both or in neither."""


@dataclass(frozen=True, slots=True)
class _Stretch:
    """One sentence of a passage, or two neighbouring ones."""

    passage: int
    start: int
    end: int
    words: str
    """Its terms in order, a space around each."""
    terms: frozenset[str]
    negated: bool
    is_pair: bool = False


def cite(
    question: str, answer: str, passages: Sequence[Passage], *, cut_off: bool = False
) -> tuple[tuple[Citation, ...], tuple[AnswerSentence, ...]]:
    """Citations of an answer, numbered by first use, and its sentences with their numbers.

    A sentence is supported if a stretch of a passage holds at least 70 % of its terms, among them every
    one with a digit, and neither or both deny something. A single term ("Paris.") says too little by
    itself: the terms of the question count as well then. A sentence without any ("Yes.") claims nothing
    that could be looked up; neither does the last one of an answer that was ``cut_off``.
    """
    asked = _terms(question)
    stretches = [stretch for index, passage in enumerate(passages) for stretch in _stretches(index, passage)]
    numbers: dict[int, int] = {}
    citations: list[Citation] = []
    marked: list[AnswerSentence] = []
    spans = sentences(answer)
    for start, end in spans:
        found = []
        is_fragment = cut_off and (start, end) == spans[-1] and answer[end - 1] not in ".!?。！？؟"
        own = frozenset() if is_fragment else _terms(answer[start:end]) - _NO_CLAIM
        negated = _negated(answer[start:end])
        alike = [stretch for stretch in stretches if stretch.negated == negated]
        name = _name(answer[start:end], own - asked)
        for stretch in _supporting(own, asked, name, alike):
            if stretch.passage not in numbers:
                numbers[stretch.passage] = len(numbers) + 1
                citations.append(_citation(passages[stretch.passage], stretch, numbers[stretch.passage]))
            found.append(numbers[stretch.passage])
        marked.append(AnswerSentence(start, end, tuple(sorted(found)), claims=bool(own)))
    return tuple(citations), tuple(marked)


def _supporting(
    own: frozenset[str], asked: frozenset[str], name: str, stretches: Sequence[_Stretch]
) -> list[_Stretch]:
    """The best stretch of each passage that supports the terms or holds the name, best first, at most two."""
    if not own:
        return []
    needed = own if len(own) <= _FEW_TERMS else frozenset(term for term in own if _has_digit(term))
    wanted = own | asked if len(own) == 1 else own
    best: dict[int, tuple[float, _Stretch]] = {}
    for stretch in stretches:
        if stretch.is_pair and len(own) < _TERMS_FOR_A_PAIR:
            continue
        share = len(wanted & stretch.terms) / len(wanted)
        if name and name in stretch.words:
            share = 1.0
        elif share < (_ENOUGH_WITH_QUESTION if len(own) == 1 else _ENOUGH) or not needed <= stretch.terms:
            continue
        if stretch.passage not in best or share > best[stretch.passage][0]:
            best[stretch.passage] = (share, stretch)
    ranked = sorted(best.values(), key=lambda found: -found[0])
    return [stretch for share, stretch in ranked if share >= _AS_GOOD * ranked[0][0]][:_MOST_PER_SENTENCE]


def _has_digit(term: str) -> bool:
    return any(character.isdigit() for character in term)


def _stretches(index: int, passage: Passage) -> list[_Stretch]:
    """Each sentence by itself, then each pair: a pair is taken only where it holds more."""
    text = passage.block.text
    spans = sentences(text)
    singles = [
        _Stretch(index, a, b, _words(text[a:b]), _terms(text[a:b]), _negated(text[a:b])) for a, b in spans
    ]
    pairs = [
        _Stretch(
            index,
            one.start,
            two.end,
            one.words + two.words,
            one.terms | two.terms,
            one.negated or two.negated,
            is_pair=True,
        )
        for one, two in pairwise(singles)
    ]
    return singles + pairs


def _name(sentence: str, new: frozenset[str]) -> str:
    """What a sentence adds to the question if that is a name: two words or more, side by side, no figures.

    "The company is Galaxy Gaming, Inc." repeats the question but for the name: where the name stands word
    for word, it is supported.
    """
    if len(new) < _SHORTEST_NAME or any(_has_digit(term) for term in new):
        return ""
    words = [stem(term) for term in terms(sentence)]
    places = [place for place, word in enumerate(words) if word in new]
    if places[-1] - places[0] + 1 != len(places):
        return ""
    return f" {' '.join(words[places[0] : places[-1] + 1])} "


def _words(text: str) -> str:
    return f" {' '.join(stem(term) for term in terms(text))} "


def _negated(text: str) -> bool:
    return "n't" in text or "n’t" in text or not _NEGATIONS.isdisjoint(terms(text))


def _terms(text: str) -> frozenset[str]:
    return frozenset(stem(term) for term in content_terms(text))


def _citation(passage: Passage, stretch: _Stretch, number: int) -> Citation:
    place = passage.place
    return Citation(
        block_id=passage.block.id,
        document=place.title,
        path=place.path,
        document_id=place.document_id,
        page=place.page,
        quote=passage.block.text[stretch.start : stretch.end],
        number=number,
    )
