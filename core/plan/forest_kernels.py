"""A forest of sets of blocks in flat arrays: the state of the search for shared prefixes, and its steps.

Leaves are distinct sets of blocks, numbers 0 to n − 1; inner nodes are n to 2n − 1, the root is 2n. A node
stands for a set of blocks that contains the set of its parent; it *owns* those that the parent lacks. What
is owned hangs on the node as a list of slots: ``slots`` int32 ``(total, 2)`` are pairs (block, next slot,
−1 at the end). A path from root to leaf holds each block of the leaf once. So the forest never needs more
slots than the leaves have blocks, and the slots in use are the blocks computed by a cache that meets the
leaves depth first.

``nodes`` int64 ``(2n + 1, 8)`` and ``table`` int64 ``(n_blocks, 5)`` are one cache line a row; their columns
are named below. A node outside the forest has parent −1 and owns its whole set. ``state`` int64 ``(8,)``
holds the free lists, the running stamps and the random state. Stamps make marks that need no clearing.
"""

import numpy as np
from numpy.typing import NDArray

from core.jit import kernel

PARENT, FIRST, NEXT, PREVIOUS, N_CHILDREN, OWN, WEIGHT = 0, 1, 2, 3, 4, 5, 6
"""Columns of ``nodes``: links of the tree, first slot of what is owned, tokens of the whole set."""
N_NODE_COLUMNS = 8
BLOCK, AFTER = 0, 1
TOKENS, MARK, PATH, OWNER, EPOCH = 0, 1, 2, 3, 4
"""Columns of ``table``: tokens of a block, then marks; ``OWNER`` holds while ``EPOCH`` is the running one."""
N_TABLE_COLUMNS = 5
FREE_SLOT, FREE_NODE, STAMP, PATH_STAMP, SEEN_STAMP, RANDOM, ROOT = 0, 1, 2, 3, 4, 5, 6
N_STATE = 8

Wide = NDArray[np.int64]
Ids = NDArray[np.int32]


@kernel("void(i8[::1], i4[::1], i8[:, ::1], i4[:, ::1], i8[:, ::1], i8[::1])")
def start_forest(starts: Wide, blocks: Ids, nodes: Wide, slots: Ids, table: Wide, state: Wide) -> None:
    """All leaves outside the forest, each owning its blocks; a root without children."""
    n = starts.shape[0] - 1
    nodes[:] = -1
    nodes[:, N_CHILDREN] = 0
    nodes[:, WEIGHT] = 0
    for leaf in range(n):
        for at in range(starts[leaf + 1] - 1, starts[leaf] - 1, -1):
            slots[at, BLOCK] = blocks[at]
            slots[at, AFTER] = nodes[leaf, OWN]
            nodes[leaf, OWN] = at
            nodes[leaf, WEIGHT] += table[blocks[at], TOKENS]
    for node in range(n, 2 * n - 1):
        nodes[node, NEXT] = node + 1
    state[FREE_NODE] = n if n > 0 else -1
    state[ROOT] = 2 * n
    state[FREE_SLOT] = -1


@kernel("void(i8[:, ::1], i8, i8)")
def hang(nodes: Wide, parent: int, node: int) -> None:
    """``node`` becomes the first child of ``parent``; what it owns is not looked at."""
    first = nodes[parent, FIRST]
    nodes[node, PARENT] = parent
    nodes[node, PREVIOUS] = -1
    nodes[node, NEXT] = first
    if first >= 0:
        nodes[first, PREVIOUS] = node
    nodes[parent, FIRST] = node
    nodes[parent, N_CHILDREN] += 1


@kernel("void(i8[:, ::1], i8)")
def unhang(nodes: Wide, node: int) -> None:
    """Take ``node`` from its parent's children; what it owns is not looked at."""
    parent, before, after = nodes[node, PARENT], nodes[node, PREVIOUS], nodes[node, NEXT]
    if before >= 0:
        nodes[before, NEXT] = after
    else:
        nodes[parent, FIRST] = after
    if after >= 0:
        nodes[after, PREVIOUS] = before
    nodes[parent, N_CHILDREN] -= 1
    nodes[node, PARENT] = -1


@kernel("void(i8[:, ::1], i8[::1], i8)")
def give_node(nodes: Wide, state: Wide, node: int) -> None:
    """An inner node is free to be used again."""
    nodes[node, PARENT] = -1
    nodes[node, FIRST] = -1
    nodes[node, N_CHILDREN] = 0
    nodes[node, OWN] = -1
    nodes[node, NEXT] = state[FREE_NODE]
    state[FREE_NODE] = node


