import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.work import tokens_within, work

attentions = st.floats(0, 0.01)


def test_attention_makes_later_tokens_dearer():
    assert work(0, 100, 0.0) == work(5000, 100, 0.0) == 100
    assert work(5000, 100, 0.0002) == pytest.approx(100 * (1 + 0.0002 * 5050))


@given(st.integers(0, 10**5), st.integers(0, 5000), st.integers(0, 5000), attentions)
def test_the_work_of_a_stretch_is_that_of_its_parts(start, one, two, attention):
    parts = work(start, one, attention) + work(start + one, two, attention)
    assert work(start, one + two, attention) == pytest.approx(parts)


@given(st.floats(-10, 10**5), st.integers(0, 10**5), attentions)
def test_as_many_tokens_as_fit_and_not_one_more(most, start, attention):
    n = tokens_within(most, start, attention)
    assert n >= 0
    assert n == 0 or work(start, n, attention) <= most * (1 + 1e-4)
    assert work(start, n + 1, attention) > most * (1 - 1e-4)
