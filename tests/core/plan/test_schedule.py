"""Offline schedules: every question keeps its own blocks, and what is claimed to be shared is."""

import copy
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import saved_by_a_cache

from core.errors import BugError
from core.plan.schedule import Schedule, schedule

METHODS = ("overlap", "contextpilot")

ids = st.integers(0, 12) | st.sampled_from([2**31, 2**31 + 5, 2**63, 2**63 + 11, 2**64 - 1, -1])
batches = st.lists(st.lists(ids, max_size=7), max_size=14)


def topics(n, k, n_topics, seed=0):
    """Contexts drawn from overlapping topics of a large library."""
    rng = random.Random(seed)
    library = [rng.getrandbits(64) for _ in range(n_topics * k)]
    pools = [rng.sample(library, 3 * k) for _ in range(n_topics)]
    return [rng.sample(rng.choice(pools), k) for _ in range(n)]


def paths(contexts, plan):
    return [[contexts[i][at] for at in plan.blocks[i]] for i in plan.order]


def check(contexts, plan):
    assert sorted(plan.order) == list(range(len(contexts)))
    assert len(plan.blocks) == len(contexts)
    for context, arrangement in zip(contexts, plan.blocks, strict=True):
        first = {context.index(block) for block in context}
        assert sorted(arrangement) == sorted(first)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=150, deadline=None)
@given(contexts=batches, seed=st.integers(-(2**70), 2**70))
def test_a_schedule_is_a_permutation_and_each_question_keeps_its_own_blocks(method, contexts, seed):
    before = copy.deepcopy(contexts)
    plan = schedule(contexts, method=method, seed=seed)
    check(contexts, plan)
    assert contexts == before
    other = schedule([[1, 2, 3], [3, 2]], method=method)  # nothing of one call is left in the next
    assert plan == schedule(contexts, method=method, seed=seed)
    assert other == schedule([[1, 2, 3], [3, 2]], method=method)


@settings(max_examples=150, deadline=None)
@given(
    contexts=batches, effort=st.sampled_from([0, 0.1, 1]), weights=st.dictionaries(ids, st.integers(1, 10**6))
)
def test_overlap_saves_what_it_counts_and_a_cache_of_one_path_suffices(contexts, effort, weights):
    plan = schedule(contexts, effort=effort, weights=weights)
    run = paths(contexts, plan)
    assert plan.n_shared == saved_by_a_cache(run)
    assert plan.n_shared == saved_by_a_cache(run, capacity=max([1, *map(len, run)]))
    if effort == 1:  # tokens are what counts, not blocks; see test_overlap for how near the best it comes
        asked = [list(dict.fromkeys(context)) for context in contexts]
        tokens = lambda block: weights.get(block, 1)  # noqa: E731
        assert saved_by_a_cache(run, tokens) >= 0.75 * saved_by_a_cache(asked, tokens)


@pytest.mark.parametrize("seed", range(25))
def test_overlap_saves_what_it_counts_in_crowded_batches_of_uneven_blocks(seed):
    rng = random.Random(seed)
    contexts = [[rng.randrange(40) for _ in range(rng.randint(0, 14))] for _ in range(70)]
    weights = {block: rng.randint(1, 900) for block in range(40)}
    for effort in (0, 0.03, 0.1, 0.3):  # short of the end, what went wrong on the way can be seen
        plan = schedule(contexts, weights=weights, seed=seed, effort=effort)
        check(contexts, plan)
        run = paths(contexts, plan)
        assert plan.n_shared == saved_by_a_cache(run) == saved_by_a_cache(run, capacity=14)


@settings(max_examples=150, deadline=None)
@given(contexts=batches)
def test_contextpilot_saves_at_least_what_its_tree_shares(contexts):
    plan = schedule(contexts, method="contextpilot")
    assert plan.n_shared <= saved_by_a_cache(paths(contexts, plan))


@pytest.mark.parametrize("method", METHODS)
def test_identical_contexts_are_computed_once(method):
    contexts = [[5, 3, 9], [5, 3, 9], [9, 5, 3], [5, 3, 9]]
    plan = schedule(contexts, method=method)
    check(contexts, plan)
    assert plan.n_shared == 9
    assert saved_by_a_cache(paths(contexts, plan)) == 9


@pytest.mark.parametrize("method", METHODS)
def test_what_is_shared_comes_first_and_the_rest_keeps_its_order(method):
    contexts = [[7, 8, 1, 2, 9], [2, 5, 1, 6], [2, 1, 3, 4]]
    plan = schedule(contexts, method=method)
    run = dict(zip(plan.order, paths(contexts, plan), strict=True))
    assert {frozenset(path[:2]) for path in run.values()} == {frozenset({1, 2})}
    assert [run[0][2:], run[1][2:], run[2][2:]] == [[7, 8, 9], [5, 6], [3, 4]]
    assert len({tuple(path[:2]) for path in run.values()}) == 1


def test_shared_blocks_stand_by_mean_rank():
    contexts = [[1, 2, 3, 10], [2, 1, 3, 11], [2, 3, 1, 12]]
    plan = schedule(contexts)
    assert {tuple(path[:3]) for path in paths(contexts, plan)} == {(2, 1, 3)}


@pytest.mark.parametrize("method", METHODS)
def test_small_and_empty_batches(method):
    assert schedule([], method=method) == Schedule((), (), 0)
    assert schedule([[]], method=method) == Schedule((0,), ((),), 0)
    assert schedule([[2**64 - 1]], method=method) == Schedule((0,), ((0,),), 0)
    assert schedule([[4, 4, 1, 4, 1]], method=method) == Schedule((0,), ((0, 2),), 0)
    plan = schedule([[], [1], [], [1], [2]], method=method)
    check([[], [1], [], [1], [2]], plan)
    assert plan.n_shared == 1


@pytest.mark.parametrize("method", METHODS)
def test_contexts_of_two_hundred_blocks(method):
    contexts = topics(120, 200, 6)
    plan = schedule(contexts, method=method)
    check(contexts, plan)
    assert saved_by_a_cache(paths(contexts, plan)) > 0.15 * 120 * 200


def test_overlap_shares_more_than_contextpilot_and_effort_helps():
    contexts = topics(400, 10, 40)
    ours, none, theirs = (
        schedule(contexts),
        schedule(contexts, effort=0),
        schedule(contexts, method="contextpilot"),
    )
    check(contexts, ours)
    assert ours.n_shared > none.n_shared
    assert ours.n_shared > saved_by_a_cache(paths(contexts, theirs))


def test_seeds_differ_and_repeat():
    contexts = topics(200, 10, 20)
    plans = [schedule(contexts, seed=seed) for seed in (1, 2, 1)]
    assert plans[0] == plans[2] != plans[1]


def test_wrong_arguments_are_told():
    with pytest.raises(BugError):
        schedule([[1]], method="best")
    with pytest.raises(BugError):
        schedule([[1]], weights={1: 0})
    with pytest.raises(BugError):
        schedule([[1]], effort=-1)