@kernel("i8(i8[:, ::1], i4[:, ::1], i8[::1], i8)")
def replace_by_only_child(nodes: Wide, slots: Ids, state: Wide, node: int) -> int:
    """``node`` has one child: that takes its place and its blocks. Returns the child."""
    child, parent = nodes[node, FIRST], nodes[node, PARENT]
    slot = nodes[node, OWN]
    while slot >= 0:
        after = slots[slot, AFTER]
        slots[slot, AFTER] = nodes[child, OWN]
        nodes[child, OWN] = slot
        slot = after
    unhang(nodes, node)
    hang(nodes, parent, child)
    give_node(nodes, state, node)
    return int(child)


@kernel("i8(i8[:, ::1], i4[:, ::1], i8[::1], i8)")
def cut(nodes: Wide, slots: Ids, state: Wide, node: int) -> int:
    """Take ``node`` and all below it out of the forest: it then owns its whole set.

    Returns the parent; where that was left with one child, the child that took its place.
    """
    parent = nodes[node, PARENT]
    above = parent
    while above != state[ROOT]:
        slot = nodes[above, OWN]
        while slot >= 0:
            fresh = state[FREE_SLOT]
            state[FREE_SLOT] = slots[fresh, AFTER]
            slots[fresh, BLOCK] = slots[slot, BLOCK]
            slots[fresh, AFTER] = nodes[node, OWN]
            nodes[node, OWN] = fresh
            slot = slots[slot, AFTER]
        above = nodes[above, PARENT]
    unhang(nodes, node)
    if parent != state[ROOT] and nodes[parent, N_CHILDREN] == 1:
        return replace_by_only_child(nodes, slots, state, parent)
    return int(parent)


@kernel("void(i8[:, ::1], i4[:, ::1], i8[:, ::1], i8[::1], i8, i8)")
def add_below(nodes: Wide, slots: Ids, table: Wide, state: Wide, parent: int, node: int) -> None:
    """``node``, outside the forest, whose set contains the parent's, becomes its child.

    An inner node of exactly the parent's set is dissolved: its children become the parent's.
    """
    state[PATH_STAMP] += 1
    stamp = state[PATH_STAMP]
    above = parent
    while above != state[ROOT] and above >= 0:
        slot = nodes[above, OWN]
        while slot >= 0:
            table[slots[slot, BLOCK], PATH] = stamp
            slot = slots[slot, AFTER]
        above = nodes[above, PARENT]
    slot = nodes[node, OWN]
    nodes[node, OWN] = -1
    while slot >= 0:
        after = slots[slot, AFTER]
        if table[slots[slot, BLOCK], PATH] == stamp:
            slots[slot, AFTER] = state[FREE_SLOT]
            state[FREE_SLOT] = slot
        else:
            slots[slot, AFTER] = nodes[node, OWN]
            nodes[node, OWN] = slot
        slot = after
    if nodes[node, OWN] < 0 and nodes[node, FIRST] >= 0:
        child = nodes[node, FIRST]
        while child >= 0:
            after = nodes[child, NEXT]
            hang(nodes, parent, child)
            child = after
        give_node(nodes, state, node)
    else:
        hang(nodes, parent, node)


@kernel("i8(i8[:, ::1], i4[:, ::1], i8[:, ::1], i8[::1], i8, i8)")
def join(nodes: Wide, slots: Ids, table: Wide, state: Wide, at: int, node: int) -> int:
    """Bring ``node``, outside the forest, together with ``at`` below the blocks that they share.

    The blocks of ``node`` are marked with the running stamp and contain the set of ``at``'s parent; ``at``
    owns at least one marked block. Returns the node of their intersection: ``at`` itself if it is inner and
    all marked, else a new one in its place; outside the forest if ``at`` is.
    """
    stamp = state[STAMP]
    shared, rest = np.int64(-1), np.int64(-1)
    weight = np.int64(0)
    slot = nodes[at, OWN]
    while slot >= 0:
        after = slots[slot, AFTER]
        if table[slots[slot, BLOCK], MARK] == stamp:
            slots[slot, AFTER] = shared
            shared = slot
            weight += table[slots[slot, BLOCK], TOKENS]
        else:
            slots[slot, AFTER] = rest
            rest = slot
        slot = after
    if rest < 0 and nodes[at, FIRST] >= 0:
        nodes[at, OWN] = shared
        add_below(nodes, slots, table, state, at, node)
        return int(at)
    fresh = state[FREE_NODE]
    state[FREE_NODE] = nodes[fresh, NEXT]
    parent = nodes[at, PARENT]
    nodes[at, OWN] = rest
    nodes[fresh, OWN] = shared
    nodes[fresh, WEIGHT] = weight + (nodes[parent, WEIGHT] if parent >= 0 else 0)
    nodes[fresh, PARENT] = -1
    if parent >= 0:
        unhang(nodes, at)
        hang(nodes, parent, fresh)
    hang(nodes, fresh, at)
    add_below(nodes, slots, table, state, fresh, node)
    return int(fresh)


