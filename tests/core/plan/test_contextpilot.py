"""The paper's method against its definitions."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import average_linkage_by_definition, context_distance

from core.errors import KnownError
from core.plan import contextpilot
from core.plan.batch import flatten
from core.plan.contextpilot_kernels import average_linkage, distances, pair
from core.plan.schedule import schedule

contexts_ = st.lists(
    st.lists(st.integers(0, 9), min_size=1, max_size=6, unique=True), min_size=1, max_size=10
)


def distance_of(contexts, alpha=0.001):
    batch = flatten(contexts)
    condensed = np.empty(batch.n * (batch.n - 1) // 2, np.float32)
    distances(batch.starts, batch.blocks, len(batch.weights), alpha, condensed)
    return lambda i, j: float(condensed[pair(batch.n, i, j)])


@settings(max_examples=150, deadline=None)
@given(contexts_, st.sampled_from([0.001, 0.01]))
def test_distance_is_the_papers(contexts, alpha):
    found = distance_of(contexts, alpha)
    for i, a in enumerate(contexts):
        for j, b in enumerate(contexts[:i]):
            assert found(i, j) == found(j, i) == pytest.approx(context_distance(a, b, alpha), abs=1e-6)


def test_distance_of_identical_and_of_disjoint_contexts():
    found = distance_of([[1, 2, 3], [1, 2, 3], [4, 5], [3, 2, 1]])
    assert found(0, 1) == 0
    assert found(0, 2) == 1
    assert 0 < found(0, 3) < 0.01  # the same set in another order


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 14), st.integers(0, 10**6))
def test_average_linkage_is_that_of_the_definition(n, seed):
    rng = random.Random(seed)  # no ties, where several results are right
    square = [[0.0] * n for _ in range(n)]
    condensed = np.empty(n * (n - 1) // 2, np.float32)
    for i in range(n):
        for j in range(i):
            condensed[pair(n, i, j)] = square[i][j] = square[j][i] = float(np.float32(rng.random()))
    merges, heights = np.empty((n - 1, 2), np.int32), np.empty(n - 1, np.float32)
    average_linkage(condensed, n, merges, heights)
    clusters = {i: frozenset([i]) for i in range(n)}
    found = []
    for at in np.argsort(heights, kind="stable"):
        x, y = merges[at].tolist()
        clusters[y] |= clusters.pop(x)
        found.append((float(heights[at]), clusters[y]))
    expected = average_linkage_by_definition(square)
    assert [height for height, _ in found] == pytest.approx([height for height, _ in expected], abs=1e-5)
    assert {cluster for _, cluster in found} == {cluster for _, cluster in expected}


def test_lists_follow_the_tree_and_longer_paths_run_first():
    # 0 and 2 meet first, then they and 3, which is the first child there; 1 and 4 are a group; 5 is alone.
    contexts = [[1, 2, 3, 4], [20, 21, 22], [3, 2, 1, 5], [2, 1, 9, 8], [21, 23, 20], [30]]
    plan = schedule(contexts, method="contextpilot")
    run = {i: [contexts[i][at] for at in plan.blocks[i]] for i in plan.order}
    assert [run[0], run[2], run[3]] == [[2, 1, 3, 4], [2, 1, 3, 5], [2, 1, 9, 8]]
    assert [run[1], run[4], run[5]] == [[20, 21, 22], [20, 21, 23], [30]]
    assert plan.order == (0, 2, 3, 1, 4, 5)
    assert plan.n_shared == 3 + 2 + 2


def test_a_repeated_set_takes_the_list_of_the_first():
    contexts = [[1, 2, 3], [3, 2, 1], [7, 8], [2, 3, 1]]
    plan = schedule(contexts, method="contextpilot")
    assert plan.blocks == ((0, 1, 2), (2, 1, 0), (0, 1), (2, 0, 1))
    assert plan.order == (0, 1, 3, 2)
    assert plan.n_shared == 6


def test_too_many_contexts_are_refused_with_a_hint(monkeypatch):
    monkeypatch.setattr(contextpilot, "MAX_SETS", 3)
    schedule([[1], [2], [3], [3]], method="contextpilot")
    with pytest.raises(KnownError) as error:
        schedule([[1], [2], [3], [4]], method="contextpilot")
    assert error.value.hint
