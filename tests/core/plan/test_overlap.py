"""The forest of "overlap" against brute force, and its search by parts, rounds and moves."""

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import most_that_can_be_saved, saved_by_a_cache

from core.plan import overlap
from core.plan.batch import equal_sets, flatten
from core.plan.overlap_kernels import connect, invert, nearest
from core.plan.schedule import schedule

tiny = st.lists(st.lists(st.integers(0, 5), max_size=3, unique=True), max_size=4)


def paths(contexts, plan):
    return [[contexts[i][at] for at in plan.blocks[i]] for i in plan.order]


@settings(max_examples=200, deadline=None)
@given(tiny)
def test_tiny_batches_are_solved_best(contexts):
    assert schedule(contexts).n_shared == most_that_can_be_saved(contexts)


@settings(max_examples=200, deadline=None)
@given(tiny, st.lists(st.integers(1, 1000), min_size=6, max_size=6))
def test_tiny_batches_are_solved_best_by_weight(contexts, tokens):
    plan = schedule(contexts, weights=dict(enumerate(tokens)))
    saved = saved_by_a_cache(paths(contexts, plan), tokens.__getitem__)
    assert saved >= 0.75 * most_that_can_be_saved(contexts, tokens.__getitem__)  # 2 of 1,500 were not best


def test_weight_decides_not_number():
    contexts = [[1, 2, 3, 9], [1, 2, 3, 4], [9, 5, 6, 7]]
    assert schedule(contexts).n_shared == 3
    plan = schedule(contexts, weights={9: 100})
    assert plan.n_shared == 1
    assert saved_by_a_cache(paths(contexts, plan), lambda block: 100 if block == 9 else 1) == 100


def test_many_parts_are_ordered_one_after_the_other_and_rounds_never_save_less():
    rng = random.Random(3)
    contexts = [rng.sample(range(100 * part, 100 * part + 9), 5) for part in range(12) for _ in range(9)]
    rng.shuffle(contexts)
    plans = [schedule(contexts, effort=effort) for effort in (0, 1, 4)]
    assert plans[0].n_shared < plans[1].n_shared <= plans[2].n_shared
    for plan in plans:
        run = paths(contexts, plan)
        assert plan.n_shared == saved_by_a_cache(run, capacity=5)
        topic = [path[0] // 100 for path in run]
        assert len(list(dict.fromkeys(topic))) == sum(
            a != b for a, b in zip([None, *topic], topic, strict=False)
        )


def test_siblings_and_repeated_contexts_keep_the_order_of_the_batch():
    contexts = [[5, 6], [1, 2], [5, 7], [1, 2], [1, 3]]
    assert schedule(contexts).order == (0, 2, 1, 3, 4)


def test_moves_are_a_number_that_depends_on_the_batch_alone():
    assert overlap.n_moves(3, 1) == 3 * overlap.MOVES_EACH_MOST
    assert overlap.n_moves(1000, 1) == overlap.MOVES_LEAST
    assert overlap.n_moves(100_000, 1) == 100_000 * overlap.MOVES_EACH
    assert overlap.n_moves(1000, 2.5) == 2.5 * overlap.MOVES_LEAST
    assert overlap.n_moves(1000, 0) == 0


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=6, unique=True), min_size=1, max_size=20))
def test_nearest_contexts_and_parts_against_sets(contexts):
    batch = flatten(contexts)
    n, n_blocks = batch.n, len(batch.weights)
    starts, lists = np.empty(n_blocks + 1, np.int64), np.empty(len(batch.blocks), np.int32)
    invert(batch.starts, batch.blocks, batch.weights, starts, lists)
    near, most = np.empty((n, 4), np.int32), np.empty((n, 4), np.int64)
    nearest(batch.starts, batch.blocks, batch.weights, starts, lists, 512, near, most)
    sets = [set(context) for context in contexts]
    for i, one in enumerate(sets):
        shared = sorted((len(one & two) for j, two in enumerate(sets) if j != i and one & two), reverse=True)
        found = [j for j in near[i].tolist() if j >= 0]
        assert [len(one & sets[j]) for j in found] == shared[:4] == most[i, : len(found)].tolist()
    parts = np.empty(n_blocks, np.int32)
    connect(batch.starts, batch.blocks, parts)
    merged = []
    for one in sets:
        merged = [two for two in merged if not two & one] + [one.union(*(two for two in merged if two & one))]
    ids = {
        block: at
        for context in contexts
        for block, at in zip(context, _dense(batch, contexts, context), strict=True)
    }
    found = {}
    for block, at in ids.items():
        found.setdefault(int(parts[at]), set()).add(block)
    assert sorted(map(sorted, found.values())) == sorted(map(sorted, merged))


def _dense(batch, contexts, context):
    at = contexts.index(context)
    return batch.blocks[batch.starts[at] : batch.starts[at + 1]].tolist()


def test_a_window_bounds_the_look_at_a_common_block():
    contexts = [[0, 1000 + i] for i in range(50)]
    batch = flatten(contexts)
    starts, lists = np.empty(len(batch.weights) + 1, np.int64), np.empty(len(batch.blocks), np.int32)
    invert(batch.starts, batch.blocks, batch.weights, starts, lists)
    near, most = np.empty((50, 64), np.int32), np.empty((50, 64), np.int64)
    nearest(batch.starts, batch.blocks, batch.weights, starts, lists, 8, near, most)
    for leaf, row in enumerate(near.tolist()):
        found = [other for other in row if other >= 0]
        assert 7 <= len(found) <= 8
        assert all(abs(other - leaf) <= 8 for other in found)


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(0, 4), max_size=3), max_size=9))
def test_equal_sets_have_one_number(contexts):
    numbers = equal_sets(flatten(contexts)).tolist()
    sets = [frozenset(context) for context in contexts]
    assert numbers == [list(dict.fromkeys(sets)).index(one) for one in sets]
