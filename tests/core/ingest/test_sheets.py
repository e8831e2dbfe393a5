import datetime as dt
from pathlib import Path

import pytest

from core.errors import Cancelled, DocumentError
from core.ingest.readers import extract
from core.ingest.sheets import shown


def text(ref, value):
    return f'<c r="{ref}" t="inlineStr"><is><t>{value}</t></is></c>'


def test_sheets_rows_numbers_and_dates(make_xlsx):
    rows = (
        f'<row r="2">{text("A2", "Name")}{text("B2", "Pay")}{text("D2", "Since")}</row>'
        f'<row r="3">{text("A3", "Ada")}<c r="B3"><v>9100</v></c><c r="C3"><v>0.30000000000000004</v></c>'
        '<c r="D3" s="1"><v>45000</v></c></row>'
    )
    data = make_xlsx(
        {"Pay": rows, "Empty": "", "Old": f'<row r="1">{text("A1", "x" * 500)}{text("B1", "y")}</row>'}
    )
    found = extract(Path("a.xlsx"), data)
    assert found.text == (
        "# Sheet: Pay\n\nName | Pay |  | Since\nAda | 9100 | 0.3 | 2023-03-15\n\n# Sheet: Old\n\n"
        + "x" * 500
        + " | y"
    )
    assert extract(Path("a.txt"), data).text == found.text
    with pytest.raises(Cancelled):
        extract(Path("a.xlsx"), data, lambda: True)


def test_values_as_people_write_them():
    assert [shown(value) for value in (True, -3.0, 1e20, dt.datetime(2024, 5, 6, 7, 8), dt.time(9, 30), "")] == [
        "TRUE", "-3", "1e+20", "2024-05-06 07:08:00", "09:30:00", "",
    ]  # fmt: skip


def test_two_cells_far_apart_take_no_memory(make_xlsx):
    rows = f'<row r="1">{text("A1", "a")}</row><row r="1048576">{text("XFD1048576", "b")}</row>'
    with pytest.raises(DocumentError, match="ten million cells"):
        extract(Path("a.xlsx"), make_xlsx({"a": rows}))
    styled = f'<row r="1">{text("A1", "a")}</row><row r="1048576"><c r="XFD1048576" s="1"/></row>'
    assert extract(Path("a.xlsx"), make_xlsx({"a": styled})).text == "# Sheet: a\n\na"


def test_damage_and_entities(make_xlsx, survives):
    survives("a.xlsx", make_xlsx({"a": f'<row r="1">{text("A1", "a")}</row>'}))
    strings = '<!DOCTYPE a [<!ENTITY x "y">]><sst/>'
    with pytest.raises(DocumentError, match="entities"):
        extract(Path("a.xlsx"), make_xlsx({"a": ""}, **{"xl/sharedStrings.xml": strings}))
    with pytest.raises(DocumentError, match="damaged"):
        extract(Path("a.xlsx"), make_xlsx({"a": "<row><c"}))
