from core.ingest.columns import Line
from core.ingest.rows import tables_in


def grid(rows, columns, *, top=700.0, by_column=False):
    """Lines from the (left, right) of each column, drawn row by row or column by column."""
    cells = [(row, column) for row in range(rows) for column in columns]
    if by_column:
        cells.sort(key=lambda cell: cell[1])
    return [
        Line(left, top - 14 * row, right - (row % 3), top + 10 - 14 * row) for row, (left, right) in cells
    ]


def tables(lines):
    return tables_in(range(len(lines)), lines, 600)


def test_rows_of_cells():
    (table,) = tables(grid(4, [(50, 120), (200, 230), (400, 430)]))
    assert table == [[[3 * row], [3 * row + 1], [3 * row + 2]] for row in range(4)]


def test_words_of_a_cell_stay_together():
    lines = grid(3, [(50, 80), (83, 120), (400, 430)])
    (table,) = tables(lines)
    assert table[0] == [[0, 1], [2]]


def test_short_cells_drawn_column_by_column():
    (table,) = tables(grid(5, [(50, 120), (200, 230)], by_column=True))
    assert table == [[[row], [row + 5]] for row in range(5)]


def test_a_second_line_in_a_cell_is_in_its_place():
    lines = [
        *grid(2, [(50, 120), (300, 500)]),
        Line(300, 672, 480, 682),
        *grid(2, [(50, 120), (300, 500)], top=658.0),
    ]
    (table,) = tables(lines)
    assert [len(row) for row in table] == [2, 2, 1, 2, 2]


def test_two_tables_side_by_side_are_two():
    left, right = [(50, 90), (130, 200)], [(330, 370), (420, 500)]
    lines = [*grid(4, left), *grid(4, right)]
    found = tables(lines)
    assert len(found) == 2
    assert all(len(row) == 2 for table in found for row in table)


def test_what_is_no_table():
    assert tables(grid(20, [(50, 280), (320, 550)])) == []  # prose
    assert tables(grid(2, [(50, 120), (320, 350)])) == []  # two rows
    assert tables(grid(8, [(50, 55), (70, 300)])) == []  # a list
    assert tables(grid(8, [(50, 260), (320, 350)], by_column=True)) == []  # two lists side by side
    assert tables(grid(1, [(50, 550)])) == []
    assert tables([]) == []
