"""What a workbook's XML claims, checked before calamine believes it: it sets memory aside for the counts
and the cell addresses that a file states, and too much of that ends the whole program.
"""

import re
from xml.parsers import expat

from core.errors import DocumentError
from core.ingest.archive import damaged, refuse_entities

_MAX_CELLS = 10_000_000
"""In the rectangle that holds all of a sheet's cells: it takes memory, the empty ones as well."""
_ADDRESS = re.compile(r"([A-Za-z]{1,3})([0-9]{1,7})")
_CONTENTS = frozenset(("v", "is", "f", "t"))
_COUNTS = ("count", "uniqueCount")


def check_part(data: bytes) -> None:
    """Raises DocumentError for XML that is not whole, that declares entities, or that claims too much."""
    refuse_entities(data)
    checker = _Checker(len(data))
    parser = expat.ParserCreate(namespace_separator="}")
    parser.StartElementHandler = checker.start
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise damaged(error) from error
    if checker.n_cells > _MAX_CELLS:
        raise DocumentError(
            "This workbook has a sheet with more than ten million cells.",
            hint="Save its sheets as CSV files and add those.",
        )


class _Checker:
    """Follows where each cell is; only cells that hold something count."""

    def __init__(self, n_bytes: int) -> None:
        self._n_bytes = n_bytes
        self._row = self._column = 0
        self._left = self._top = 1 << 30
        self._right = self._bottom = 0

    @property
    def n_cells(self) -> int:
        """Cells in the rectangle."""
        if not self._bottom:
            return 0
        return (self._right - self._left + 1) * (self._bottom - self._top + 1)

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition("}")[2]
        if name == "c":
            self._enter_cell(attributes.get("r"))
        elif name in _CONTENTS:
            if self._row:
                self._left, self._right = min(self._left, self._column), max(self._right, self._column)
                self._top, self._bottom = min(self._top, self._row), max(self._bottom, self._row)
        elif name == "row":
            stated = attributes.get("r", "")
            self._row = int(stated) if stated.isdecimal() and len(stated) < 10 else self._row + 1
            self._column = 0
        else:
            for key in _COUNTS:
                stated = attributes.get(key, "")
                # Whatever is counted takes some bytes.
                if stated.isdecimal() and int(stated[:20]) > self._n_bytes:
                    raise damaged()

    def _enter_cell(self, address: str | None) -> None:
        match = _ADDRESS.fullmatch(address) if address else None
        if address and match is None:
            raise damaged()
        if match is None:
            self._column += 1
            return
        self._row = int(match.group(2))
        self._column = 0
        for letter in match.group(1).upper():
            self._column = self._column * 26 + ord(letter) - 64
