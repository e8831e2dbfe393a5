"""OpenDocument files: texts, tables and presentations all keep their text in ``content.xml``."""

from xml.etree import ElementTree as ET

from core.errors import DocumentError
from core.ingest.archive import Archive, attribute, child, damaged, local
from core.ingest.extracted import Extracted
from core.ingest.writer import TextWriter

_MAX_REPEATS = 200
"""Of a cell that holds something: more is a filled column, not a table."""
_MAX_REPEATED = 100
"""Characters. Nobody fills a column with longer texts that are all the same."""
_MAX_COLUMNS = 16_384
_MAX_SPACES = 100
# Bookkeeping that is not on the page; deleted text stands in tracked-changes.
_SKIPPED_TAGS = """
    tracked-changes sequence-decls variable-decls user-field-decls forms annotation-end bookmark settings
    title ruby-text header footer footer-decl date-time-decl label-ranges calculation-settings
    content-validations named-expressions database-ranges"""
_SKIPPED = frozenset(_SKIPPED_TAGS.split())
_APART = frozenset(("text-box", "annotation"))
"""What stands beside a paragraph rather than in it."""


def read_odt(archive: Archive, media_type: str) -> Extracted:
    """Raises DocumentError for a damaged or an encrypted file."""
    if "META-INF/manifest.xml" in archive and b"encryption-data" in archive.read("META-INF/manifest.xml"):
        # Not PasswordRequired: asking for a password that cannot be used would help nobody.
        raise DocumentError(
            "This document is protected by a password; Slipstream cannot open OpenDocument files that are.",
            hint="Open it with its password, save a copy without one, and add the copy.",
        )
    root = archive.xml("content.xml", doctype=True)
    body = child(root, "body")
    if body is None:
        raise damaged()
    writer = TextWriter()
    _Reader(writer).blocks(body)
    text, starts, n_blank = writer.result()
    note = ""
    if 0 < n_blank < len(starts):
        verb = "holds" if n_blank == 1 else "hold"
        note = f"{n_blank} of {len(starts):,} slides {verb} no text."
    return Extracted(text, media_type, starts, note)


class _Reader:
    def __init__(self, writer: TextWriter) -> None:
        self._writer = writer
        self._pending: list[ET.Element] = []
        """Boxes and annotations of the current block: they follow it."""
        self._pending_notes: list[tuple[str, str]] = []

    def blocks(self, parent: ET.Element, *, item: bool = False) -> None:
        """Everything in an element in order; ``item``: paragraphs are items of a list."""
        for element in parent:
            name = local(element)
            if name == "h":
                level = attribute(element, "outline-level") or ""
                self._writer.heading(self._inline(element), int(level) if level.isdecimal() else 1)
            elif name in ("p", "desc"):
                (self._writer.item if item else self._writer.paragraph)(self._inline(element))
            elif name == "list":
                self.blocks(element, item=True)
            elif name == "table":
                self._table(element, named=local(parent) == "spreadsheet")
            elif name == "page":
                self._writer.page()
                self.blocks(element)
            elif name == "notes":  # of a slide
                spoken = " ".join(self._inline(each) for each in element.iter() if local(each) == "p").strip()
                self._writer.paragraph(f"Notes: {spoken}" if spoken else "")
            elif name == "frame" and attribute(element, "class") == "title":
                self._writer.heading(
                    " ".join(self._inline(each) for each in element.iter() if local(each) in ("p", "h")), 1
                )
            elif name not in _SKIPPED:
                self.blocks(element, item=item)
                continue
            self._flush()

    def _flush(self) -> None:
        boxes, self._pending = self._pending, []
        for box in boxes:
            self.blocks(box)
        notes, self._pending_notes = self._pending_notes, []
        for mark, text in notes:
            self._writer.paragraph(f"[{mark}] {text}")

    def _inline(self, parent: ET.Element) -> str:
        parts = [parent.text or ""]
        for element in parent:
            name = local(element)
            if name == "s":
                count = attribute(element, "c") or "1"
                parts.append(" " * min(int(count) if count.isdecimal() else 1, _MAX_SPACES))
            elif name == "tab":
                parts.append("\t")
            elif name == "line-break":
                parts.append("\n")
            elif name == "note":
                citation, note = child(element, "note-citation"), child(element, "note-body")
                mark = ((citation.text if citation is not None else None) or "*").strip()
                if note is not None:
                    self._pending_notes.append((mark, self._cell(note)))
                    parts.append(f"[{mark}]")
            elif name in _APART:
                self._pending.append(element)
            elif name in ("p", "desc"):  # of a drawing
                self._pending.append(_wrapped(element))
            elif name not in _SKIPPED and name not in ("creator", "date"):
                parts.append(self._inline(element))
            parts.append(element.tail or "")
        return "".join(parts)

    def _table(self, table: ET.Element, *, named: bool) -> None:
        if named:
            self._writer.heading(f"Sheet: {attribute(table, 'name') or ''}", 1)
        for row in _inside(table, "table-row"):
            cells: list[str] = []
            for cell in row:
                if local(cell) == "table-cell":
                    text = self._cell(cell)
                    times = _repeats(cell, "number-columns-repeated")
                    cells += [text] * (times if len(text) <= _MAX_REPEATED else 1)
                elif local(cell) == "covered-table-cell" and named:
                    cells += [""] * _repeats(cell, "number-columns-repeated")
            cells = cells[:_MAX_COLUMNS]
            size = sum(map(len, cells))
            times = _repeats(row, "number-rows-repeated") if 0 < size <= 10 * _MAX_REPEATED else 1
            for _ in range(times):
                self._writer.row(cells, layout=not named)
        self._writer.end_table()

    def _cell(self, cell: ET.Element) -> str:
        """Paragraphs of a cell or a note; what has no text but a value gives the value."""
        parts = []
        for element in cell:
            name = local(element)
            if name in ("p", "h"):
                parts.append(self._inline(element))
            elif name == "table":
                parts += [
                    " | ".join(self._cell(inner) for inner in row if local(inner) == "table-cell")
                    for row in _inside(element, "table-row")
                ]
            elif name not in _SKIPPED:
                parts.append(self._cell(element))
        text = "\n".join(part.strip() for part in parts if part.strip())
        return text or attribute(cell, "string-value") or attribute(cell, "value") or ""


def _repeats(element: ET.Element, name: str) -> int:
    count = attribute(element, name) or "1"
    return min(int(count[:9]), _MAX_REPEATS) if count.isdecimal() else 1


def _inside(parent: ET.Element, name: str) -> list[ET.Element]:
    """Rows of a table, also those in groups and headers."""
    found = []
    for element in parent:
        if local(element) == name:
            found.append(element)
        elif local(element) in ("table-rows", "table-header-rows", "table-row-group"):
            found += _inside(element, name)
    return found


def _wrapped(element: ET.Element) -> ET.Element:
    wrapper = ET.Element("box")
    inner = ET.SubElement(wrapper, "p")
    inner.text = element.text
    inner.extend(element)
    return wrapper
