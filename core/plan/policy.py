"""Whether a question's passages are moved and shortened: what that saves against what it risks.

The thresholds are judgements, until they are measured. They err on the side of leaving alone.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from core.types import CollectionInfo, Passage, Segment
from core.work import tokens_within

_LEAST_S = 0.1
"""Seconds. Nobody notices less: small prompts are left alone."""
_LEAST_TOKENS = 64
"""The same where no rate of this machine was measured yet."""
_S_FOR_RISK = (_LEAST_S, 0.5, 2.0)
"""What must be saved at each level of risk; above the last one nothing is enough."""
_SMALL_MODEL = 1_000_000_000
"""Parameters below which a model is taken to follow annotations badly."""
_FAR = 3
"""Places that the best passage may be moved before that counts as a risk."""
_LOOKED_AT = 1200
"""Characters of a passage that are looked at: what it is shows early."""

SHORTEST_PART = 64
"""Tokens. Of a passage for which there is less time nothing is read, unless there is nothing else."""

_ABOUT_ORDER = re.compile(
    r"\b(first|last|next|previous|earlier|later|before|after|then|order|sequence|steps?|chronolog\w*|"
    r"zuerst|zuletzt|danach|davor|reihenfolge|schritte?|premier|dernier|ensuite|ordre|étapes?|"
    r"primero|último|después|orden|pasos?)\b|先后|顺序|步骤|首先|最后|أولا|أخيرا|ترتيب|خطوات",
    re.IGNORECASE,
)
_ABOUT_ALL = re.compile(
    r"\b(all|every|each|list|how many|count|compare|summar\w+|total|alle|jede[rsn]?|wie viele|"
    r"liste|vergleiche?|tous|toutes|chaque|combien|liste|comparez?|todos|todas|cada|cuántos|lista)\b|"
    r"所有|全部|多少|列出|比较|كل|جميع|كم",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"^\s*(def |class |import |#include|function |return\b|if \(|for \()|[;{}]\s*$", re.MULTILINE
)
_STEP = re.compile(r"^\s*(?:step\s*)?\d{1,2}[.)]\s+\S", re.MULTILINE | re.IGNORECASE)
_SPEAKER = re.compile(r"^[^\W\d_][\w .'-]{1,24}:\s+\S", re.MULTILINE)
_DATE = re.compile(r"\b(?:\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}-\d{2}-\d{2}|\d{1,2} [A-Z][a-z]{2,8} \d{4})\b")
_SEVERAL = 3
"""Lines or dates of a kind that make a passage one of that kind."""


class Way(StrEnum):
    EXACT = "exact"
    """Relevance order, nothing shortened."""
    ALIGN = "align"
    SHORTEN = "shorten"
    ALIGN_AND_SHORTEN = "align and shorten"

    @property
    def aligns(self) -> bool:
        return self in (Way.ALIGN, Way.ALIGN_AND_SHORTEN)

    @property
    def shortens(self) -> bool:
        return self in (Way.SHORTEN, Way.ALIGN_AND_SHORTEN)


@dataclass(frozen=True, slots=True)
class Prospect:
    """What a plan with everything on would do for one question."""

    question: str
    n_aligned_tokens: int
    """Tokens that need no prefill because the cached path comes first."""
    n_shortened_tokens: int
    """Tokens that references save."""
    prefill_token_s: float
    """This machine's measured rate in seconds a token; 0 where nothing was measured."""
    best_moved_by: int
    """Places between where the most relevant new passage stands and where it would."""
    n_parameters: int
    """Of the model; 0 where unknown."""
    ordered_content: str
    """What kind of content that its order matters to was moved; empty if none (``kind_of``)."""


@dataclass(frozen=True, slots=True)
class Decision:
    way: Way
    reason: str
    """One sentence for the user."""


def decide(prospect: Prospect) -> Decision:
    """Exact, align, or align and shorten. A function of the prospect alone."""
    rate = prospect.prefill_token_s
    n_aligned, n_shortened = prospect.n_aligned_tokens, prospect.n_shortened_tokens
    risks = _risks_of_moving(prospect)
    moves = n_aligned > 0 and _pays(n_aligned, rate, len(risks))
    shortens = n_shortened > 0 and _pays(n_shortened, rate, _risk_of_shortening(prospect))
    if moves or shortens:
        way = Way.ALIGN_AND_SHORTEN if moves and shortens else Way.ALIGN if moves else Way.SHORTEN
        what = {Way.ALIGN: "moved", Way.SHORTEN: "shortened"}.get(way, "moved and shortened")
        saved = n_aligned * moves + n_shortened * shortens
        worth = f"about {saved * rate:.1f} s" if rate else f"{saved:,} tokens"
        return Decision(way, f"Passages are {what}, which saves {worth}.")
    if not n_aligned + n_shortened:
        return Decision(Way.EXACT, "Passages stand in relevance order: nothing would be saved.")
    if not risks or not _pays(n_aligned + n_shortened, rate, 0):
        return Decision(Way.EXACT, "Passages stand in relevance order: too little would be saved.")
    return Decision(Way.EXACT, f"Passages stand in relevance order, since {' and '.join(risks)}.")


