"""PowerPoint presentations, read from their XML: a slide is a page."""

from xml.etree import ElementTree as ET

from core.errors import NoText
from core.ingest.archive import Archive, attribute, child, damaged, local
from core.ingest.extracted import Extracted
from core.ingest.writer import TextWriter

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
_TITLES = frozenset(("title", "ctrTitle"))
_FURNITURE = frozenset(("dt", "ftr", "hdr", "sldNum", "sldImg"))
"""Placeholders that are the same on every slide."""


def read_pptx(archive: Archive) -> Extracted:
    """Raises DocumentError for a damaged file, NoText where no slide holds any."""
    parts = archive.related("", "officeDocument")
    if not parts:
        raise damaged()
    relations = archive.relations(parts[0])
    slides = dict.fromkeys(
        relations[key][1]
        for element in (child(archive.xml(parts[0]), "sldIdLst") or ())
        if (key := _relation_of(element)) in relations and relations[key][1] in archive
    )
    writer = TextWriter()
    for name in slides:
        writer.page()
        _read_slide(archive, name, writer)
    text, starts, n_blank = writer.result()
    if n_blank == len(slides):
        raise NoText(
            "This presentation holds no text; it may hold pictures.",
            hint="Save it as PDF, run text recognition (OCR) on that, and add the result.",
        )
    verb = "holds" if n_blank == 1 else "hold"
    note = f"{n_blank} of {len(slides):,} slides {verb} no text." if n_blank else ""
    return Extracted(text, MEDIA_TYPE, starts, note)


def _relation_of(element: ET.Element) -> str:
    return next((value for key, value in element.attrib.items() if key.endswith("}id")), "")


def _read_slide(archive: Archive, name: str, writer: TextWriter) -> None:
    tree = child(archive.xml(name), "cSld", "spTree")
    if tree is None:
        return
    shapes = _shapes(tree)
    shapes.sort(key=lambda shape: _placeholder(shape) not in _TITLES)  # the title first, the rest as it is
    for shape in shapes:
        kind = _placeholder(shape)
        body = child(shape, "txBody")
        if kind in _FURNITURE:
            continue
        if local(shape) == "graphicFrame":
            _read_frame(archive, name, shape, writer)
        elif body is not None and kind in _TITLES:
            writer.heading(" ".join(_text(each) for each in body if local(each) == "p"), 1)
        elif body is not None:
            _read_body(body, writer, is_list=kind not in ("", "subTitle"))
    for notes in archive.related(name, "notesSlide"):
        notes_tree = child(archive.xml(notes), "cSld", "spTree")
        for shape in _shapes(notes_tree) if notes_tree is not None else []:
            body = child(shape, "txBody")
            if _placeholder(shape) == "body" and body is not None:
                lines = [_text(each) for each in body if local(each) == "p"]
                spoken = "\n".join(line for line in lines if line.strip())
                writer.paragraph(f"Notes: {spoken}" if spoken else "")


def _shapes(tree: ET.Element) -> list[ET.Element]:
    """Shapes and frames, those in groups as well."""
    found = []
    for element in tree:
        name = local(element)
        if name in ("sp", "graphicFrame"):
            found.append(element)
        elif name == "grpSp":
            found += _shapes(element)
        elif name == "AlternateContent" and len(element):
            found += _shapes(element[0])
    return found


def _placeholder(shape: ET.Element) -> str:
    """What the layout calls the shape, empty for a text box."""
    for properties in ("nvSpPr", "nvGraphicFramePr"):
        found = child(shape, properties, "nvPr", "ph")
        if found is not None:
            return attribute(found, "type") or "obj"
    return ""


def _read_body(body: ET.Element, writer: TextWriter, *, is_list: bool) -> None:
    paragraphs = [each for each in body if local(each) == "p" and _text(each).strip()]
    for paragraph in paragraphs:
        properties = child(paragraph, "pPr")
        marks = {local(each) for each in properties} if properties is not None else set()
        bullet = bool(marks & {"buChar", "buAutoNum", "buBlip"}) or (
            is_list and "buNone" not in marks and len(paragraphs) > 1
        )
        (writer.item if bullet else writer.paragraph)(_text(paragraph))


def _read_frame(archive: Archive, slide: str, frame: ET.Element, writer: TextWriter) -> None:
    table = child(frame, "graphic", "graphicData", "tbl")
    if table is not None:
        for row in (each for each in table if local(each) == "tr"):
            writer.row(
                [
                    _cell(cell)
                    for cell in row
                    if local(cell) == "tc"
                    and not {attribute(cell, "hMerge"), attribute(cell, "vMerge")} & {"1", "true"}
                ]
            )
        writer.end_table()
        return
    diagram = child(frame, "graphic", "graphicData", "relIds")
    if diagram is not None:
        member = archive.relations(slide).get(attribute(diagram, "dm") or "", ("", ""))[1]
        if member in archive:
            for point in archive.xml(member).iter():
                if local(point) == "t" and len(point):
                    writer.item(" ".join(_text(each) for each in point if local(each) == "p"))


def _cell(cell: ET.Element) -> str:
    body = child(cell, "txBody")
    return " ".join(_text(each) for each in body if local(each) == "p") if body is not None else ""


def _text(paragraph: ET.Element) -> str:
    parts = []
    for element in paragraph.iter():
        name = local(element)
        if name == "t":
            parts.append(element.text or "")
        elif name == "br":
            parts.append("\n")
    return "".join(parts)
