import pytest

from core.errors import DocumentError
from core.ingest import writer
from core.ingest.writer import TextWriter


def test_rows_and_items_follow_each_other_and_the_rest_stands_apart():
    out = TextWriter()
    out.heading("Pay\nroll", 2)
    out.row(["Name", "", "Pay", ""])
    out.row(["Ada", "", "9100"])
    out.row(["", ""])
    out.end_table()
    out.row(["a", "b\nc"])
    out.item("one")
    out.item("two")
    out.row(["a single cell"])
    assert out.result() == (
        "## Pay roll\n\nName |  | Pay\nAda |  | 9100\n\na | b c\n\n- one\n- two\n\na single cell",
        (),
        0,
    )


def test_pages_begin_where_they_say():
    out = TextWriter()
    for text in ("first", "", "third"):
        out.page()
        out.paragraph(text)
    text, starts, n_blank = out.result()
    assert [text[start:] for start in starts] == ["first\n\n\n\nthird", "\n\nthird", "third"]
    assert n_blank == 1


def test_there_is_an_end_to_it(monkeypatch):
    monkeypatch.setattr(writer, "_MAX_CHARACTERS", 10)
    with pytest.raises(DocumentError, match="more text"):
        TextWriter().paragraph("a" * 11)
