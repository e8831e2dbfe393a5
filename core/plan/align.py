"""Alignment: the order of blocks that lets the most cached prefix come first (paper, section 4)."""

from collections.abc import Sequence

from core.index import ContextIndex, PathMatch


def align(elements: Sequence[int], index: ContextIndex, after: bytes) -> tuple[tuple[int, ...], PathMatch]:
    """An order of blocks, as indices into ``elements``, and the cached path that it begins with.

    ``elements``: the blocks' ``Segment.element`` in relevance order. The cached path over them that saves
    the most tokens comes first, the rest follows in relevance order: what the answer wants, at almost no
    cost to later sharing.
    """
    match = index.best_path(after, elements)
    taken = set(match.order)
    rest = [i for i in range(len(elements)) if i not in taken]
    return (*match.order, *rest), match
