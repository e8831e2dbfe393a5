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

_PRICE = 0.3
"""Tokens of prefill that one rider's token must spare. Attention over it costs the rest of the prompt less:
about a tenth (``core/bench/README.md``); the remainder is for the text that was not asked for."""


@dataclass(frozen=True, slots=True)
class Ridable:
    """What may ride along with a question, and how to get at it."""

    room: int
    """Tokens of all blocks together, riders included, that the model context has."""
    kept_room: int
    """The same with something left for the next turn: looked at where the blocks asked for keep to it."""
    passages_of: Callable[[Sequence[str]], Sequence[tuple[Passage, Segment]] | None]
    """The passages of blocks by id, with their whole segments; None unless all of them may be shown."""


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
    """What the blocks asked for save."""


def ride(
    elements: Sequence[int],
    lengths: Sequence[int],
    after: bytes,
    index: ContextIndex,
    ridable: Ridable,
    *,
    names: Sequence[int],
    beat: int,
) -> Ride | None:
    """The best cached path with riders if it is worth more than ``beat``, the one without; else None.

    ``elements``, ``lengths`` (tokens), ``names`` (ids as integers): of the blocks asked for, which will all
    stand in the prompt.
    """
    wanted = sum(lengths)
    room = min(ridable.room, ridable.kept_room) if wanted <= ridable.kept_room else ridable.room
    most = room - wanted
    if most <= 0:
        return None
    found = index.best_company(after, elements, most_foreign=most, price=_PRICE)
    if not found.n_foreign_tokens or found.weight - _PRICE * found.n_foreign_tokens <= beat:
        return None
    asked = dict(zip(names, elements, strict=True))
    known = ridable.passages_of([id_ for id_ in found.block_ids if int(id_, 16) not in asked])
    if known is None:
        return None
    whole = asked | {int(passage.block.id, 16): segment.element for passage, segment in known}
    if any(
        whole[int(id_, 16)] != element for id_, element in zip(found.block_ids, found.elements, strict=True)
    ):
        return None  # one of them is cached there in a shorter form
    return Ride(
        found.block_ids,
        tuple(passage for passage, _ in known),
        {passage.block.id: segment for passage, segment in known},
        found.weight,
    )
