"""Kernels of the search for the forest that saves most: nearest contexts, placing a subtree, annealing.

The arrays of the forest are those of ``core.plan.forest_kernels``. ``seen`` int64 ``(2n + 1, 8)`` is what
placing knows of the nodes it visited; its columns are named below.

Numba looks at this file alone to see whether what it compiled from it is stale, and kernels of the forest
are compiled into these: who changes that module in a checkout touches this one too.
"""

import numpy as np
from numpy.typing import NDArray

from core.jit import kernel
from core.plan.forest_kernels import (
    AFTER,
    BLOCK,
    EPOCH,
    FIRST,
    MARK,
    N_CHILDREN,
    NEXT,
    OWN,
    OWNER,
    PARENT,
    RANDOM,
    ROOT,
    SEEN_STAMP,
    STAMP,
    TOKENS,
    WEIGHT,
    Ids,
    Wide,
    add_below,
    cut,
    join,
    mark,
    replace_by_only_child,
    unhang,
)

SEEN, SHARED, COVERED, GAP, LOSS, SPLIT, BELOW = 0, 1, 2, 3, 4, 5, 6
"""Of a visited node v and the set X to be placed: stamp; w(X ∩ v); the same down to the first node on the
path that X does not contain; this node or −1; what is lost if something leaves v for X; whether v is then
split; the next node on the path to the leaf looked at."""
N_SEEN_COLUMNS = 8

N_NOISE = 1024
EXPONENTIAL, GUMBEL = 0, 1
"""Rows of ``noise`` float64 ``(2, N_NOISE)``: quantiles, rising, to draw from."""


