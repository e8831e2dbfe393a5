from hypothesis import given
from hypothesis import strategies as st

from core.ingest.columns import Line
from core.ingest.page_order import page_order


def line(left, right, top, height=10):
    return Line(left, top - height, right, top)


def test_a_table_is_put_where_it_began_and_the_rest_stays():
    drawn = [line(50, 550, 760)]
    drawn += [line(50, 90, 700 - 14 * row) for row in range(3)]
    drawn += [line(200, 240, 700 - 14 * row) for row in range(3)]
    drawn += [line(50, 550, 640)]
    assert page_order(drawn, 600) == [
        ("", 0),
        *(("\n\n", 1), (" | ", 4), ("\n", 2), (" | ", 5), ("\n", 3), (" | ", 6)),
        ("\n", 7),
    ]


def test_cells_of_a_table_that_is_read_from_the_right():
    drawn = [line(left, left + 40, 700 - 14 * row) for row in range(3) for left in (50, 200)]
    assert page_order(drawn, 600, drawn=False, rtl=True)[:2] == [("", 1), (" | ", 0)]


def test_lines_that_need_no_order():
    prose = [line(50, 550 - row, 700 - 12 * row) for row in range(20)]
    assert page_order(prose, 600) is None
    assert page_order([], 600) is None


def test_what_stands_between_the_pieces_of_a_scan():
    scan = [
        line(50, 100, 700),
        line(103, 200, 700),
        line(200, 260, 700),
        line(50, 300, 688),
        line(50, 300, 650),
    ]
    assert page_order(scan, 600, drawn=False) == [("", 0), (" ", 1), ("", 2), ("\n", 3), ("\n\n", 4)]


def test_boxes_of_a_damaged_page():
    nowhere = [Line(50, 700, float("nan"), 710), Line(50, 700, float("inf"), 710), line(50, 90, 700)]
    assert page_order(nowhere, 600) is None
    assert page_order(nowhere, 600, drawn=False) == [("", 0), ("\n", 1), ("\n", 2)]
    assert page_order([line(50, 90, 700)] * 30, 0) is None
    flat = [Line(left, 100, left + 20, 100) for left in range(0, 600, 30)]
    assert len(page_order(flat, 600, drawn=False)) == len(flat)


@given(
    st.lists(
        st.builds(
            line,
            st.sampled_from((50, 60, 200, 330)),
            st.sampled_from((100, 190, 320, 550)),
            st.integers(0, 40),
        )
    ),
    st.booleans(),
    st.booleans(),
)
def test_every_piece_is_there_once(drawn, as_drawn, rtl):
    ordered = page_order(drawn, 600, drawn=as_drawn, rtl=rtl)
    if ordered is not None:
        assert sorted(number for _before, number in ordered) == list(range(len(drawn)))