@kernel("i8(i4[:, ::1], i8[:, ::1], i8[::1], i8)")
def mark(slots: Ids, table: Wide, state: Wide, slot: int) -> int:
    """Mark the blocks of the list that begins at ``slot`` with a new stamp. Returns the stamp."""
    state[STAMP] += 1
    at = np.int64(slot)
    while at >= 0:
        table[slots[at, BLOCK], MARK] = state[STAMP]
        at = np.int64(slots[at, AFTER])
    return int(state[STAMP])


@kernel("void(i8[:, ::1], i8[::1], i4[::1])")
def depth_first(nodes: Wide, state: Wide, order: Ids) -> None:
    """Leaves depth first, siblings by the first leaf below them. Fills ``order`` int32 ``(n,)``."""
    n = order.shape[0]
    root = state[ROOT]
    first = np.full(nodes.shape[0], -1, np.int64)
    last = np.full(nodes.shape[0], -1, np.int64)
    after = np.full(nodes.shape[0], -1, np.int64)
    met = np.zeros(nodes.shape[0], np.bool_)
    for leaf in range(n):
        node = np.int64(leaf)
        while node != root and not met[node]:
            met[node] = True
            parent = nodes[node, PARENT]
            if last[parent] < 0:
                first[parent] = node
            else:
                after[last[parent]] = node
            last[parent] = node
            node = parent
    node = first[root]
    filled = 0
    while node >= 0:
        if first[node] >= 0:
            node = first[node]
            continue
        order[filled] = node
        filled += 1
        while node != root and after[node] < 0:
            node = nodes[node, PARENT]
        node = after[node] if node != root else np.int64(-1)


@kernel("void(i8[:, ::1], i4[:, ::1], i8[:, ::1], i8[::1], i8[::1], i4[::1], i4[::1], i4[::1])")
def arrange(
    nodes: Wide, slots: Ids, table: Wide, state: Wide, starts: Wide, blocks: Ids, leaves: Ids, arranged: Ids
) -> None:
    """Blocks of every context along its path. ``leaves`` int32 ``(n_contexts,)``: the leaf of each, or
    the root for an empty one.

    Within a node by mean position in the contexts below it: what is free follows relevance. Fills
    ``arranged`` int32 ``(total,)`` with positions in the context, laid out like ``blocks``.
    """
    root = state[ROOT]
    positions = np.zeros(slots.shape[0], np.int64)  # sums: the slots of one node have as many contexts
    for context in range(leaves.shape[0]):
        node = np.int64(leaves[context])
        while node != root:
            slot = nodes[node, OWN]
            while slot >= 0:
                table[slots[slot, BLOCK], OWNER] = slot
                slot = slots[slot, AFTER]
            node = nodes[node, PARENT]
        for at in range(starts[context], starts[context + 1]):
            positions[table[blocks[at], OWNER]] += at - starts[context]
    for owner in range(nodes.shape[0]):
        slot = nodes[owner, OWN]
        nodes[owner, OWN] = -1
        while slot >= 0:  # insertion sort, descending: read from the end of the path backwards
            after = slots[slot, AFTER]
            before = np.int64(-1)
            here = nodes[owner, OWN]
            while here >= 0 and (
                positions[here] > positions[slot]
                or (positions[here] == positions[slot] and slots[here, BLOCK] > slots[slot, BLOCK])
            ):
                before = here
                here = np.int64(slots[here, AFTER])
            slots[slot, AFTER] = here
            if before < 0:
                nodes[owner, OWN] = slot
            else:
                slots[before, AFTER] = slot
            slot = np.int64(after)
    for context in range(leaves.shape[0]):
        for at in range(starts[context], starts[context + 1]):
            table[blocks[at], OWNER] = at - starts[context]
        to = starts[context + 1]
        node = np.int64(leaves[context])
        while node != root:
            slot = nodes[node, OWN]
            while slot >= 0:
                to -= 1
                arranged[to] = table[slots[slot, BLOCK], OWNER]
                slot = slots[slot, AFTER]
            node = nodes[node, PARENT]
