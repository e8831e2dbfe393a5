"""Kernels of the context index: a prefix tree in flat arrays, children found by hash.

One row of ``nodes`` int32 ``(capacity, 8)`` is a node (32 bytes, half a cache line), the columns are named
below. ``heads`` int32 ``(n_buckets,)`` is a hash table with chains: ``heads[bucket]`` is the first node of a
bucket, column ``CHAIN`` the next one, −1 ends it. The bucket of a node depends on its parent and its element,
so looking up a child costs the same whatever the tree looks like. ``key_heads`` and ``KEY_CHAIN`` are the
same for the nodes' keys, ``keys`` int64 ``(capacity, 2)``. ``n_buckets`` is a power of two.

Nodes of one element are chained through ``twins`` int32 ``(capacity, 2)`` from ``newest`` int32
``(n_elements,)``, the latest first, so that a block is found wherever in the tree it stands.

A free row has ``PARENT`` = ``FREE``; the free rows are chained through ``CHAIN`` from ``state[FIRST_FREE]``.
"""

import numpy as np
from numpy.typing import NDArray

from core.jit import kernel

PARENT, ELEMENT, TOKENS, CHAIN, N_CHILDREN, CHILD_MASK, WEIGHT, KEY_CHAIN = 0, 1, 2, 3, 4, 5, 6, 7
N_COLUMNS = 8
FREE = -2

OLDER, YOUNGER = 0, 1

FIRST_FREE, N_NODES = 0, 1
N_STATE = 2

MAX_VISITS = 512
"""Nodes that one search may look at: bounds the time, never the correctness of what is found."""
MAX_TWINS, MAX_DEPTH = 16, 128
"""The same for a search from below: the latest places of a block, and steps up from each."""

Nodes = NDArray[np.int32]
Heads = NDArray[np.int32]
Twins = NDArray[np.int32]
Keys = NDArray[np.int64]


@kernel("i8(i4, i4, i8)")
def bucket_of(parent: int, element: int, n_buckets: int) -> int:
    """Bucket of the child ``element`` of ``parent``; the mixing of SplitMix64."""
    mixed = (np.uint64(parent) << np.uint64(32)) ^ np.uint64(element)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return int(mixed & np.uint64(n_buckets - 1))


@kernel("i4(i4)")
def mask_bit(element: int) -> int:
    """The bit of ``CHILD_MASK`` that stands for ``element``: one of 32 (a Bloom filter with one hash)."""
    mixed = (np.int64(element) * 0x9E3779B1) & 0xFFFFFFFF
    return int(np.int32(np.int64(1) << (mixed >> 27)))


@kernel("i4(i4[:, ::1], i8[:, ::1], i4[::1], i8, i8)")
def find_key(nodes: Nodes, keys: Keys, key_heads: Heads, high: int, low: int) -> int:
    """The node with this key, or −1. Keys are hashes already: their bits choose the bucket."""
    node = key_heads[low & (key_heads.shape[0] - 1)]
    while node >= 0:
        if keys[node, 0] == high and keys[node, 1] == low:
            return int(node)
        node = nodes[node, KEY_CHAIN]
    return -1


@kernel("void(i4[:, ::1], i8[:, ::1], i4[::1], i4[::1], i4)")
def link(nodes: Nodes, keys: Keys, heads: Heads, key_heads: Heads, node: int) -> None:
    """Put ``node``, whose PARENT, ELEMENT and key are set, into both tables and count it at its parent."""
    parent = nodes[node, PARENT]
    element = nodes[node, ELEMENT]
    if parent >= 0:
        bucket = bucket_of(parent, element, heads.shape[0])
        nodes[node, CHAIN] = heads[bucket]
        heads[bucket] = node
        nodes[parent, N_CHILDREN] += 1
        nodes[parent, CHILD_MASK] |= mask_bit(element)
    bucket = keys[node, 1] & (key_heads.shape[0] - 1)
    nodes[node, KEY_CHAIN] = key_heads[bucket]
    key_heads[bucket] = node


@kernel("void(i4[:, ::1], i4[::1], i8, i8, i4)")
def unchain(nodes: Nodes, heads: Heads, bucket: int, column: int, node: int) -> None:
    """Take ``node`` out of the chain of ``bucket`` that runs through ``column``."""
    if heads[bucket] == node:
        heads[bucket] = nodes[node, column]
        return
    before = heads[bucket]
    while nodes[before, column] != node:
        before = nodes[before, column]
    nodes[before, column] = nodes[node, column]


