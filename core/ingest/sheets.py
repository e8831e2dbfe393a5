"""Excel workbooks, sheet by sheet: a row is a line."""

import datetime as dt
import zipfile
from collections.abc import Callable, Iterable, Sequence
from io import BytesIO

from core.errors import Cancelled, DocumentError
from core.ingest.archive import Archive, damaged
from core.ingest.extracted import Extracted
from core.ingest.sheet_check import check_part
from core.ingest.writer import TextWriter

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def read_sheets(archive: Archive, stop: Callable[[], bool]) -> Extracted:
    """Raises DocumentError for a damaged workbook and for one that is too large; Cancelled by ``stop``."""
    from python_calamine import CalamineWorkbook

    data = _checked_copy(archive)
    writer = TextWriter()
    try:
        workbook = CalamineWorkbook.from_filelike(BytesIO(data))
        for name in workbook.sheet_names:
            rows = workbook.get_sheet_by_name(name).iter_rows()
            _write_sheet(name, rows, writer, stop)
    except (Cancelled, DocumentError):
        raise
    except Exception as error:
        raise damaged(error) from error
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # what Rust raises is no Exception
            raise damaged() from error
        raise
    text, _starts, _n_blank = writer.result()
    return Extracted(text, MEDIA_TYPE)


def _write_sheet(
    name: str, rows: Iterable[Sequence[object]], writer: TextWriter, stop: Callable[[], bool]
) -> None:
    titled = False
    for number, row in enumerate(rows):
        if number % 1000 == 0 and stop():
            raise Cancelled
        cells = [shown(value) for value in row]
        if not any(cells):
            continue
        if not titled:
            writer.heading(f"Sheet: {name}", 1)
            titled = True
        writer.row(cells, layout=False)
    writer.end_table()


def shown(value: object) -> str:
    """A cell's value as people write it: no ``.0`` after whole numbers, no midnight after dates."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        return f"{value:.12g}"
    if isinstance(value, dt.datetime):
        return value.date().isoformat() if value.time() == dt.time() else value.isoformat(" ", "seconds")
    if isinstance(value, dt.time):
        return value.isoformat("seconds")
    return str(value)


def _checked_copy(archive: Archive) -> bytes:
    """The workbook with nothing but its XML, checked, not packed: calamine trusts the sizes that the
    archive states, too.
    """
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as copy:
        for name in sorted(archive.names):
            if not name.lower().endswith((".xml", ".rels")):
                continue
            data = archive.read(name)
            check_part(data)
            copy.writestr(name, data)
    return out.getvalue()
