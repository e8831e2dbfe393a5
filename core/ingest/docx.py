"""Word documents, read from their XML: text that Word shows, also in boxes, notes and content controls."""

import re
from xml.etree import ElementTree as ET

from core.ingest.archive import Archive, attribute, child, damaged, local
from core.ingest.extracted import Extracted
from core.ingest.writer import TextWriter

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
_CHARACTERS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "ptab": "\t"}
# Deleted and moved away text, field codes, readings above characters, properties.
_SKIPPED = frozenset(("del", "moveFrom", "delText", "instrText", "rt", "rPr", "pPr", "sdtPr", "Fallback"))
_NOTES = {"footnoteReference": "footnotes", "endnoteReference": "endnotes"}
_MAX_GRID = 63
"""Columns of a table in Word."""
_PLACEHOLDER_NOTES = frozenset(("separator", "continuationSeparator", "continuationNotice"))


def read_docx(archive: Archive) -> Extracted:
    """Raises DocumentError for a damaged file."""
    parts = archive.related("", "officeDocument")
    if not parts:
        raise damaged()
    body = child(archive.xml(parts[0]), "body")
    if body is None:
        raise damaged()
    writer = TextWriter()
    _Reader(archive, parts[0], writer).blocks(body)
    text, _starts, _n_blank = writer.result()
    return Extracted(text, MEDIA_TYPE)


class _Reader:
    def __init__(self, archive: Archive, part: str, writer: TextWriter) -> None:
        self._writer = writer
        self._headings: dict[str, int] = {}
        """Level of every style that makes headings."""
        self._lists: set[str] = set()
        """Styles that make items of a list."""
        self._notes: dict[str, dict[str, ET.Element]] = {}
        for kind in ("footnotes", "endnotes"):
            self._notes[kind] = {
                attribute(note, "id") or "": note
                for name in archive.related(part, kind)
                for note in archive.xml(name)
                if attribute(note, "type") not in _PLACEHOLDER_NOTES
            }
        self._n_notes = 0
        self._pending: list[ET.Element] = []
        """Text boxes of the current block: they follow it."""
        self._pending_notes: list[tuple[int, ET.Element]] = []
        for name in archive.related(part, "styles"):
            self._read_styles(archive.xml(name))

    def _read_styles(self, root: ET.Element) -> None:
        bases: dict[str, str] = {}
        for style in root:
            key = attribute(style, "styleId")
            if local(style) != "style" or key is None:
                continue
            bases[key] = _value(style, "basedOn")
            name = _value(style, "name")
            level = _HEADING.match(name)
            outline = _value(style, "pPr", "outlineLvl")
            if level:
                self._headings[key] = int(level.group(1))
            elif name.lower() == "title":
                self._headings[key] = 1
            elif outline.isdecimal() and int(outline) < 9:
                self._headings[key] = int(outline) + 1
            if child(style, "pPr", "numPr") is not None or name.lower().startswith("list "):
                self._lists.add(key)
        for key in bases:
            base, seen = key, set[str]()
            while base and base not in seen and base not in self._headings:
                seen.add(base)
                base = bases.get(base, "")
            if base in self._headings:
                self._headings[key] = self._headings[base]

    def blocks(self, parent: ET.Element) -> None:
        """Everything in a body, a text box, or a content control, in order."""
        for element in parent:
            name = local(element)
            if name == "p":
                self._paragraph(element)
            elif name == "tbl":
                self._table(element)
            elif name not in _SKIPPED:
                self.blocks(element)  # content controls, insertions, custom XML
                continue
            self._flush()

    def _flush(self) -> None:
        boxes, self._pending = self._pending, []
        for box in boxes:
            self.blocks(box)
        notes, self._pending_notes = self._pending_notes, []
        for number, note in notes:
            self._writer.paragraph(f"[{number}] {self._cell(note)}")

    def _paragraph(self, paragraph: ET.Element) -> None:
        text = self._inline(paragraph)
        style = _value(paragraph, "pPr", "pStyle")
        outline = _value(paragraph, "pPr", "outlineLvl")
        level = int(outline) + 1 if outline.isdecimal() else self._headings.get(style, 10)
        number = child(paragraph, "pPr", "numPr", "numId")
        is_item = style in self._lists if number is None else attribute(number, "val") != "0"
        if level < 10:
            self._writer.heading(text, level)
        elif is_item:
            self._writer.item(text)
        else:
            self._writer.paragraph(text)

    def _inline(self, parent: ET.Element) -> str:
        parts = []
        for element in parent:
            name = local(element)
            if name == "t":
                parts.append(element.text or "")
            elif name in _CHARACTERS:
                parts.append(_CHARACTERS[name])
            elif name == "txbxContent":
                self._pending.append(element)
            elif name in _NOTES:
                note = self._notes[_NOTES[name]].pop(attribute(element, "id") or "", None)
                if note is not None:
                    self._n_notes += 1
                    self._pending_notes.append((self._n_notes, note))
                    parts.append(f"[{self._n_notes}]")
            elif name not in _SKIPPED:
                parts.append(self._inline(element))
        return "".join(parts)

    def _table(self, table: ET.Element) -> None:
        for row in _inside(table, "tr"):
            before = _value(row, "trPr", "gridBefore")
            cells = [""] * min(int(before), _MAX_GRID) if before.isdecimal() else []
            cells += ["" if _is_covered(cell) else self._cell(cell) for cell in _inside(row, "tc")]
            self._writer.row(cells)
        self._writer.end_table()

    def _cell(self, cell: ET.Element) -> str:
        """Paragraphs of a cell or a note; tables in it row by row."""
        parts = []
        for element in cell:
            name = local(element)
            if name == "p":
                parts.append(self._inline(element))
            elif name == "tbl":
                parts += [
                    " | ".join(self._cell(inner) for inner in _inside(row, "tc"))
                    for row in _inside(element, "tr")
                ]
            elif name not in _SKIPPED and name != "tcPr":
                parts.append(self._cell(element))
        return "\n".join(part.strip() for part in parts if part.strip())


def _value(element: ET.Element, *path: str) -> str:
    found = child(element, *path)
    return (attribute(found, "val") or "") if found is not None else ""


def _inside(parent: ET.Element, name: str) -> list[ET.Element]:
    """Rows of a table or cells of a row, also those in content controls."""
    found = []
    for element in parent:
        if local(element) == name:
            found.append(element)
        elif local(element) in ("sdt", "sdtContent", "ins", "customXml", "bookmarkStart"):
            found += _inside(element, name)
    return found


def _is_covered(cell: ET.Element) -> bool:
    """Whether the cell above or beside it reaches over this one."""
    for name in ("vMerge", "hMerge"):
        merge = child(cell, "tcPr", name)
        if merge is not None and attribute(merge, "val") in (None, "continue"):
            return True
    return False