@kernel("void(i4[:, ::1], i4[::1], i4, i4)")
def add_twin(twins: Twins, newest: Heads, node: int, element: int) -> None:
    """Put ``node`` in front of those that hold the same element."""
    older = newest[element]
    twins[node, OLDER] = older
    twins[node, YOUNGER] = -1
    newest[element] = node
    if older >= 0:
        twins[older, YOUNGER] = node


@kernel("void(i4[:, ::1], i4[::1], i4, i4)")
def drop_twin(twins: Twins, newest: Heads, node: int, element: int) -> None:
    """Take ``node`` out from among those that hold the same element."""
    older = twins[node, OLDER]
    younger = twins[node, YOUNGER]
    if older >= 0:
        twins[older, YOUNGER] = younger
    if younger >= 0:
        twins[younger, OLDER] = older
    else:
        newest[element] = older


@kernel("i4(i4[:, ::1], i8[:, ::1], i4[::1], i4[::1], i4[:, ::1], i4[::1], i8[::1], i8, i8, i8, i8, i4, i4)")
def insert(
    nodes: Nodes,
    keys: Keys,
    heads: Heads,
    key_heads: Heads,
    twins: Twins,
    newest: Heads,
    state: NDArray[np.int64],
    parent_high: int,
    parent_low: int,
    high: int,
    low: int,
    element: int,
    tokens: int,
) -> int:
    """A new node; there must be a free row. Returns it, or −1: no such parent, or the key is there."""
    parent = find_key(nodes, keys, key_heads, parent_high, parent_low)
    if parent < 0 or find_key(nodes, keys, key_heads, high, low) >= 0:
        return -1
    node = int(state[FIRST_FREE])
    state[FIRST_FREE] = nodes[node, CHAIN]
    state[N_NODES] += 1
    nodes[node, PARENT] = parent
    nodes[node, ELEMENT] = element
    nodes[node, TOKENS] = tokens
    nodes[node, WEIGHT] = max(tokens, 1)
    nodes[node, N_CHILDREN] = 0
    nodes[node, CHILD_MASK] = 0
    keys[node, 0] = high
    keys[node, 1] = low
    link(nodes, keys, heads, key_heads, node)
    add_twin(twins, newest, node, element)
    return int(node)


@kernel("i8(i4[:, ::1], i8[:, ::1], i4[::1], i4[::1], i4[:, ::1], i4[::1], i8[::1], i8[:, ::1], i4[::1])")
def insert_all(
    nodes: Nodes,
    keys: Keys,
    heads: Heads,
    key_heads: Heads,
    twins: Twins,
    newest: Heads,
    state: NDArray[np.int64],
    names: NDArray[np.int64],
    values: NDArray[np.int32],
) -> int:
    """``insert`` for each row of ``names`` int64 ``(n, 4)`` (parent's key, own key) and ``values`` int32
    ``(2n,)`` (all elements, then all tokens). Returns how many went in: fewer than n if one could not.
    """
    for row in range(names.shape[0]):
        node = insert(
            nodes, keys, heads, key_heads, twins, newest, state, names[row, 0], names[row, 1], names[row, 2],
            names[row, 3], values[row], values[row + names.shape[0]],
        )  # fmt: skip
        if node < 0:
            return row
    return int(names.shape[0])


@kernel("i4(i4[:, ::1], i8[:, ::1], i4[::1], i4[::1], i4[:, ::1], i4[::1], i8[::1], i8, i8)")
def remove(
    nodes: Nodes,
    keys: Keys,
    heads: Heads,
    key_heads: Heads,
    twins: Twins,
    newest: Heads,
    state: NDArray[np.int64],
    high: int,
    low: int,
) -> int:
    """Take the node with this key out. Returns its element, or −1 if there is none that is a leaf."""
    node = find_key(nodes, keys, key_heads, high, low)
    if node < 0 or nodes[node, PARENT] < 0 or nodes[node, N_CHILDREN] > 0:
        return -1
    parent = nodes[node, PARENT]
    element = nodes[node, ELEMENT]
    unchain(nodes, heads, bucket_of(parent, element, heads.shape[0]), CHAIN, node)
    unchain(nodes, key_heads, low & (key_heads.shape[0] - 1), KEY_CHAIN, node)
    drop_twin(twins, newest, node, element)
    nodes[parent, N_CHILDREN] -= 1
    if nodes[parent, N_CHILDREN] == 0:
        nodes[parent, CHILD_MASK] = 0  # bits are only ever added while there are children
    nodes[node, PARENT] = FREE
    nodes[node, CHAIN] = state[FIRST_FREE]
    state[FIRST_FREE] = node
    state[N_NODES] -= 1
    return int(element)


