"""Riders: cached blocks that nobody asked for, kept since they lead to ones that were.

An exact prefix is worth nothing behind the first block that a question lacks. Where that block was read
before, letting it stand costs no prefill, and what is cached behind it counts again: a document's blocks
gather on few long paths instead of many short ones. Whole documents (``whole.py``) are the far end of this.
What a rider does cost is attention over its cells, room in the model context, and a text that the question
did not ask for: so it has a price, and the annotation says which blocks matter.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.index import ContextIndex
from core.types import Passage, Segment

_RISK = 0.2
"""Tokens of prefill that a rider's token must spare in any case: it is a text that nobody asked for."""
_BEHIND = 350
"""Tokens: the question and its annotation, and an answer of 128, of which each token costs two of prefill."""
_TRIES = 3
"""Paths that are looked at where the best ones hold what may not ride."""


@dataclass(frozen=True, slots=True)
class Ridable:
    """What may ride along with a question, and how to get at it."""

    kept_room: int
    """Tokens of all blocks together, so that something is left for the next turn: looked at where the blocks
    asked for keep to it."""
    attention: float
    """What one token before it adds to the work of computing a token, as a share of that work without any."""
    passages_of: Callable[[Sequence[str]], Sequence[tuple[Passage, Segment]]]
    """The passages of blocks by id, with their whole segments; those that may not be shown are left out."""


@dataclass(frozen=True, slots=True)
class Ride:
    """A cached path with riders."""

    block_ids: tuple[str, ...]
    """All along the path."""
    riders: tuple[Passage, ...]
    """Those that were not asked for, in their order."""
    segments: Mapping[str, Segment]
    """Of the riders, by block id."""
    weight: int
    """What the blocks asked for save, less what loading the riders takes."""


def ride(
    elements: Sequence[int],
    lengths: Sequence[int],
    after: bytes,
    index: ContextIndex,
    ridable: Ridable,
    *,
    names: Sequence[int],
    room: int,
    beat: int,
) -> Ride | None:
    """The best cached path with riders if it is worth more than the one without, ``beat``; else None.

    Whatever is computed behind riders attends to them as well, and so does the answer: that is their price.

    ``elements``, ``lengths`` (tokens), ``names`` (ids as integers): of the blocks asked for, which will all
    stand in the prompt. ``room``: tokens for all blocks.
    """
    wanted = sum(lengths)
    if wanted <= ridable.kept_room:
        room = min(room, ridable.kept_room)
    asked = dict(zip(names, elements, strict=True))
    refused: set[int] = set()
    for _ in range(_TRIES):
        if room <= wanted:
            return None
        found = index.best_company(
            after,
            elements,
            most_foreign=room - wanted,
            price=_RISK + ridable.attention * (wanted + _BEHIND),
            rebate=ridable.attention,
            without=refused,
        )
        if not found.n_foreign_tokens or found.worth <= beat:
            return None
        known = ridable.passages_of([id_ for id_ in found.block_ids if int(id_, 16) not in asked])
        whole = asked | {int(passage.block.id, 16): segment.element for passage, segment in known}
        path = zip(found.block_ids, found.elements, strict=True)
        # One that may not be shown, or that is cached there in a shorter form.
        wrong = {element for id_, element in path if whole.get(int(id_, 16)) != element}
        if not wrong:
            return Ride(
                found.block_ids,
                tuple(passage for passage, _ in known),
                {passage.block.id: segment for passage, segment in known},
                found.weight,
            )
        refused |= wrong
    return None
