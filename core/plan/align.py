"""Alignment: the order of blocks that lets the most cached prefix come first (paper, section 4)."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from core.index import ContextIndex, OrderStatistics, PathMatch


def align(
    elements: Sequence[int],
    index: ContextIndex,
    after: bytes,
    *,
    statistics: OrderStatistics | None = None,
    lengths: Sequence[int] | None = None,
    groups: Sequence[int] | None = None,
    waiting: Sequence[AbstractSet[int]] = (),
    names: Sequence[int] | None = None,
    path: PathMatch | None = None,
) -> tuple[tuple[int, ...], PathMatch]:
    """An order of blocks, as indices into ``elements``, and the cached path that it begins with.

    ``elements``: the blocks' ``Segment.element`` in relevance order. The cached path over them that saves
    the most comes first. The rest follows in the order that ``statistics`` expects later questions to
    share (``lengths``: tokens, ``groups``: documents, of each of ``elements``); without them, in relevance
    order: what the answer wants, at little cost to later sharing. ``waiting``: the elements of questions that
    are known to come next; what they share stands in front of the rest, without making anybody wait.
    ``names``: what ``statistics`` calls the blocks, if not by their elements. ``path``: the cached path to
    begin with, if it was looked for before.
    """
    match = index.best_path(after, elements) if path is None else path
    taken = set(match.order)
    rest = [i for i in range(len(elements)) if i not in taken]
    if statistics is not None and len(rest) > 1:
        places = (*match.order, *rest)
        called = elements if names is None else names
        tail = statistics.tail(
            [called[i] for i in match.order],
            [called[i] for i in rest],
            lengths=None if lengths is None else [lengths[i] for i in places],
            groups=None if groups is None else [groups[i] for i in places],
        )
        rest = [rest[i] for i in tail]
    return (*match.order, *_for_those_waiting(elements, match.order, rest, waiting)), match


def _for_those_waiting(
    elements: Sequence[int], fixed: Sequence[int], rest: list[int], waiting: Sequence[AbstractSet[int]]
) -> list[int]:
    """``rest`` with the blocks in front that most of the waiting questions share.

    Greedy: the next block is the one that most of those hold that hold all before it.
    """
    first = {elements[i] for i in fixed}
    sharing = [other for other in waiting if first <= other]
    front: list[int] = []
    rest = list(rest)
    while sharing and rest:
        shared = [sum(elements[i] in other for other in sharing) for i in rest]
        if not max(shared):
            break
        chosen = rest.pop(shared.index(max(shared)))
        front.append(chosen)
        sharing = [other for other in sharing if elements[chosen] in other]
    return [*front, *rest]
