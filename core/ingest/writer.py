"""Puts a document's parts into one text, marked as in every other kind: headings, items, rows."""

import re
from itertools import groupby

from core.errors import DocumentError
from core.ingest.extracted import cleaned, is_blank

_SPACES = re.compile(r"\s+")
_MAX_CHARACTERS = 200_000_000
_LAYOUT_CELL = 400
"""Characters. Longer cells hold parts of a page, not values."""


class TextWriter:
    """Paragraphs stand apart; items of a list and rows of a table follow each other line by line."""

    def __init__(self) -> None:
        self._pages: list[list[tuple[str, str]]] = [[]]
        self._paged = False
        self._n_characters = 0

    def page(self) -> None:
        """What follows is on a new page."""
        if self._paged:
            self._pages.append([])
        self._paged = True

    def heading(self, text: str, level: int) -> None:
        text = _SPACES.sub(" ", text).strip()
        if text:
            self._add("heading", "#" * min(max(level, 1), 6) + " " + text)

    def paragraph(self, text: str) -> None:
        self._add("paragraph", text.strip())

    def item(self, text: str) -> None:
        """An item of a list."""
        text = _SPACES.sub(" ", text).strip()
        if text:
            self._add("item", "- " + text)

    def row(self, cells: list[str], *, layout: bool = True) -> None:
        """A row of a table in one line, an empty cell's place kept.

        ``layout``: the table may be there to lay out a page, then its long cells are paragraphs.
        """
        filled = [cell.strip() for cell in cells if cell.strip()]
        if not filled:
            return
        if layout and (len(cells) == 1 or any(len(cell) > _LAYOUT_CELL for cell in filled)):
            for cell in filled:
                self._add("paragraph", cell)
        else:
            self._add("row", row_line(cells))

    def end_table(self) -> None:
        """The next row belongs to another table."""
        self._add("end", "")

    def result(self) -> tuple[str, tuple[int, ...], int]:
        """Text, where each page begins (nothing without pages), and how many of the pages are blank."""
        texts = [_joined(page) for page in self._pages]
        starts, at = [], 0
        for text in texts:
            starts.append(at)
            at += len(text) + 2
        n_blank = sum(is_blank(text) for text in texts)
        return "\n\n".join(texts), tuple(starts) if self._paged else (), n_blank if self._paged else 0

    def _add(self, kind: str, text: str) -> None:
        self._n_characters += len(text)
        if self._n_characters > _MAX_CHARACTERS:
            raise DocumentError(
                "This file holds more text than Slipstream reads from one file.",
                hint="Save it as several smaller files and add those.",
            )
        if text or kind == "end":
            self._pages[-1].append((kind, text))


def row_line(cells: list[str]) -> str:
    """``Ada | 9100``: one line, without the empty cells at its end."""
    line = [_SPACES.sub(" ", cell).strip() for cell in cells]
    while line and not line[-1]:
        line.pop()
    return " | ".join(line)


def _joined(parts: list[tuple[str, str]]) -> str:
    blocks = []
    for kind, group in groupby(parts, key=lambda part: part[0]):
        texts = [cleaned(text) for _kind, text in group]
        if kind in ("item", "row"):
            blocks.append("\n".join(texts))
        elif kind != "end":
            blocks += texts
    return "\n\n".join(blocks)
