"""ContextPilot's alignment of questions that come one by one (arXiv 2511.03475, section 4), to compare with.

A tree of the contexts seen so far. At each level the child with the smallest distance is taken among those
that the question can follow, since its first own block is asked for; what matches comes first, the rest keeps
its relevance order, and the result is inserted. What was evicted is not told: the tree then
promises a little more than the cache holds.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from core.plan.contextpilot import ALPHA


@dataclass(slots=True, eq=False)
class _Node:
    own: list[int]
    """Blocks that it adds to those of its parent."""
    children: dict[int, "_Node"] = field(default_factory=dict)
    """By the first own block."""


class Pilot:
    """The tree of one policy."""

    def __init__(self) -> None:
        self._root = _Node([])

    def arrange(self, blocks: Sequence[int]) -> list[int]:
        """Indices into ``blocks`` (best first, each once), in the order in which they should stand."""
        places = {block: place for place, block in enumerate(blocks)}
        node, matched = self._root, list[int]()
        left = set(blocks)
        while True:
            fits = [child for first, child in node.children.items() if first in left]
            if not fits:
                break
            child = min(fits, key=lambda one: _distance(places, [*matched, *one.own]))
            n = _common(child.own, left)
            matched += child.own[:n]
            left -= set(child.own[:n])
            if n < len(child.own):
                break
            node = child
        order = [*matched, *(block for block in blocks if block in left)]
        self._insert(order)
        return [places[block] for block in order]

    def _insert(self, order: Sequence[int]) -> None:
        node, rest = self._root, list(order)
        while rest:
            child = node.children.get(rest[0])
            if child is None:
                node.children[rest[0]] = _Node(rest)
                return
            n = 0
            while n < min(len(child.own), len(rest)) and child.own[n] == rest[n]:
                n += 1
            if n < len(child.own):
                below = _Node(child.own[n:], child.children)
                child.own, child.children = child.own[:n], {below.own[0]: below}
            node, rest = child, rest[n:]


def _common(own: Sequence[int], wanted: AbstractSet[int]) -> int:
    n = 0
    while n < len(own) and own[n] in wanted:
        n += 1
    return n


def _distance(places: dict[int, int], content: Sequence[int]) -> float:
    """Section 4.1: 1 − |A ∩ B| / max(|A|, |B|) + α · mean difference of positions in A and B."""
    shared = [abs(places[block] - at) for at, block in enumerate(content) if block in places]
    overlap = len(shared) / max(len(places), len(content))
    return 1 - overlap + ALPHA * sum(shared) / max(1, len(shared))
