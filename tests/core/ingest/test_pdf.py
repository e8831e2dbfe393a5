import pytest

from core.errors import Cancelled, DocumentError, NoText
from core.ingest import ocr
from core.ingest.extracted import ReadOptions
from core.ingest.pdf import read_pdf


def read(data):
    return read_pdf(data, lambda: False, ReadOptions())


def test_pages_keep_their_positions(make_pdf):
    found = read(make_pdf([[(50, 700, "First page.")], [(50, 700, "Second page.")], [(50, 700, "Third.")]]))
    assert found.text == "First page.\n\nSecond page.\n\nThird."
    assert [found.text[start:][:5] for start in found.page_starts] == ["First", "Secon", "Third"]
    assert (found.media_type, found.note) == ("application/pdf", "")


def test_a_sentence_that_runs_over_the_page_is_not_broken(make_pdf):
    found = read(make_pdf([[(50, 700, "It runs")], [(50, 700, "over the page.")]]))
    assert found.text == "It runs\nover the page."


def test_columns_that_were_drawn_across_are_read_one_after_the_other(make_pdf):
    page = [
        (60, 760, "A title that runs across both of the columns of this page and further still to the right")
    ]
    for row in range(12):
        y = 700 - 14 * row
        page += [(50, y, f"left column line {row} is filled with words")]
        page += [(320, y, f"right column line {row} is filled with words")]
    lines = [line for line in read(make_pdf([page])).text.splitlines() if line]
    assert lines[0].startswith("A title")
    assert [line.split()[0] for line in lines[1:]] == ["left"] * 12 + ["right"] * 12


def test_rows_of_a_table_stay_rows(make_pdf):
    page = []
    for row in range(20):
        page += [(50, 700 - 14 * row, f"Name {row}"), (320, 700 - 14 * row, f"{row * 100}")]
    lines = read(make_pdf([page])).text.splitlines()
    assert {"Name 3 | 300", "Name 19 | 1900"} <= set(lines)


def test_pages_without_text(make_pdf):
    some = read(make_pdf([[(50, 700, "Text.")], None, None]))
    assert some.note == f"2 of 3 pages hold no text. {ocr.offer()}"
    assert len(some.page_starts) == 3
    with pytest.raises(NoText, match="2 pages and no text"):
        read(make_pdf([None, None]))


def test_what_is_no_pdf_or_a_broken_one(make_pdf):
    with pytest.raises(DocumentError, match="named like a PDF"):
        read(b"hello")
    with pytest.raises(DocumentError, match="damaged"):
        read(b"%PDF-1.7 and then nothing")
    with pytest.raises(DocumentError, match="no pages"):
        read(make_pdf([]))


def test_reading_stops_between_pages(make_pdf):
    asked = []

    def stop():
        asked.append(1)
        return len(asked) > 2

    with pytest.raises(Cancelled):
        read_pdf(make_pdf([[(50, 700, "Text.")]] * 5), stop, ReadOptions())
    assert len(asked) == 3


def test_a_damaged_page_costs_only_itself(make_pdf):
    data = make_pdf([[(50, 700, "First.")], [(50, 700, "Second.")], [(50, 700, "Third.")]])
    found = read(data.replace(b"6 0 obj\n<< /Type /Page ", b"6 0 obj\n[ /Type /Page ", 1))
    assert found.text == "First.\n\n\n\nThird."
    assert len(found.page_starts) == 3
    assert found.note == "1 page damaged and left out: 2."
    with pytest.raises(DocumentError, match="damaged"):
        read(data.replace(b" 0 obj\n<< /Type /Page ", b" 0 obj\n[ /Type /Page "))
