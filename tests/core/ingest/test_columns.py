from core.ingest.columns import Line, in_reading_order


def lines(*spans):
    """Lines from (left, right, row)."""
    return [Line(left, 700 - 12 * row, right, 710 - 12 * row) for left, right, row in spans]


def across(n_rows, left=(50, 280), right=(320, 550)):
    return [span for row in range(n_rows) for span in ((*left, row), (*right, row))]


def test_two_columns_drawn_across():
    drawn = lines(
        (50, 550, 0),
        *across(10, (50, 280), (320, 550))[2:],
        (50, 550, 10),
        *((*side, row) for row in range(11, 15) for side in ((50, 280), (320, 550))),
    )
    ordered = in_reading_order(drawn, 600)
    lefts = [line.left for _gap, line in ordered]
    assert lefts == [50] + [50] * 9 + [320] * 9 + [50] + [50] * 4 + [320] * 4
    assert ordered[0][0] == ""
    assert ordered[1][0] == "\n"


def test_what_needs_no_order_is_left_alone():
    one_column = lines(*((50, 550, row) for row in range(30)))
    assert in_reading_order(one_column, 600) is None
    after_each_other = lines(*((50, 280, row) for row in range(20)), *((320, 550, row) for row in range(20)))
    assert in_reading_order(after_each_other, 600) is None
    table = lines(*across(20, (50, 120), (320, 350)))
    assert in_reading_order(table, 600) is None
    assert in_reading_order([], 600) is None


def test_pieces_of_one_line_are_joined_by_a_space():
    pieces = [span for row in range(9) for span in ((50, 150, row), (152, 290, row), (320, 550, row))]
    drawn = [Line(left, 700 - 12 * row, right, 710 - 12 * row) for left, right, row in pieces]
    ordered = in_reading_order(drawn, 400)
    assert ordered is None or {gap for gap, _line in ordered} <= {"", " ", "\n"}
