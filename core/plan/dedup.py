"""De-duplication: what the prompt already holds is referenced, not repeated (paper, section 5).

By block: one that an earlier turn holds is not put into the prompt again (``split_held``). By content: where
a stretch of a block stands, character by character, in an earlier block of the same prompt, a reference takes
its place (``shorten``). How a block looks depends on what stands before it in the prompt and on nothing else,
so equal prefixes give equal segments, and de-duplication never breaks the cache that it serves.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.cdc import SUB_BLOCKS, code_points
from core.cut_rules import INFO
from core.errors import BugError
from core.plan.dedup_kernels import BLOCK, find_repeated
from core.types import Block, Passage

LEAST_TOKENS = 32
"""Estimated. A shorter stretch is repeated: a reference takes about 16 tokens, and costs the reader more."""
_QUOTE = 80
"""Characters. A longer quote than this helps nobody: the text is repeated where none is clear."""
_FEWEST_WORDS = 3
_MOST_WORDS = 12
_LONG_WORD = 5
"""Characters that count as a word where there are no spaces."""


def split_held(
    passages: Sequence[Passage], held: AbstractSet[str]
) -> tuple[tuple[Passage, ...], tuple[Passage, ...]]:
    """Passages whose block must be put into the prompt, and those whose block an earlier turn still holds.

    Both in the order given; of a block that was retrieved twice only the first stays. References point
    backwards only: ``held`` names blocks that stand before this question in this very prompt.
    """
    new: list[Passage] = []
    references: list[Passage] = []
    seen: set[str] = set()
    for passage in passages:
        if passage.block.id in seen:
            continue
        seen.add(passage.block.id)
        (references if passage.block.id in held else new).append(passage)
    return tuple(new), tuple(references)


@dataclass(frozen=True, slots=True)
class Reference:
    """What stands in a block in place of text that an earlier block shows."""

    source: str
    """Id of that block."""
    start: int
    end: int
    """Character offsets in the text of that block."""
    shown: str
    """How it stands in the prompt: ``[see babad: "The tenant pays" … "a month."]``."""


@dataclass(frozen=True, slots=True)
class Form:
    """A block as it stands in one prompt: its own text, and references in place of what was said before."""

    block_id: str
    label: str
    parts: tuple[str | Reference, ...]

    @property
    def references(self) -> tuple[Reference, ...]:
        return tuple(part for part in self.parts if isinstance(part, Reference))

    @property
    def shown(self) -> str:
        """The text that stands in the prompt under the label."""
        return "".join(part if isinstance(part, str) else part.shown for part in self.parts)

    @property
    def rendered(self) -> str:
        """The exact characters of its segment."""
        return f"[{self.label}]\n{self.shown}\n\n"


def whole(block: Block) -> Form:
    return Form(block.id, block.label, (block.text,))


def shorten(
    held: Sequence[Block],
    blocks: Sequence[Block],
    *,
    stay_whole: AbstractSet[int] = frozenset(),
    unclear: AbstractSet[str] = frozenset(),
) -> tuple[Form, ...]:
    """The forms of ``blocks`` in a prompt where ``held`` stand before them, whole, in these orders.

    ``stay_whole``: indices into ``blocks`` of those that are left as they are, such as cached ones.
    ``unclear``: labels that name something else. Nor is a block referred to whose label another one has.
    """
    every = (*held, *blocks)
    if len(every) < 2 or not blocks:
        return tuple(whole(block) for block in blocks)
    lengths = [len(block.text) for block in every]
    starts = np.zeros(len(every) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    labels = [block.label for block in every]
    flags = np.zeros(len(every), np.uint8)
    flags[: len(held)] = 1
    for index in stay_whole:
        flags[len(held) + index] = 1
    found = find_repeated(
        code_points("".join(block.text for block in every)),
        INFO,
        SUB_BLOCKS,
        starts,
        flags,
        _unclear_from(labels, unclear),
        LEAST_TOKENS * 1000,
    ).tolist()
    by_block: dict[int, list[list[int]]] = {}
    for row in found:
        by_block.setdefault(row[BLOCK], []).append(row)
    shown: dict[int, _Shown] = {}
    forms: list[Form] = []
    begins = starts.tolist()
    for number in range(len(held), len(every)):
        block = every[number]
        if number not in by_block:
            forms.append(Form(block.id, labels[number], (block.text,)))
            continue
        parts: list[str | Reference] = []
        at = 0
        for _, start, end, source, origin in by_block[number]:
            begin, stop = start - begins[number], end - begins[number]
            where = origin - begins[source]
            of = shown.get(source)
            if of is None:
                text = every[source].text if source < len(held) else forms[source - len(held)].shown
                of = shown[source] = _Shown(labels[source], lengths[source], _in_one_line(text))
            words = _name(of, block.text[begin:stop], where)
            if not words:
                continue
            if begin > at:
                parts.append(block.text[at:begin])
            parts.append(Reference(every[source].id, where, where + stop - begin, words))
            at = stop
        if at < len(block.text):
            parts.append(block.text[at:])
        forms.append(Form(block.id, labels[number], tuple(parts)))
    return tuple(forms)


def expand(forms: Sequence[Form], held: Sequence[Block] = ()) -> tuple[str, ...]:
    """The whole text of every block, from what stands in the prompt and from ``held``, which stand before.

    Raises BugError for a reference to text that does not stand before it.
    """
    texts = {block.id: block.text for block in held}
    out: list[str] = []
    for form in forms:
        parts: list[str] = []
        for part in form.parts:
            if isinstance(part, str):
                parts.append(part)
            elif part.source not in texts or not 0 <= part.start < part.end <= len(texts[part.source]):
                raise BugError("A reference points to text that does not stand before it.")
            else:
                parts.append(texts[part.source][part.start : part.end])
        out.append("".join(parts))
        texts[form.block_id] = out[-1]
    return tuple(out)


def _unclear_from(labels: Sequence[str], unclear: AbstractSet[str]) -> NDArray[np.int64]:
    """From which block on each label names more than one, int64 ``(n,)``: 0 where it always did."""
    until = np.full(len(labels), len(labels), np.int64)
    if not unclear and len(set(labels)) == len(labels):
        return until
    first: dict[str, int] = {}
    for number, label in enumerate(labels):
        if label in first:
            until[first[label]] = min(until[first[label]], number)
        if label in first or label in unclear:
            until[number] = 0
        first.setdefault(label, number)
    return until


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a block shows in the prompt, in one line, to look words up in."""

    label: str
    length: int
    """Of its whole text."""
    line: str


