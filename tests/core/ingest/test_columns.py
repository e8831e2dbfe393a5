import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.ingest.columns import Line, columns_across, gutters, rows_of


def lines(*spans):
    """Lines from (left, right, row)."""
    return [Line(left, 700 - 12 * row, right, 710 - 12 * row) for left, right, row in spans]


def across(n_rows, *columns):
    return [(*column, row) for row in range(n_rows) for column in columns]


TWO, THREE = ((50, 280), (320, 550)), ((40, 190), (220, 370), (400, 550))


def test_two_columns_drawn_across():
    drawn = lines(
        (50, 550, 0),
        *across(10, *TWO)[2:],
        (50, 550, 10),
        *((*side, row) for row in range(11, 15) for side in TWO),
    )
    (gutter,) = between = gutters(drawn, 600)
    assert 280 < gutter < 320
    ordered = columns_across(drawn, between)
    assert [drawn[n].left for n in ordered] == [50] + [50] * 9 + [320] * 9 + [50] + [50] * 4 + [320] * 4
    from_right = columns_across(drawn, between, rtl=True)
    assert [drawn[n].left for n in from_right] == [50] + [320] * 9 + [50] * 9 + [50] + [320] * 4 + [50] * 4


def test_three_columns_drawn_across_with_a_heading():
    drawn = lines((40, 550, 0), *((*column, row + 2) for row in range(9) for column in THREE))
    ordered = columns_across(drawn, gutters(drawn, 600))
    assert [drawn[n].left for n in ordered] == [40] + [40] * 9 + [220] * 9 + [400] * 9


def test_columns_drawn_one_after_the_other_are_left_alone():
    drawn = lines(*((50, 280, row) for row in range(20)), *((320, 550, row) for row in range(20)))
    between = gutters(drawn, 600)
    assert between
    assert columns_across(drawn, between) is None
    assert columns_across(drawn, between, drawn=False) == list(range(40))


@pytest.mark.parametrize(
    "spans",
    [
        [(50, 550, row) for row in range(30)],
        across(20, (50, 120), (320, 350)),
        across(7, *TWO),
        [],
    ],
)
def test_what_has_no_columns_of_prose(spans):
    assert gutters(lines(*spans), 600) == ()


def test_rows_hold_what_stands_beside_each_other():
    drawn = [Line(300, 100, 320, 110), Line(50, 102, 80, 109), Line(50, 80, 80, 90)]
    assert rows_of(range(3), drawn) == [[1, 0], [2]]
    assert rows_of(range(3), drawn, rtl=True) == [[0, 1], [2]]


@given(
    st.lists(st.tuples(*[st.integers(0, 600)] * 2, st.integers(0, 60)).filter(lambda span: span[0] < span[1]))
)
def test_nothing_is_lost_and_nothing_comes_twice(spans):
    drawn = lines(*spans)
    between = gutters(drawn, 600)
    ordered = columns_across(drawn, between, drawn=False)
    assert sorted(ordered) == list(range(len(drawn)))
    assert sorted(n for row in rows_of(range(len(drawn)), drawn) for n in row) == list(range(len(drawn)))
