"""Tables as text: CSV and its relatives."""

import csv
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from io import StringIO

from core.errors import Cancelled
from core.ingest import plain
from core.ingest.extracted import Extracted, cleaned
from core.ingest.writer import row_line

_DELIMITERS = ",;\t|"
_SAMPLE_LINES = 50
_ROWS_BETWEEN = 1000
"""Between two looks at whether to stop."""
_QUOTED = re.compile(r'"[^"]*"')


def read_table(data: bytes, stop: Callable[[], bool] = lambda: False, *, tabs: bool = False) -> Extracted:
    """A row stays one line, ``a | b``. ``tabs`` says that nothing else parts the cells.

    Raises DocumentError for data that is no text, Cancelled by ``stop``.
    """
    text, note = plain.decode(data)
    text = cleaned(text)
    delimiter = "\t" if tabs else _delimiter(text)
    # A cell may be as long as the file; one that is cut short would be an error of its own.
    csv.field_size_limit(sys.maxsize)
    lines = _lines(text, delimiter, stop)
    return Extracted("\n".join(lines), "text/tab-separated-values" if tabs else "text/csv", note=note)


def _lines(text: str, delimiter: str, stop: Callable[[], bool]) -> list[str]:
    """A quotation mark that is never closed would make one row of all that follows: then it is a
    character like any other.
    """
    source = StringIO(text, newline="")
    try:
        return _shown(csv.reader(source, delimiter=delimiter, strict=True), stop)
    except csv.Error as error:
        unclosed = "end of data" in str(error)
    source.seek(0)
    if unclosed:
        return _shown(csv.reader(source, delimiter=delimiter, quoting=csv.QUOTE_NONE), stop)
    return _shown(csv.reader(source, delimiter=delimiter), stop)


def _shown(rows: Iterable[list[str]], stop: Callable[[], bool]) -> list[str]:
    lines = []
    for number, row in enumerate(rows):
        if number % _ROWS_BETWEEN == 0 and stop():
            raise Cancelled
        if line := row_line(row):
            lines.append(line)
    return lines


def _delimiter(text: str) -> str:
    """What parts the first lines into equally many cells, and into most of them."""
    lines = [line for line in _QUOTED.sub("", text[: 1 << 16]).split("\n") if line.strip()][:_SAMPLE_LINES]

    def score(delimiter: str) -> tuple[int, int]:
        counts = Counter(n for line in lines if (n := line.count(delimiter)))
        if not counts:
            return 0, 0
        n_cells, n_lines = counts.most_common(1)[0]
        return n_lines, n_cells

    return max(_DELIMITERS, key=score)