@kernel("void(i4[:, ::1], i8[:, ::1], i4[::1], i4[::1], i8[::1])")
def rebuild(nodes: Nodes, keys: Keys, heads: Heads, key_heads: Heads, state: NDArray[np.int64]) -> None:
    """Hash every node again after the arrays have grown, and chain the free rows, the lowest one first."""
    heads[:] = -1
    key_heads[:] = -1
    state[FIRST_FREE] = -1
    for node in range(nodes.shape[0] - 1, -1, -1):
        nodes[node, N_CHILDREN] = 0
        nodes[node, CHILD_MASK] = 0
        if nodes[node, PARENT] == FREE:
            nodes[node, CHAIN] = state[FIRST_FREE]
            state[FIRST_FREE] = node
    for node in range(nodes.shape[0]):
        if nodes[node, PARENT] != FREE:
            link(nodes, keys, heads, key_heads, node)


@kernel("void(i4[:, ::1], i4[::1], i4, i4[::1], i4[::1], b1[::1], i4[::1])")
def find_children(
    nodes: Nodes,
    heads: Heads,
    parent: int,
    elements: NDArray[np.int32],
    bits: NDArray[np.int32],
    used: NDArray[np.bool_],
    children: NDArray[np.int32],
) -> None:
    """The child of ``parent`` for each element that is not used, −1 where there is none.

    First all buckets, then all nodes: each look waits for memory, and so the waits overlap.
    """
    mask = nodes[parent, CHILD_MASK]
    children[:] = -1
    if mask == 0:
        return
    for index in range(elements.shape[0]):
        if not used[index] and mask & bits[index]:
            children[index] = heads[bucket_of(parent, elements[index], heads.shape[0])]
    for index in range(elements.shape[0]):
        node = children[index]
        while node >= 0 and (nodes[node, PARENT] != parent or nodes[node, ELEMENT] != elements[index]):
            node = nodes[node, CHAIN]
        children[index] = node


@kernel("void(i4[:, ::1], i4[::1], i4, i4[::1], i4[::1], i8[::1])")
def best_path(
    nodes: Nodes,
    heads: Heads,
    start: int,
    elements: NDArray[np.int32],
    best: NDArray[np.int32],
    found: NDArray[np.int64],
) -> None:
    """The path below ``start``, made only of ``elements``, whose weights sum up to the most.

    ``elements`` int32 ``(k,)``: distinct; −1 for one that no node holds. ``best`` int32 ``(k,)`` receives
    the indices into ``elements`` along the path, then −1. ``found`` int64 ``(3,)`` receives the path's
    weight, its tokens, and the weight of the best path that is not the beginning of it. Depth first over all
    such paths, at most ``MAX_VISITS`` nodes; of equal paths the first in the order of ``elements`` wins.
    """
    k = elements.shape[0]
    used = np.zeros(k, np.bool_)
    bits = np.zeros(k, np.int32)
    for index in range(k):
        if elements[index] < 0:
            used[index] = True
        else:
            bits[index] = mask_bit(elements[index])
    path = np.full(k + 1, -1, np.int32)  # path[d]: which element was taken at depth d
    at = np.full(k + 1, -1, np.int32)  # at[d]: node reached at depth d
    below = np.full(
        (k + 1, k), -1, np.int32
    )  # below[d]: child of at[d] for each element, −1 if there is none
    tried = np.zeros(k + 1, np.int32)  # tried[d]: next element to try below depth d
    saved = np.zeros(k + 1, np.int64)
    tokens = np.zeros(k + 1, np.int64)
    best[:] = -1
    best_depth = 0
    best_saved = np.int64(0)
    best_tokens = np.int64(0)
    runner_up = np.int64(0)
    at[0] = start
    depth = 0
    visits = 0
    find_children(nodes, heads, start, elements, bits, used, below[0])
    while depth >= 0:
        descended = False
        if depth < k and visits < MAX_VISITS:
            while tried[depth] < k:
                index = tried[depth]
                tried[depth] += 1
                child = below[depth, index]
                if child < 0:
                    continue
                visits += 1
                used[index] = True
                path[depth] = index
                saved[depth + 1] = saved[depth] + nodes[child, WEIGHT]
                tokens[depth + 1] = tokens[depth] + nodes[child, TOKENS]
                depth += 1
                at[depth] = child
                tried[depth] = 0
                find_children(nodes, heads, child, elements, bits, used, below[depth])
                if saved[depth] > best_saved:
                    # Weights are at least 1, so whatever was seen before and is a beginning of this path
                    # weighs less than the old best, unless the old best itself is such a beginning.
                    is_longer = best_depth < depth
                    for step in range(best_depth):
                        is_longer = is_longer and best[step] == path[step]
                    if not is_longer:
                        runner_up = best_saved
                    best_saved = saved[depth]
                    best_tokens = tokens[depth]
                    best_depth = depth
                    for step in range(depth):
                        best[step] = path[step]
                    for step in range(depth, k):
                        best[step] = -1
                elif saved[depth] > runner_up:
                    runner_up = saved[depth]
                descended = True
                break
        if not descended:
            depth -= 1
            if depth >= 0:
                used[path[depth]] = False
    found[0] = best_saved
    found[1] = best_tokens
    found[2] = runner_up