@kernel("i8(i8[::1])")
def random_bits(state: Wide) -> int:
    """63 random bits (SplitMix64)."""
    state[RANDOM] += np.int64(-7046029254386353131)  # 0x9E3779B97F4A7C15
    mixed = np.uint64(state[RANDOM])
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return int((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(1))


@kernel("void(i8[::1], i4[::1], i8[::1], i8[::1], i4[::1])")
def invert(starts: Wide, blocks: Ids, tokens: Wide, list_starts: Wide, lists: Ids) -> None:
    """Leaves of every block: ``lists[list_starts[b]:list_starts[b + 1]]``, rising. Fills both."""
    n_blocks = tokens.shape[0]
    list_starts[:] = 0
    for at in range(blocks.shape[0]):
        list_starts[blocks[at] + 1] += 1
    for block in range(n_blocks):
        list_starts[block + 1] += list_starts[block]
    fill = list_starts[:-1].copy()
    for leaf in range(starts.shape[0] - 1):
        for at in range(starts[leaf], starts[leaf + 1]):
            lists[fill[blocks[at]]] = leaf
            fill[blocks[at]] += 1


@kernel("void(i8[::1], i4[::1], i8[::1], i8[::1], i4[::1], i8, i4[:, ::1], i8[:, ::1])")
def nearest(
    starts: Wide, blocks: Ids, tokens: Wide, list_starts: Wide, lists: Ids, window: int, near: Ids, most: Wide
) -> None:
    """The leaves that share most with each leaf, best first, then −1, and how many tokens they share.

    Fills ``near`` int32 and ``most`` int64, both ``(n, width)``.

    At most ``window`` entries of a block's list are looked at, those around the leaf itself: a block that
    thousands share tells little, and batches often come sorted by topic. What is shared is then counted too
    low. Ties: the rarest block's leaf.
    """
    n, width = near.shape
    shared = np.zeros(n, np.int64)
    touched = np.empty(n, np.int32)
    by_rarity = np.empty(blocks.shape[0] + 1, np.int32)
    for leaf in range(n):
        k = 0
        for at in range(starts[leaf], starts[leaf + 1]):
            block = blocks[at]
            length = list_starts[block + 1] - list_starts[block]
            to = k
            while to > 0 and list_starts[by_rarity[to - 1] + 1] - list_starts[by_rarity[to - 1]] > length:
                by_rarity[to] = by_rarity[to - 1]
                to -= 1
            by_rarity[to] = block
            k += 1
        n_touched = 0
        for index in range(k):
            block = by_rarity[index]
            begin, end = list_starts[block], list_starts[block + 1]
            if end - begin > window:
                low, high = begin, end
                while low < high:
                    middle = (low + high) >> 1
                    if lists[middle] < leaf:
                        low = middle + 1
                    else:
                        high = middle
                begin = min(max(begin, low - (window >> 1)), end - window)
                end = begin + window
            for at in range(begin, end):
                other = lists[at]
                if shared[other] == 0:
                    touched[n_touched] = other
                    n_touched += 1
                shared[other] += tokens[block]
        filled = 0
        for index in range(n_touched):
            other = touched[index]
            value = shared[other]
            shared[other] = 0
            if other == leaf or (filled == width and value <= most[leaf, filled - 1]):
                continue
            to = min(filled, width - 1)
            while to > 0 and most[leaf, to - 1] < value:
                most[leaf, to] = most[leaf, to - 1]
                near[leaf, to] = near[leaf, to - 1]
                to -= 1
            most[leaf, to] = value
            near[leaf, to] = other
            filled = min(filled + 1, width)
        near[leaf, filled:] = -1


@kernel(
    "void(i8[:, ::1], i4[:, ::1], i8[:, ::1], i8[::1], i8[:, ::1], i4[::1], i8[::1], f8[:, ::1],"
    " i8, i8, i8, f8)"
)
def place(
    nodes: Wide,
    slots: Ids,
    table: Wide,
    state: Wide,
    seen: Wide,
    near: Ids,
    most: Wide,
    noise: NDArray[np.float64],
    node: int,
    home: int,
    home_tokens: int,
    temperature: float,
) -> None:
    """Put ``node``, outside the forest, where it saves most, looking at the paths to the leaves ``near``.

    Let X be the set of ``node``, v a node on such a path, p its parent. X joins v, which saves w(X ∩ v) less
    what that costs above: nothing where X contains p. Otherwise v leaves p, for one of two prices, the lower
    of which counts, down from the first node g that X does not contain:

    * p is *split*: its part in X moves along, with the rest of p below it; w(p) − w(X ∩ p) and the price at
      the parent of p;
    * v *leaves* for where the path leaves X; w(p) − w(X ∩ g).

    ``home`` and ``home_tokens``: where ``node`` was taken from (what ``cut`` returned; the root for nowhere)
    and the tokens it shared there. The best other place counts if it saves more than home, where
    exponential noise of ``temperature`` tokens has been taken off; a tenth of that, Gumbel noise, decides
    between near ties. ``most`` int64: what is shared with ``near`` at most, falling (see ``nearest``).
    """
    root = state[ROOT]
    stamp = mark(slots, table, state, nodes[node, OWN])
    state[SEEN_STAMP] += 1
    visit = state[SEEN_STAMP]
    whole = nodes[node, WEIGHT]
    best = float(home_tokens)
    jitter = 0.0
    highest = 0.0
    if temperature > 0:
        best -= temperature * noise[EXPONENTIAL, random_bits(state) & (N_NOISE - 1)]
        jitter = 0.1 * temperature
        highest = jitter * noise[GUMBEL, N_NOISE - 1]
    if best < 0:
        best = 0.0  # alone below the root
        home = root
    best_node = -1
    for index in range(near.shape[0]):
        leaf = np.int64(near[index])
        if leaf < 0 or most[index] + highest <= best:
            break
        at = leaf
        below = np.int64(-1)
        while at >= 0 and at != root and seen[at, SEEN] != visit:
            seen[at, BELOW] = below
            below = at
            at = nodes[at, PARENT]
        if at < 0:
            continue  # below ``node``, or not placed yet
        shared, covered, gap, loss = np.int64(0), np.int64(0), np.int64(-1), np.int64(0)
        if at != root:
            shared, covered, gap = seen[at, SHARED], seen[at, COVERED], seen[at, GAP]
            loss = seen[at, LOSS]
        while below >= 0 and whole - loss + highest > best:
            at = below
            below = seen[at, BELOW]
            shared_above, gap_above = shared, gap
            lacks = False
            slot = nodes[at, OWN]
            while slot >= 0:
                block = slots[slot, BLOCK]
                if table[block, MARK] == stamp:
                    shared += table[block, TOKENS]
                else:
                    lacks = True
                slot = np.int64(slots[slot, AFTER])
            if gap < 0:
                covered = shared
                if lacks:
                    gap = at
            value = np.float64(0)  # nothing to join
            if (gap_above < 0 and shared > shared_above) or shared > covered:
                value = np.float64(shared - loss)
            if gap >= 0:
                split = loss + nodes[at, WEIGHT] - shared
                leave = nodes[at, WEIGHT] - covered
                seen[at, SPLIT] = split < leave
                loss = min(split, leave)
            seen[at, SEEN] = visit
            seen[at, SHARED] = shared
            seen[at, COVERED] = covered
            seen[at, GAP] = gap
            seen[at, LOSS] = loss
            if value <= 0 or value + highest <= best or (at == home and shared == home_tokens):
                continue
            if jitter > 0:
                value += jitter * noise[GUMBEL, random_bits(state) & (N_NOISE - 1)]
            if value > best:
                best = value
                best_node = int(at)
    if best_node < 0:
        if home == root:
            add_below(nodes, slots, table, state, root, node)
        else:
            join(nodes, slots, table, state, home, node)
        return
    parent = nodes[best_node, PARENT]
    gap = seen[parent, GAP] if parent != root else np.int64(-1)
    if gap < 0:
        join(nodes, slots, table, state, best_node, node)
        return
    above = nodes[gap, PARENT]
    branch = best_node
    splits = True
    while splits:
        parent = nodes[branch, PARENT]
        splits = seen[parent, SPLIT] != 0
        left = cut(nodes, slots, state, branch)
        node = join(nodes, slots, table, state, branch, node)
        stamp = mark(slots, table, state, nodes[node, OWN])
        if parent == gap:
            gap = np.int64(left)
        branch = left
    shares = False
    slot = nodes[gap, OWN]
    while slot >= 0:
        shares |= table[slots[slot, BLOCK], MARK] == stamp
        slot = np.int64(slots[slot, AFTER])
    if shares:
        join(nodes, slots, table, state, int(gap), node)
    else:
        add_below(nodes, slots, table, state, above, node)


@kernel(
    "void(i8[:, ::1], i4[:, ::1], i8[:, ::1], i8[::1], i8[:, ::1], i4[:, ::1], i8[:, ::1], f8[:, ::1],"
    " i4[::1])"
)
def grow(
    nodes: Wide,
    slots: Ids,
    table: Wide,
    state: Wide,
    seen: Wide,
    near: Ids,
    most: Wide,
    noise: NDArray[np.float64],
    order: Ids,
) -> None:
    """The greedy start: the leaves in ``order``, each where it saves most."""
    for index in range(order.shape[0]):
        leaf = int(order[index])
        place(nodes, slots, table, state, seen, near[leaf], most[leaf], noise, leaf, state[ROOT], 0, 0.0)


@kernel(
    "void(i8[:, ::1], i4[:, ::1], i8[:, ::1], i8[::1], i8[:, ::1], i4[:, ::1], i8[:, ::1], f8[:, ::1],"
    " i4[::1], i8, f8, f8)"
)
def anneal(
    nodes: Wide,
    slots: Ids,
    table: Wide,
    state: Wide,
    seen: Wide,
    near: Ids,
    most: Wide,
    noise: NDArray[np.float64],
    leaves: Ids,
    n_moves: int,
    hottest: float,
    climb: float,
) -> None:
    """``n_moves`` times: cut a random subtree and place it anew; from ``hottest`` tokens down to 0.

    The subtree is one of ``leaves``, or with the chance ``climb`` what is above it, and so on.
    """
    n = leaves.shape[0]
    root = state[ROOT]
    chance = np.int64(climb * 1048576.0)
    for move in range(n_moves):
        leaf = int(leaves[random_bits(state) % n])
        node = leaf
        while nodes[node, PARENT] != root and (random_bits(state) & 1048575) < chance:
            node = int(nodes[node, PARENT])
        home_tokens = nodes[nodes[node, PARENT], WEIGHT]
        home = cut(nodes, slots, state, node)
        temperature = hottest * (1.0 - (move + 1.0) / n_moves)
        place(
            nodes,
            slots,
            table,
            state,
            seen,
            near[leaf],
            most[leaf],
            noise,
            node,
            home,
            home_tokens,
            temperature,
        )


@kernel("b1(i8[:, ::1], i4[:, ::1], i8[:, ::1], i8[::1], i8[:, ::1])")
def settle(nodes: Wide, slots: Ids, table: Wide, state: Wide, seen: Wide) -> bool:
    """Join siblings that still share a block. True if none can: no place is left to share by chance.

    From the root downwards; a child joins the earlier sibling with which it shares most. To be repeated
    until it returns true: a node whose children all joined gives way to what they became, and that may
    share a block with the node's siblings.
    """
    root = state[ROOT]
    stack = np.empty(nodes.shape[0], np.int64)
    children = np.empty(nodes.shape[0], np.int64)
    settled = True
    stack[0] = root
    depth = 1
    table[:, EPOCH] = 0
    epoch = np.int64(0)
    while depth > 0:
        depth -= 1
        node = stack[depth]
        epoch += 1
        n_children = 0
        child = nodes[node, FIRST]
        while child >= 0:
            children[n_children] = child
            n_children += 1
            child = nodes[child, NEXT]
        for index in range(n_children - 1, -1, -1):  # the oldest first: new children are hung in front
            child = children[index]
            state[STAMP] += 1
            state[SEEN_STAMP] += 1
            best, best_shared = -1, np.int64(0)
            slot = nodes[child, OWN]
            while slot >= 0:
                block = slots[slot, BLOCK]
                table[block, MARK] = state[STAMP]
                if table[block, EPOCH] == epoch:
                    owner = table[block, OWNER]
                    if seen[owner, SEEN] != state[SEEN_STAMP]:
                        seen[owner, SEEN] = state[SEEN_STAMP]
                        seen[owner, SHARED] = 0
                    seen[owner, SHARED] += table[block, TOKENS]
                    if seen[owner, SHARED] > best_shared:
                        best_shared = seen[owner, SHARED]
                        best = int(owner)
                slot = slots[slot, AFTER]
            kept = child
            if best >= 0:
                slot = nodes[best, OWN]
                while slot >= 0:
                    table[slots[slot, BLOCK], EPOCH] = 0
                    slot = slots[slot, AFTER]
                unhang(nodes, child)
                kept = join(nodes, slots, table, state, best, child)
            slot = nodes[kept, OWN]
            while slot >= 0:
                table[slots[slot, BLOCK], EPOCH] = epoch
                table[slots[slot, BLOCK], OWNER] = kept
                slot = slots[slot, AFTER]
        if node != root and nodes[node, N_CHILDREN] == 1:
            stack[depth] = replace_by_only_child(nodes, slots, state, node)
            depth += 1
            settled = False
            continue
        child = nodes[node, FIRST]
        while child >= 0:
            if nodes[child, FIRST] >= 0:
                stack[depth] = child
                depth += 1
            child = nodes[child, NEXT]
    return settled


@kernel("void(i8[::1], i4[::1], i4[::1])")
def connect(starts: Wide, blocks: Ids, parts: Ids) -> None:
    """Parts of the batch that share no block. Fills ``parts`` int32 ``(n_blocks,)``: the part of each block.

    A part is named by the smallest of its blocks.
    """
    for block in range(parts.shape[0]):
        parts[block] = block
    for context in range(starts.shape[0] - 1):
        one = np.int64(-1)
        for at in range(starts[context], starts[context + 1]):
            two = np.int64(blocks[at])
            while parts[two] != two:
                parts[two] = parts[parts[two]]
                two = np.int64(parts[two])
            if one < 0 or one == two:
                one = two
                continue
            one, two = min(one, two), max(one, two)
            parts[two] = one
    for block in range(parts.shape[0]):
        parts[block] = parts[parts[block]]  # a smaller block: its own entry is final by now


@kernel("void(i8[:, ::1], i4[:, ::1], i8[:, ::1], i4[::1], i8[:, ::1])")
def costs(nodes: Wide, slots: Ids, table: Wide, parts: Ids, computed: Wide) -> None:
    """What a cache computes for every part. Fills ``computed`` int64 ``(n_blocks, 2)``: tokens, blocks."""
    computed[:] = 0
    for node in range(nodes.shape[0]):
        slot = nodes[node, OWN]
        while slot >= 0:
            block = slots[slot, BLOCK]
            computed[parts[block], 0] += table[block, TOKENS]
            computed[parts[block], 1] += 1
            slot = np.int64(slots[slot, AFTER])
