import os
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.ingest.extracted import ReadOptions
from core.ingest.pdf import read_pdf


def lines_of(data):
    return [line for line in read_pdf(data, lambda: False, ReadOptions()).text.split("\n") if line]


def test_three_columns_under_a_heading_with_notes_below(make_pdf):
    page = [(40, 760, "A heading across all of the three columns of this page, as in a newspaper")]
    for row in range(10):
        page += [
            (40 + 185 * column, 720 - 14 * row, f"{name} {row} some words to fill it")
            for column, name in enumerate(("one", "two", "three"))
        ]
    page += [(40, 60, "1 A note at the foot of the page, which runs across all of its columns again.")]
    lines = lines_of(make_pdf([page]))
    assert lines[0].startswith("A heading")
    assert [line.split()[0] for line in lines[1:-1]] == ["one"] * 10 + ["two"] * 10 + ["three"] * 10
    assert lines[-1].startswith("1 A note")


@pytest.mark.parametrize("by_column", [False, True])
def test_cells_of_a_table_stay_in_their_row(make_pdf, by_column):
    cells = [("Name", "Salary", "City"), ("Ada", "9100", "London"), ("Grace", "8700", "New York")]
    drawn = [(60 + 150 * x, 700 - 16 * y, text) for y, row in enumerate(cells) for x, text in enumerate(row)]
    if by_column:
        drawn.sort()
    page = [(60, 740, "Salaries of the year, as they were paid:"), *drawn, (60, 600, "That is all.")]
    assert lines_of(make_pdf([page])) == [
        "Salaries of the year, as they were paid:",
        "Name | Salary | City",
        "Ada | 9100 | London",
        "Grace | 8700 | New York",
        "That is all.",
    ]


def test_a_table_within_a_column_does_not_take_the_other_column(make_pdf):
    page = [(50, 700 - 14 * row, f"left line {row} is filled with many words") for row in range(20)]
    page += [(320, 700 - 14 * row, f"right line {row} is filled with many words") for row in range(10)]
    page += [
        (320 + 90 * x, 540 - 14 * row, text)
        for row in range(4)
        for x, text in enumerate((f"key{row}", f"{row * 11}"))
    ]
    lines = lines_of(make_pdf([page]))
    assert [line.split()[0] for line in lines[:30]] == ["left"] * 20 + ["right"] * 10
    assert lines[30:] == ["key0 | 0", "key1 | 11", "key2 | 22", "key3 | 33"]


@pytest.fixture
def printed(qapp, tmp_path):
    """Prints (left, top, width, text, is right-aligned) with Qt, in millimetres, and gives the PDF's bytes."""
    from PySide6.QtCore import QRectF, Qt
    from PySide6.QtGui import QFont, QPageSize, QPainter, QPdfWriter

    def make(*texts):
        path = tmp_path / "printed.pdf"
        writer = QPdfWriter(os.fspath(path))
        writer.setPageSize(QPageSize(QPageSize.PageSizeId.A4))
        writer.setResolution(254)  # ten to a millimetre
        painter = QPainter(writer)
        painter.setFont(QFont("DejaVu Sans", 11))
        for left, top, width, text, right in texts:
            side = Qt.AlignmentFlag.AlignRight if right else Qt.AlignmentFlag.AlignLeft
            painter.drawText(QRectF(10 * left, 10 * top, 10 * width, 100), side, text)
        painter.end()
        return path.read_bytes()

    return make


RTL = [
    "مرحبا بالعالم هذه جملة عربية",
    "السعر 1,234.50 دولار (تقريبا) في 2024",
    "שלום עולם זה משפט בעברית",
    "Hello שלום world 42 abc",
    "الإصدار 3.5 من Python سريع جدا",
    "اللغة لا إله إلا",
]


def test_right_to_left_lines_as_programs_print_them(printed):
    texts = [(10, 20 + 10 * row, 160, text, not text[0].isascii()) for row, text in enumerate(RTL)]
    assert lines_of(printed(*texts)) == RTL


def test_a_table_that_is_read_from_the_right(printed):
    cells = [("الاسم", "الراتب"), ("آدا", "9100"), ("غريس", "8700")]
    texts = [
        (100 - 60 * x, 20 + 8 * y, 50, text, True)
        for y, row in enumerate(cells)
        for x, text in enumerate(row)
    ]
    assert lines_of(printed(*texts)) == ["الاسم | الراتب", "آدا | 9100", "غريس | 8700"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.integers(20, 560), st.integers(20, 780), st.from_regex(r"[a-z]{1,12}", fullmatch=True)),
        min_size=1,
        max_size=40,
        unique_by=lambda cell: (cell[1] // 20, cell[0] // 100),
    )
)
def test_no_letter_is_lost_wherever_it_stands(make_pdf, cells):
    page = [(x // 100 * 100, y // 20 * 20, text) for x, y, text in cells]
    found = read_pdf(make_pdf([page]), lambda: False, ReadOptions()).text
    assert sorted(re.findall("[a-z]", found)) == sorted("".join(text for _x, _y, text in cells))
