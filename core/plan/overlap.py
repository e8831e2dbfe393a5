"""Method "overlap": the forest of shared prefixes that saves most, by greedy start and annealing.

A node is the intersection of the contexts below it. A set of s tokens with c children is computed once
and reused c − 1 times, so a forest saves the sum of (c − 1) · s over its inner nodes: exactly what a
cache saves that meets the contexts depth first, once no siblings share a block. Equal sets are one leaf.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.plan.batch import Batch, Ordered, equal_sets
from core.plan.forest_kernels import (
    N_NODE_COLUMNS,
    N_STATE,
    N_TABLE_COLUMNS,
    RANDOM,
    TOKENS,
    arrange,
    depth_first,
    start_forest,
)
from core.plan.overlap_kernels import (
    N_NOISE,
    N_SEEN_COLUMNS,
    anneal,
    connect,
    costs,
    grow,
    invert,
    nearest,
    settle,
)

N_NEAR = 64
"""Contexts near each one whose paths are looked at. 32 save up to 0.4 % less, 128 no more in equal time."""
WINDOW = 512
"""Entries looked at of the list of contexts that hold a block; only batches of thousands have longer ones."""
MOVES_EACH, MOVES_LEAST, MOVES_EACH_MOST = 16, 32_000, 4000
"""Moves at effort 1: so many for each set of blocks; in small batches more, to make a least number in all."""
HOTTEST = 0.5
"""Temperature at the start, in mean blocks."""
CLIMB = 0.3
"""Chance that not a subtree but the one above it is moved; 0 saves 1 to 2 % less, 0.15 to 0.6 are alike."""
SMALL_PART, MOVES_EACH_ROUND = 256, 100
"""A part of so few sets is cold after so many moves for each: the rest is better spent on another round."""

_QUANTILES = (np.arange(N_NOISE) + 0.5) / N_NOISE
_NOISE = np.stack([-np.log(1 - _QUANTILES), -np.log(-np.log(_QUANTILES))])


@dataclass(frozen=True, slots=True, eq=False)
class _Forest:
    """The arrays that the kernels work on: see ``core.plan.forest_kernels`` and ``overlap_kernels``."""

    nodes: NDArray[np.int64]
    slots: NDArray[np.int32]
    table: NDArray[np.int64]
    state: NDArray[np.int64]
    seen: NDArray[np.int64]
    near: NDArray[np.int32]
    most: NDArray[np.int64]


def n_moves(n: int, effort: float) -> int:
    """Moves for ``n`` distinct sets of blocks: a number, not a time, so that results can be repeated."""
    return round(effort * max(MOVES_EACH * n, min(MOVES_EACH_MOST * n, MOVES_LEAST)))


def plan(batch: Batch, seed: int, effort: float) -> Ordered:
    """The same for the same batch, seed and effort. ``n_shared`` is what a cache saves, whatever its size.

    Parts of the batch that share no block are told apart: of the rounds of a small part the best counts.
    """
    sets = equal_sets(batch)
    lengths = np.diff(batch.starts)
    firsts = np.unique(sets, return_index=True)[1]  # of each set the first context
    firsts = firsts[lengths[firsts] > 0]
    n = len(firsts)
    if n == 0:
        return Ordered(np.arange(batch.n, dtype=np.int32), np.zeros(0, np.int32), 0)
    leaf_of_set = np.full(batch.n, 2 * n, np.int32)  # the root: of the empty set, which comes last
    leaf_of_set[sets[firsts]] = np.arange(n, dtype=np.int32)
    leaves = leaf_of_set[sets]
    starts = np.zeros(n + 1, np.int64)
    np.cumsum(lengths[firsts], out=starts[1:])
    is_first = np.zeros(batch.n, np.bool_)
    is_first[firsts] = True
    blocks = batch.blocks[np.repeat(is_first, lengths)]

    rank, positions, n_computed = _search(starts, blocks, batch, leaves, seed, n_moves(n, effort))
    rank = np.append(rank, np.full(n + 1, n))  # inner nodes and the root
    order = np.argsort(rank[leaves], kind="stable").astype(np.int32)
    return Ordered(order, positions, len(batch.blocks) - n_computed)


def _search(
    starts: NDArray[np.int64],
    blocks: NDArray[np.int32],
    batch: Batch,
    leaves: NDArray[np.int32],
    seed: int,
    moves: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], int]:
    """Rank of each leaf depth first int64 ``(n,)``, ``Ordered.positions``, number of blocks computed.

    ``starts`` and ``blocks`` are the leaves', ``leaves`` int32 ``(batch.n,)`` are the contexts'.
    """
    n, n_blocks = len(starts) - 1, len(batch.weights)
    parts = np.empty(n_blocks, np.int32)
    connect(starts, blocks, parts)
    part = parts[blocks[starts[:-1]]]  # of each leaf
    part_of_block = parts[batch.blocks]
    small = np.bincount(part)[part] <= SMALL_PART
    n_rounds = max(1, int(moves / n / MOVES_EACH_ROUND)) if small.any() else 1

    forest = _start(starts, blocks, batch.weights, seed)
    hottest = HOTTEST * float(batch.weights[blocks].mean())
    _anneal(forest, ~small, moves / n, hottest)
    best = np.full((n_blocks, 2), np.iinfo(np.int64).max)
    rank, positions = np.empty(n, np.int64), np.empty(len(batch.blocks), np.int32)
    for _ in range(n_rounds):
        _anneal(forest, small, moves / n / n_rounds, hottest)
        while not settle(forest.nodes, forest.slots, forest.table, forest.state, forest.seen):
            pass
        computed = np.empty((n_blocks, 2), np.int64)
        costs(forest.nodes, forest.slots, forest.table, parts, computed)
        better = computed[:, 0] < best[:, 0]
        best[better] = computed[better]
        order, found = np.empty(n, np.int32), np.empty(len(batch.blocks), np.int32)
        depth_first(forest.nodes, forest.state, order)
        arrange(
            forest.nodes, forest.slots, forest.table, forest.state, batch.starts, batch.blocks, leaves, found
        )
        place = np.empty(n, np.int64)
        place[order] = np.arange(n)
        rank = np.where(better[part], place, rank)
        positions = np.where(better[part_of_block], found, positions)
    by_part = np.lexsort((rank, part))  # ranks of different rounds do not compare
    rank[by_part] = np.arange(n)
    return rank, positions, int(best[np.unique(part), 1].sum())


def _start(
    starts: NDArray[np.int64], blocks: NDArray[np.int32], weights: NDArray[np.int64], seed: int
) -> _Forest:
    """The forest that grows by putting each leaf, in the order of the batch, where it saves most."""
    n, n_blocks = len(starts) - 1, len(weights)
    list_starts, lists = np.empty(n_blocks + 1, np.int64), np.empty(len(blocks), np.int32)
    invert(starts, blocks, weights, list_starts, lists)
    near, most = np.empty((n, N_NEAR), np.int32), np.empty((n, N_NEAR), np.int64)
    nearest(starts, blocks, weights, list_starts, lists, WINDOW, near, most)

    nodes = np.empty((2 * n + 1, N_NODE_COLUMNS), np.int64)
    slots = np.empty((len(blocks), 2), np.int32)
    table = np.zeros((n_blocks, N_TABLE_COLUMNS), np.int64)
    table[:, TOKENS] = weights
    state = np.zeros(N_STATE, np.int64)
    state[RANDOM] = seed & (2**63 - 1)
    seen = np.zeros((2 * n + 1, N_SEEN_COLUMNS), np.int64)
    start_forest(starts, blocks, nodes, slots, table, state)
    grow(nodes, slots, table, state, seen, near, most, _NOISE, np.arange(n, dtype=np.int32))
    return _Forest(nodes, slots, table, state, seen, near, most)


def _anneal(forest: _Forest, which: NDArray[np.bool_], moves_each: float, hottest: float) -> None:
    """Move the leaves in ``which`` bool ``(n,)`` and what is above them, ``moves_each`` times for each."""
    leaves = np.flatnonzero(which).astype(np.int32)
    if len(leaves):
        anneal(
            forest.nodes,
            forest.slots,
            forest.table,
            forest.state,
            forest.seen,
            forest.near,
            forest.most,
            _NOISE,
            leaves,
            round(moves_each * len(leaves)),
            hottest,
            CLIMB,
        )
