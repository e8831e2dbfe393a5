import pytest

from core.errors import DocumentError
from core.ingest.sheet_check import check_part


def sheet(rows):
    return f"<worksheet><sheetData>{rows}</sheetData></worksheet>".encode()


FAR = [
    '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>',
    "<row r='1'><c r='a1'><v>1</v></c></row><row r='900000'><c x='>' r = 'zz900000'><v>1</v></c></row>",
    '<row r="1"><c r="A1"><v>1</v></c></row><row r="900000">' + "<c><v>1</v></c>" * 20 + "</row>",
]


@pytest.mark.parametrize("rows", FAR)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_cells_far_apart(rows, encoding):
    with pytest.raises(DocumentError, match="ten million cells"):
        check_part(sheet(rows).decode().encode(encoding))


def test_cells_that_hold_nothing_may_be_anywhere():
    check_part(
        sheet('<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576" s="1"/></row>')
    )


def test_counts_that_cannot_be():
    for count in ("4294967295", "9" * 5000):
        with pytest.raises(DocumentError, match="damaged"):
            check_part(f'<sst uniqueCount="{count}"><si/></sst>'.encode())
    check_part(b'<sst uniqueCount="2" count="3"><si/><si/></sst>')


@pytest.mark.parametrize(
    "data",
    [b"", b"<a>", b"<a></b>", b'<?xml version="1.0" encoding="no-such"?><a/>', sheet('<row><c r="?"/>')],
)
def test_damaged(data):
    with pytest.raises(DocumentError, match="damaged"):
        check_part(data)
