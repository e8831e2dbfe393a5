"""E-books: the chapters in the order in which the package file lists them, read as HTML."""

import re
from urllib.parse import unquote

from core.errors import DocumentError
from core.ingest.archive import Archive, attribute, damaged, local, resolved
from core.ingest.extracted import Extracted
from core.ingest.html import read_html

MEDIA_TYPE = "application/epub+zip"
_CONTAINER = "META-INF/container.xml"
_HTML_TYPES = frozenset(("application/xhtml+xml", "text/html", "text/x-oeb1-document"))
_FREE_OF_DRM = "obfuscation"  # fonts are hidden from copying in books that anybody may read
# In two, and without "<" inside a tag: one pattern for both would search to the end for every start.
_TITLE_BEGIN = re.compile(rb"<title\b[^<>]*>", re.IGNORECASE)
_TITLE_END = re.compile(rb"</title\s*>", re.IGNORECASE)
_HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)
_CONTENTS = frozenset(("nav",))


def read_epub(archive: Archive) -> Extracted:
    """Raises DocumentError for a damaged book and for one that its shop has locked."""
    package = next(
        (
            path
            for each in archive.xml(_CONTAINER).iter()
            if local(each) == "rootfile" and (path := attribute(each, "full-path"))
        ),
        "",
    )
    root = archive.xml(package, doctype=True)
    titles = [(each.text or "").strip() for each in root.iter() if local(each) == "title"]
    authors = [(each.text or "").strip() for each in root.iter() if local(each) == "creator"]
    manifest = {
        attribute(each, "id"): each
        for each in root.iter()
        if local(each) == "item" and attribute(each, "media-type") in _HTML_TYPES
    }
    locked = _locked(archive)
    chapters = []
    for each in root.iter():
        item = manifest.pop(attribute(each, "idref"), None) if local(each) == "itemref" else None
        if item is None or (attribute(item, "properties") or "") in _CONTENTS:
            continue
        member = resolved(package, unquote(attribute(item, "href") or ""))
        if member in locked:
            raise DocumentError(
                "This book is locked by the shop that sold it (DRM).",
                hint="Ask the shop for a copy without DRM and add that.",
            )
        if member in archive:
            chapters.append(archive.read(member))
    if not chapters:
        raise damaged()
    known = set(titles)
    texts = [_chapter(data, known) for data in chapters]
    head = [f"# {titles[0]}"] if titles and titles[0] else []
    head += [", ".join(filter(None, authors))]
    return Extracted("\n\n".join(filter(None, head + texts)), MEDIA_TYPE)


def _chapter(data: bytes, known: set[str]) -> str:
    """A chapter's text. The title of its file stands for a heading where it has none; ``known`` are
    titles that were given before: many files call themselves like the book.
    """
    try:
        titled = read_html(data).text
        text = read_html(_without_title(data)).text
    except DocumentError:  # one damaged chapter must not cost the others
        return ""
    title = titled.partition("\n")[0].removeprefix("# ").strip()
    if titled == text or title in known or not text or _HEADING.search(text):
        return text
    known.add(title)
    return titled


def _without_title(data: bytes) -> bytes:
    begin = _TITLE_BEGIN.search(data)
    end = _TITLE_END.search(data, begin.end()) if begin else None
    return data[: begin.start()] + data[end.end() :] if begin and end else data


def _locked(archive: Archive) -> set[str]:
    name = "META-INF/encryption.xml"
    if name not in archive:
        return set()
    found = set()
    for entry in archive.xml(name).iter():
        if local(entry) == "EncryptedData":
            methods = [attribute(each, "Algorithm") or "" for each in entry.iter()]
            if not any(_FREE_OF_DRM in method.lower() or "RC" in method for method in methods):
                found |= {unquote(attribute(each, "URI") or "") for each in entry.iter()} - {""}
    return found
