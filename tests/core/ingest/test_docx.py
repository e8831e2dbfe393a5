from pathlib import Path

import pytest

from core.errors import DocumentError
from core.ingest.readers import extract


def p(text, properties=""):
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def row(*cells):
    return "<w:tr>" + "".join(f"<w:tc>{cell}</w:tc>" for cell in cells) + "</w:tr>"


def read(data):
    return extract(Path("a.docx"), data).text


def test_headings_lists_and_tables(make_docx):
    styles = (
        '<w:style w:styleId="H2"><w:name w:val="heading 2"/></w:style>'
        '<w:style w:styleId="Mine"><w:basedOn w:val="H2"/><w:name w:val="Own"/></w:style>'
    )
    number = '<w:numPr><w:numId w:val="1"/></w:numPr>'
    body = (
        p("Payroll", '<w:pStyle w:val="Mine"/>')
        + p("one", number)
        + p("two", number)
        + f"<w:tbl>{row(p('Name'), p('Pay'))}{row(p('Ada'), p('9100'))}</w:tbl>"
        + "<w:sdt><w:sdtContent>" + p("In a control") + "</w:sdtContent></w:sdt>"
    )  # fmt: skip
    assert read(make_docx(body, styles)) == (
        "## Payroll\n\n- one\n- two\n\nName | Pay\nAda | 9100\n\nIn a control"
    )


def test_merged_cells_come_once_and_keep_the_columns(make_docx):
    covered = "<w:tcPr><w:vMerge/></w:tcPr>"
    wide = '<w:tcPr><w:gridSpan w:val="2"/></w:tcPr>'
    start = '<w:tcPr><w:vMerge w:val="restart"/></w:tcPr>'
    table = (
        row(p("a"), start + p("tall"), p("c"))
        + row(p("d"), covered + p(""), p("f"))
        + row(wide + p("wide"), p("i"))
    )
    assert read(make_docx(f"<w:tbl>{table}</w:tbl>")) == "a | tall | c\nd |  | f\nwide | i"


def test_boxes_once_notes_where_they_belong_and_no_deleted_text(make_docx):
    box = f"<wps:txbxContent><w:x>{p('Boxed')}</w:x></wps:txbxContent>"
    body = (
        "<w:p><w:r><w:t>See</w:t><w:footnoteReference w:id='2'/><w:tab/><w:t>here</w:t></w:r>"
        "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:ins><w:r><w:t>new</w:t></w:r></w:ins>"
        f"<w:r><mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback>{box}</mc:Fallback>"
        "</mc:AlternateContent></w:r></w:p>"
    )
    text = read(make_docx(body, footnotes=f"<w:footnote w:id='2'>{p('A note.')}</w:footnote>"))
    assert text == "See[1]\therenew\n\nBoxed\n\n[1] A note."


def test_damaged(make_docx, survives):
    survives("a.docx", make_docx(p("text") * 50))
    for members in ({"word/document.xml": "<w:p"}, {"word/document.xml": "<a/>"}, {"_rels/.rels": "<a/>"}):
        with pytest.raises(DocumentError):
            read(make_docx("", **members))


def test_entities_and_depth(make_docx):
    attack = "<!DOCTYPE a [<!ENTITY x 'text'>]><document><body><p><r><t>&x;</t></r></p></body></document>"
    with pytest.raises(DocumentError, match="entities"):
        read(make_docx("", **{"word/document.xml": attack}))
    with pytest.raises(DocumentError, match="nested"):
        read(make_docx("<w:a>" * 30_000 + p("text") + "</w:a>" * 30_000))
