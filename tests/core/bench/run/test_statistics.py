"""Known answers for means, percentiles and intervals; sessions are drawn, not questions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.bench.run.statistics import difference, ratio, spread


def test_spread_of_known_numbers():
    found = spread([1.0, 2.0, 3.0, 4.0])
    assert found == {
        "mean": 2.5,
        "p50": 2.5,
        "p95": pytest.approx(3.85),
        "p99": pytest.approx(3.97),
        "iqr": 1.5,
    }
    assert spread([]) == dict.fromkeys(found)


def test_a_ratio_is_one_of_sums_not_a_mean_of_ratios():
    value, low, high = ratio([1.0, 9.0], [2.0, 18.0], ["a", "b"])
    assert (value, low, high) == (0.5, 0.5, 0.5)
    assert ratio([1.0, 0.0], [1.0, 9.0], ["a", "b"])[0] == pytest.approx(0.1)


def test_nothing_to_compare_with_gives_nothing():
    assert ratio([], [], []) == (None, None, None)
    assert ratio([1.0], [0.0], ["a"]) == (None, None, None)
    assert ratio([1.0], [2.0], ["a"]) == (0.5, None, None), "one session has no interval"
    assert difference([], []) == (None, None, None)


def test_questions_of_one_session_are_drawn_together():
    values = np.tile([0.0, 1.0], 20)
    alone = difference(values, [str(n) for n in range(40)])
    assert alone[0] == 0.5
    paired = difference(values, [str(n // 2) for n in range(40)])
    assert paired[1] == paired[2] == 0.5, "every session has the same mean"
    assert alone[1] < 0.45 < 0.55 < alone[2]


@given(st.lists(st.tuples(st.floats(0.01, 9), st.floats(0.01, 9)), min_size=2, max_size=30))
def test_an_interval_holds_its_value_s_neighbourhood_and_is_the_same_again(pairs):
    above, below = zip(*pairs, strict=True)
    clusters = [str(n) for n in range(len(pairs))]
    value, low, high = ratio(above, below, clusters)
    assert ratio(above, below, clusters) == (value, low, high)
    single = [a / b for a, b in pairs]
    assert min(single) - 1e-9 <= low <= high <= max(single) + 1e-9
    assert value == pytest.approx(sum(above) / sum(below))