@kernel("i4(i4[:, ::1], i4[:, ::1], i4[::1], b1[::1], i4[::1], i4, i4[::1], i8, f8, f8, i8[::1], f8[::1])")
def best_company(
    nodes: Nodes,
    twins: Twins,
    newest: Heads,
    is_block: NDArray[np.bool_],
    wanted: NDArray[np.int32],
    start: int,
    elements: NDArray[np.int32],
    most_foreign: int,
    price: float,
    rebate: float,
    found: NDArray[np.int64],
    worth_of: NDArray[np.float64],
) -> int:
    """The path below ``start`` that is worth most when blocks that nobody asked for may stand on it.

    ``elements`` int32 ``(k,)``: those asked for; −1 for one that no node holds. ``wanted`` int32
    ``(n_elements,)`` is scratch, all 0 before and after. What a path is worth: the weight of what is asked
    for on it, less what loading the others takes, and less ``price`` (less ``rebate`` for each unit of that
    weight) for each token of these, of which there may be ``most_foreign``. Anything
    on it that is no block (``is_block``) rules it out. Looked for upwards from the ``MAX_TWINS`` latest nodes
    of each element, so a path ends with one that is asked for. Returns the node at its end, or −1; ``found``
    int64 ``(2,)`` receives its weight, loading taken off, and its foreign tokens. Of equal ones the first
    found wins. ``worth_of`` float64 ``(1,)``: what it is worth.
    """
    for index in range(elements.shape[0]):
        if elements[index] >= 0:
            wanted[elements[index]] = 1
    best = -1
    best_worth = 0.0
    found[:] = 0
    worth_of[0] = 0.0
    for index in range(elements.shape[0]):
        if elements[index] < 0:
            continue
        end = newest[elements[index]]
        looked_at = 0
        while end >= 0 and looked_at < MAX_TWINS:
            looked_at += 1
            weight = np.int64(0)
            foreign = np.int64(0)
            node = end
            depth = 0
            while node != start and depth < MAX_DEPTH:
                element = nodes[node, ELEMENT]
                if element < 0:
                    break  # a root: the path does not go through ``start``
                if wanted[element]:
                    weight += nodes[node, WEIGHT]
                elif is_block[element]:
                    foreign += nodes[node, TOKENS]
                    weight -= max(0, nodes[node, TOKENS] - nodes[node, WEIGHT])
                    if foreign > most_foreign:
                        break
                else:
                    break
                node = nodes[node, PARENT]
                depth += 1
            if node == start:
                worth = weight - max(price - rebate * weight, 0.0) * foreign
                if worth > best_worth:
                    best_worth = worth
                    worth_of[0] = worth
                    best = end
                    found[0] = weight
                    found[1] = foreign
            end = twins[end, OLDER]
    for index in range(elements.shape[0]):
        if elements[index] >= 0:
            wanted[elements[index]] = 0
    return int(best)
