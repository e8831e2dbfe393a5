"""How a document's text is laid out for reading: headings, items, rows of tables, paragraphs. Pure.

Readers give all kinds of files in one form (``# heading``, ``- item``, ``a | b``). Which of these signs
mean something depends on the kind of file: in a shell script ``#`` is no heading.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath

from app.wording import unwrapped


class Manner(StrEnum):
    PROSE = "prose"
    """Hard-wrapped lines are joined; no sign means anything."""
    MARKDOWN = "markdown"
    """As a person wrote it: hard-wrapped, with headings, items and rows."""
    MARKED = "marked"
    """As our readers write it: a line is a paragraph, a heading, an item or a row."""
    TABLE = "table"
    CODE = "code"
    """Every space and every line end stays."""


_MANNERS = {
    Manner.MARKDOWN: ".md .markdown .mdown .mkd",
    Manner.MARKED: ".docx .odt .rtf .pptx .odp .xlsx .xlsm .ods .html .htm .xhtml .epub",
    Manner.TABLE: ".csv .tsv .tab .xls",
    Manner.CODE: """
        .py .pyi .js .mjs .ts .jsx .tsx .java .kt .scala .c .h .cc .cpp .hpp .cs .go .rs .swift .rb .php .pl
        .lua .r .jl .sh .bash .zsh .ps1 .bat .sql .css .scss .vue .svelte .proto .cmake .gradle .tf .diff
        .patch .json .jsonl .ndjson .geojson .xml .yaml .yml .toml .ini .cfg .conf .properties""",
}
_BY_ENDING = {ending: manner for manner, endings in _MANNERS.items() for ending in endings.split()}
_HEADING = re.compile(r"(#{1,6})\s+(?=\S)")
_ITEM = re.compile(r"\s*[-*+]\s+(?=\S)")
_RULE = re.compile(r"[\s|:\-]+\Z")
"""The line under the head of a Markdown table, which also holds ``--``."""
_BAR = " | "
MAX_COLUMNS = 16
"""A row with more cells is read as a line."""


class Kind(StrEnum):
    TEXT = "text"
    HEADING = "heading"
    ITEM = "item"
    ROW = "row"


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A stretch of the text that stands by itself; signs and line ends are left out."""

    kind: Kind
    pieces: tuple[tuple[int, int], ...]
    """Character offsets in the text: one piece, or the cells of a row. A cell may be empty."""
    level: int = 0
    """Of a heading, 1 to 6."""
    apart: bool = False
    """An empty line is before it."""


_SHEETS = frozenset((".xlsx", ".xlsm", ".ods"))


def is_wide(title: str) -> bool:
    """Whether a file of this name is likely to hold longer lines or more columns than a narrow pane shows."""
    return manner_of(title) in (Manner.TABLE, Manner.CODE) or PurePath(title).suffix.lower() in _SHEETS


def manner_of(title: str) -> Manner:
    """How a file of this name is read; its path may be given as well."""
    return _BY_ENDING.get(PurePath(title).suffix.lower(), Manner.PROSE)


def paragraphs(text: str, manner: Manner) -> tuple[str, list[Paragraph]]:
    """The text to show (as long as ``text``: some line ends are spaces) and what it is made of.

    Every character but white space, signs of headings and items, and bars of tables is in one piece.
    """
    shown = unwrapped(text) if manner in (Manner.PROSE, Manner.MARKDOWN) else text
    found: list[Paragraph] = []
    apart = False
    for start, end in _lines(shown):
        line = shown[start:end]
        if not line.strip():
            if manner is Manner.CODE and found:
                found.append(Paragraph(Kind.TEXT, ((end, end),)))
            apart = True
            continue
        paragraph = _paragraph(line, start, manner, apart=apart)
        if paragraph is not None:
            found.append(paragraph)
            apart = False
    return shown, found


def _lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start <= len(text):
        end = text.find("\n", start)
        if end < 0:
            end = len(text)
        yield start, end
        start = end + 1


def _paragraph(line: str, start: int, manner: Manner, *, apart: bool) -> Paragraph | None:
    end = start + len(line)
    if manner is Manner.CODE:
        return Paragraph(Kind.TEXT, ((start, end),))
    end = start + len(line.rstrip())
    if manner is not Manner.PROSE:
        if manner is not Manner.TABLE and (found := _HEADING.match(line)):
            return Paragraph(Kind.HEADING, ((start + found.end(), end),), len(found[1]), apart)
        if manner is Manner.MARKDOWN and "|" in line and "--" in line and _RULE.match(line):
            return None
        cells = _cells(line, start)
        if 1 < len(cells) <= MAX_COLUMNS:
            return Paragraph(Kind.ROW, cells, apart=apart)
        if manner is not Manner.TABLE and (found := _ITEM.match(line)):
            return Paragraph(Kind.ITEM, ((start + found.end(), end),), apart=apart)
    start += len(line) - len(line.lstrip())
    return Paragraph(Kind.TEXT, ((start, end),), apart=apart)


def _cells(line: str, start: int) -> tuple[tuple[int, int], ...]:
    """Offsets of the cells of a row. Bars at both ends, as in Markdown, hold no cells."""
    stripped = line.strip()
    start += len(line) - len(line.lstrip())
    if stripped.startswith("| ") and stripped.endswith(" |"):
        stripped = stripped[1:-1]
        start += 1
    cells = []
    for cell in stripped.split("|") if _BAR in f" {stripped} " else [stripped]:
        inner = cell.strip()
        at = start + len(cell) - len(cell.lstrip()) if inner else start
        cells.append((at, at + len(inner)))
        start += len(cell) + 1
    return tuple(cells)
