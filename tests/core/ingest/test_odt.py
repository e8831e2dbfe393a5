from pathlib import Path

import pytest

from core.errors import DocumentError
from core.ingest.readers import extract


def read(data):
    return extract(Path("a.odt"), data).text


def test_headings_lists_tables_and_notes(make_odt):
    body = (
        '<office:text><text:h text:outline-level="2">Payroll</text:h>'
        "<text:list><text:list-item><text:p>one</text:p></text:list-item>"
        "<text:list-item><text:p>two</text:p></text:list-item></text:list>"
        "<table:table><table:table-header-rows><table:table-row><table:table-cell><text:p>Name</text:p>"
        "</table:table-cell><table:table-cell><text:p>Pay</text:p></table:table-cell></table:table-row>"
        "</table:table-header-rows><table:table-row><table:table-cell><text:p>Ada</text:p></table:table-cell>"
        '<table:table-cell><text:p>9<text:s text:c="2"/>100</text:p></table:table-cell></table:table-row>'
        "</table:table><text:p>See<text:note><text:note-citation>1</text:note-citation><text:note-body>"
        "<text:p>A note.</text:p></text:note-body></text:note> here<draw:frame><draw:text-box>"
        "<text:p>Boxed</text:p></draw:text-box></draw:frame></text:p></office:text>"
    )
    assert read(make_odt(body)) == (
        "## Payroll\n\n- one\n- two\n\nName | Pay\nAda | 9 100\n\nSee[1] here\n\nBoxed\n\n[1] A note."
    )


def test_a_spreadsheet_with_filled_rows(make_odt):
    body = (
        '<office:spreadsheet><table:table table:name="Pay"><table:table-row><table:table-cell><text:p>Ada</text:p>'
        '</table:table-cell><table:table-cell table:number-columns-repeated="2"><text:p>7</text:p>'
        '</table:table-cell><table:table-cell table:number-columns-repeated="16000"/></table:table-row>'
        '<table:table-row table:number-rows-repeated="1048576"><table:table-cell/></table:table-row></table:table>'
        "</office:spreadsheet>"
    )
    assert read(make_odt(body, "spreadsheet")) == "# Sheet: Pay\n\nAda | 7 | 7"


def test_pages_of_a_presentation(make_odt):
    page = (
        "<draw:page><draw:frame><draw:text-box><text:p>{}</text:p></draw:text-box></draw:frame></draw:page>"
    )
    body = f"<office:presentation>{page.format('First')}{page.format('Second')}</office:presentation>"
    assert extract(Path("a.odp"), make_odt(body, "presentation")).page_starts == (0, 7)


def test_refusals(make_odt, survives):
    survives("a.odt", make_odt("<office:text><text:p>text</text:p></office:text>" * 20))
    with pytest.raises(DocumentError, match="password"):
        read(make_odt("", **{"META-INF/manifest.xml": "<m:encryption-data/>"}))
    with pytest.raises(DocumentError, match="entities"):
        read(make_odt("", **{"content.xml": '<!DOCTYPE a [<!ENTITY x "y">]><a/>'}))
    with pytest.raises(DocumentError, match="nested"):
        read(make_odt("<text:list>" * 30_000 + "</text:list>" * 30_000))
