"""Alignment: a permutation that begins with the cached path; the rest as the statistics or those waiting want it."""

from hypothesis import given
from hypothesis import strategies as st

from core.index import ContextIndex, OrderStatistics
from core.plan.align import align
from core.types import Committed

ROOT = b"r" * 16


def index_of(*paths):
    index, keys = ContextIndex(ROOT), {(): ROOT}
    for path in paths:
        for n in range(1, len(path) + 1):
            if path[:n] not in keys:
                keys[path[:n]] = repr(path[:n]).encode()
                index.apply(Committed(keys[path[:n]], keys[path[: n - 1]], path[n - 1], 10))
    return index


@given(
    st.lists(st.integers(0, 9), max_size=9, unique=True),
    st.permutations(range(6)),
    st.lists(st.frozensets(st.integers(0, 9)), max_size=4),
)
def test_a_permutation_that_begins_with_the_cached_path(elements, cached, waiting):
    order, match = align(
        elements, index_of(tuple(cached)), ROOT, statistics=OrderStatistics(), waiting=waiting
    )
    assert sorted(order) == list(range(len(elements)))
    assert order[: len(match.order)] == match.order


def test_what_those_waiting_share_comes_before_the_rest():
    order, _ = align([1, 2, 3, 4], index_of((1,)), ROOT, waiting=[{1, 4, 9}, {1, 4, 3}, {2}])
    assert [[1, 2, 3, 4][i] for i in order] == [1, 4, 3, 2]


def test_statistics_may_call_the_blocks_by_other_names():
    statistics = OrderStatistics()
    for _ in range(40):
        statistics.record([70, 20, 10], fixed=[70])
        statistics.record([70, 60, 10], fixed=[70])
    statistics._credits[:] = (0, 0, 1)
    order, _ = align([7, 2, 1], index_of((7,)), ROOT, statistics=statistics, names=[70, 20, 10])
    assert [[7, 2, 1][i] for i in order] == [7, 1, 2], "what is asked for with 70 most often comes next"