def as_found(collections: Iterable[CollectionInfo]) -> str:
    """Why passages are left as they were found, one sentence; empty where no collection wants that."""
    names = [f"“{info.name}”" for info in collections if info.as_found]
    if not names:
        return ""
    if len(names) == 1:
        return f"Passages stand as found: the collection {names[0]} is set so."
    return f"Passages stand as found: the collections {', '.join(names[:-1])} and {names[-1]} are set so."


def kind_of(text: str) -> str:
    """What a passage is if the order of such passages matters: code, steps, dialogue, dates; else empty."""
    text = text[:_LOOKED_AT]
    for name, pattern in (("code", _CODE), ("steps", _STEP), ("dialogue", _SPEAKER), ("dates", _DATE)):
        if sum(1 for _ in pattern.finditer(text)) >= _SEVERAL:
            return name
    return ""


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """Until the first word is due."""

    work: float
    """Prefill there is time for, as ``core.work`` counts it."""
    attention: float
    before: int
    """Tokens that stand before the new blocks."""
    after: int
    """Tokens to be read behind them: old turns, the question with its annotation."""
    excerpt_of: Callable[[Passage, int], tuple[str, Segment] | None] = lambda _passage, _room: None
    """The part of a passage that has at most so many tokens, and its segment; None where that is too few."""

    def room(self, n_cached: int) -> int:
        """Tokens of blocks that may be read behind those that are cached, ``n_cached`` tokens."""
        return max(0, tokens_within(self.work, self.before + n_cached, self.attention) - self.after)


def within_time(
    n_tokens: Sequence[int],
    free: Sequence[bool],
    room: int,
    part_of: Callable[[int, int], int] = lambda _index, _room: 0,
    *,
    needed: bool = True,
) -> tuple[int, ...]:
    """Which passages, in relevance order, are read whole if ``room`` tokens may be: indices, ascending.

    Cached ones (``free``) cost nothing; of the others the most relevant ones that fit. Of the first that does
    not fit a part is read: ``part_of(index, room)`` makes it and gives its tokens, 0 where there is none. An
    answer from nothing is none: where nothing would be read and some is ``needed``, since no earlier turn
    gave any of the passages, the shortest part of the best one is, or else all of it, whatever that takes.
    """
    taken: list[int] = []
    has_part = False
    for index, (size, is_free) in enumerate(zip(n_tokens, free, strict=True)):
        if is_free:
            taken.append(index)
        elif size <= room:
            taken.append(index)
            room -= size
        elif not has_part and (size := part_of(index, room)):
            has_part = True
            room -= size
    if needed and n_tokens and not taken and not has_part and not part_of(0, SHORTEST_PART):
        taken.append(0)
    return tuple(taken)


def _pays(n_tokens: int, rate: float, risk: int) -> bool:
    if risk >= len(_S_FOR_RISK):
        return False
    if not rate:
        return n_tokens >= _LEAST_TOKENS * (1 + 4 * risk)
    return n_tokens * rate >= _S_FOR_RISK[risk]


def _risks_of_moving(prospect: Prospect) -> list[str]:
    risks = []
    if _ABOUT_ORDER.search(prospect.question):
        risks.append("the question is about order")
    if _ABOUT_ALL.search(prospect.question):
        risks.append("the question is about all of something")
    if prospect.ordered_content:
        risks.append(f"the passages hold {prospect.ordered_content}")
    if prospect.best_moved_by > _FAR:
        risks.append("the best passage would be moved far")
    if 0 < prospect.n_parameters < _SMALL_MODEL:
        risks.append("the model is small")
    return risks


def _risk_of_shortening(prospect: Prospect) -> int:
    small = 0 < prospect.n_parameters < _SMALL_MODEL
    return small + bool(_ABOUT_ALL.search(prospect.question)) + (prospect.ordered_content == "code")
