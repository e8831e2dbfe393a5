"""Kernels of the context index: a prefix tree in flat arrays, children found by hash.

One row of ``nodes`` is a node, the columns are named below. ``heads`` int32 ``(n_buckets,)`` is a hash
table with chains: ``heads[bucket]`` is the first node of a bucket, column ``CHAIN`` the next one, −1 ends
it. The bucket of a node depends on its parent and its element, so looking up a child costs the same
whatever the tree looks like. ``n_buckets`` is a power of two.
"""

import numpy as np
from numpy.typing import NDArray

from core.jit import kernel

PARENT, ELEMENT, TOKENS, CHAIN, N_CHILDREN = 0, 1, 2, 3, 4
N_COLUMNS = 5

MAX_VISITS = 512
"""Nodes that one search may look at: bounds the time, never the correctness of what is found."""

Nodes = NDArray[np.int32]
Heads = NDArray[np.int32]


@kernel("i8(i4, i4, i8)")
def bucket_of(parent: int, element: int, n_buckets: int) -> int:
    """Bucket of the child ``element`` of ``parent``; the mixing of SplitMix64."""
    mixed = (np.uint64(parent) << np.uint64(32)) ^ np.uint64(element)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return int(mixed & np.uint64(n_buckets - 1))


@kernel("i4(i4[:, ::1], i4[::1], i4, i4)")
def find_child(nodes: Nodes, heads: Heads, parent: int, element: int) -> int:
    """The child of ``parent`` that holds ``element``, or −1."""
    node = heads[bucket_of(parent, element, heads.shape[0])]
    while node >= 0:
        if nodes[node, PARENT] == parent and nodes[node, ELEMENT] == element:
            return int(node)
        node = nodes[node, CHAIN]
    return -1


@kernel("void(i4[:, ::1], i4[::1], i4)")
def link(nodes: Nodes, heads: Heads, node: int) -> None:
    """Put ``node``, whose PARENT and ELEMENT are set, into the hash table and count it at its parent."""
    parent = nodes[node, PARENT]
    bucket = bucket_of(parent, nodes[node, ELEMENT], heads.shape[0])
    nodes[node, CHAIN] = heads[bucket]
    heads[bucket] = node
    if parent >= 0:
        nodes[parent, N_CHILDREN] += 1


@kernel("void(i4[:, ::1], i4[::1], i4)")
def unlink(nodes: Nodes, heads: Heads, node: int) -> None:
    """Take ``node`` out of the hash table and its parent's count."""
    parent = nodes[node, PARENT]
    bucket = bucket_of(parent, nodes[node, ELEMENT], heads.shape[0])
    if heads[bucket] == node:
        heads[bucket] = nodes[node, CHAIN]
    else:
        before = heads[bucket]
        while nodes[before, CHAIN] != node:
            before = nodes[before, CHAIN]
        nodes[before, CHAIN] = nodes[node, CHAIN]
    if parent >= 0:
        nodes[parent, N_CHILDREN] -= 1


@kernel("i8(i4[:, ::1], i4[::1], i4, i4[::1], i4[::1])")
def best_path(
    nodes: Nodes, heads: Heads, start: int, elements: NDArray[np.int32], best: NDArray[np.int32]
) -> int:
    """The path below ``start``, made only of ``elements``, that holds the most tokens.

    ``elements`` int32 ``(k,)``: distinct; −1 for one that no node holds. ``best`` int32 ``(k,)`` receives
    the indices into ``elements`` along the path, then −1. Returns the path's tokens. Depth first over all
    such paths, at most ``MAX_VISITS`` nodes; of equal paths the first in the order of ``elements`` wins.
    """
    k = elements.shape[0]
    used = np.zeros(k, np.bool_)
    path = np.full(k + 1, -1, np.int32)  # path[d]: which element was taken at depth d
    at = np.full(k + 1, -1, np.int32)  # at[d]: node reached at depth d
    tried = np.zeros(k + 1, np.int32)  # tried[d]: next element to try below depth d
    saved = np.zeros(k + 1, np.int64)
    best[:] = -1
    best_saved = np.int64(0)
    at[0] = start
    depth = 0
    visits = 0
    while depth >= 0:
        descended = False
        if depth < k and nodes[at[depth], N_CHILDREN] > 0 and visits < MAX_VISITS:
            while tried[depth] < k:
                index = tried[depth]
                tried[depth] += 1
                if used[index] or elements[index] < 0:
                    continue
                child = find_child(nodes, heads, at[depth], elements[index])
                if child < 0:
                    continue
                visits += 1
                used[index] = True
                path[depth] = index
                saved[depth + 1] = saved[depth] + nodes[child, TOKENS]
                depth += 1
                at[depth] = child
                tried[depth] = 0
                if saved[depth] > best_saved:
                    best_saved = saved[depth]
                    for step in range(depth):
                        best[step] = path[step]
                    for step in range(depth, k):
                        best[step] = -1
                descended = True
                break
        if not descended:
            depth -= 1
            if depth >= 0:
                used[path[depth]] = False
    return int(best_saved)
