from pathlib import Path

import pytest

from core.errors import NoText
from core.ingest.readers import extract


def shape(text, kind="", properties=""):
    place = f'<p:ph type="{kind}"/>' if kind else ""
    paragraphs = "".join(f"<a:p>{properties}<a:r><a:t>{line}</a:t></a:r></a:p>" for line in text.split("\n"))
    return f"<p:sp><p:nvSpPr><p:nvPr>{place}</p:nvPr></p:nvSpPr><p:txBody>{paragraphs}</p:txBody></p:sp>"


def test_slides_are_pages(make_pptx):
    first = shape("A box") + shape("Plan", "title") + shape("7", "sldNum") + shape("one\ntwo", "body")
    data = make_pptx(
        first, "", f"<p:grpSp>{shape('Grouped')}</p:grpSp>", notes={1: shape("Say hello", "body")}
    )
    found = extract(Path("a.pptx"), data)
    assert found.text == "# Plan\n\nA box\n\n- one\n- two\n\nNotes: Say hello\n\n\n\nGrouped"
    assert found.page_starts == (0, 46, 48)
    assert found.text[48:] == "Grouped"
    assert found.note == "1 of 3 slides holds no text."


def test_rows_stay_rows(make_pptx):
    def cell(text, merged=""):
        return f"<a:tc {merged}><a:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></a:txBody></a:tc>"

    rows = cell("Name") + cell("Pay"), cell("Ada") + cell("9100"), cell("wide") + cell("", "hMerge='1'")
    table = "".join(f"<a:tr>{row}</a:tr>" for row in rows)
    frame = f"<p:graphicFrame><a:graphic><a:graphicData><a:tbl>{table}</a:tbl></a:graphicData></a:graphic></p:graphicFrame>"
    assert extract(Path("a.pptx"), make_pptx(frame)).text.startswith("Name | Pay\nAda | 9100")


def test_no_text_and_damage(make_pptx, survives):
    with pytest.raises(NoText, match="pictures"):
        extract(Path("a.pptx"), make_pptx("", ""))
    with pytest.raises(NoText):
        extract(Path("a.pptx"), make_pptx())
    survives("a.pptx", make_pptx(*[shape("text", "title")] * 9))