def _name(of: _Shown, stretch: str, start: int) -> str:
    """A reference to ``stretch``, which stands at ``start`` in a block's text; empty if none is clear.

    A stretch is named by its first and last words. The first ones occur once in what the block shows, and the
    last ones for the first time after them where the stretch ends: whoever reads it can find it.
    """
    at_start, at_end = start == 0, start + len(stretch) == of.length
    if at_start and at_end:
        return f"[see {of.label}]"
    line, place, opening = of.line, 0, ""
    if not at_start:
        head = _in_one_line(stretch[:_QUOTE])
        for n in range(_FEWEST_WORDS, _MOST_WORDS):
            opening = _first_words(head, n)
            place = line.find(opening)
            if place >= 0 and line.find(opening, place + 1) < 0:
                break
        else:
            return ""
    if at_end:
        return f'[see {of.label} from "{opening}"]'
    closing = _closing(line, place, stretch)
    if not closing:
        return ""
    if opening:
        return f'[see {of.label}: "{opening}" … {closing}]'
    return f"[see {of.label} up to {closing}]"


def _closing(line: str, place: int, stretch: str) -> str:
    """Where ``stretch``, at ``place`` of ``line``, ends: its last words, or else the first ones behind it."""
    end = place + len(stretch)
    tail = _in_one_line(stretch[-_QUOTE:])
    for n in range(_FEWEST_WORDS, _MOST_WORDS):
        words = _last_words(tail, n)
        if line.find(words, place) + len(words) == end:
            return f'"{words}"'
    while line[end : end + 1] == " ":
        end += 1
    behind = line[end : end + _QUOTE]
    for n in range(_FEWEST_WORDS, _MOST_WORDS):
        words = _first_words(behind, n)
        if words and line.find(words, place) == end and "[" not in words:
            return f'before "{words}"'
    return ""


def _first_words(line: str, n: int) -> str:
    """``n`` words, or where there are no spaces (Chinese, Japanese, Thai) as many characters as they have."""
    parts = line.split(" ", n)
    return line[: -len(parts[n]) - 1] if len(parts) > n else line[: n * _LONG_WORD]


def _last_words(line: str, n: int) -> str:
    parts = line.rsplit(" ", n)
    return line[len(parts[0]) + 1 :] if len(parts) > n else line[-n * _LONG_WORD :]


def _in_one_line(text: str) -> str:
    return text.replace("\n", " ")
