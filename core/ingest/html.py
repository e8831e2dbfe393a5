"""HTML to text: what a reader sees, with headings, list items and table rows kept apart."""

import re
from typing import Any

from core.errors import DocumentError
from core.ingest import plain
from core.ingest.extracted import Extracted, cleaned

_DROPPED_TAGS = """
    script style noscript template svg math head nav button select option input textarea iframe object video
    audio canvas map dialog ix:header ix:hidden"""
_BLOCK_TAGS = """
    p div section article main header footer aside blockquote figure figcaption table caption thead tbody
    tfoot ul ol dl dt dd address form fieldset details summary hr pre center body html"""
_DROPPED = frozenset(_DROPPED_TAGS.split())
_BLOCKS = frozenset(_BLOCK_TAGS.split())
_PARAGRAPHS = frozenset(("p", "table", "ul", "ol", "dl", "blockquote", "pre", "figure", "section", "article"))
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]+)", re.IGNORECASE)
_TAG = re.compile(rb"<[^<>]{0,2000}>")
_LAYOUT_CELL = 400
"""Characters. Longer cells hold parts of a page, not values."""
_SHORT_MAIN = 500
"""Characters. A main part with less text than that is a frame that scripts would have filled."""
_SPACES = re.compile(r"\s+")
# Breaks that tags ask for: any number of them in a row are one. They are no characters of a page.
_LINE_BREAK, _PARAGRAPH_BREAK = "\x01", "\x02"
_MARKS = re.compile("[\x01\x02]")
_BREAKS = re.compile(r"(?<![^\S\n])[^\S\n]*[\n\x01\x02][\s\x01\x02]*")
_MENU_LINKS = 15
"""A list of at least so many links, with short names and little beside them, is a menu."""


_NESTING = re.compile(
    r"<(/?)(?:div|span|section|article|table|ul|ol|dl|blockquote|font|b|i|u|em|strong|a|big|small)\b",
    re.IGNORECASE,
)
"""Tags that stay open until they are closed."""
_MAX_DEPTH = 10_000
"""The parser's time grows with the square of the depth: 200,000 took 145 s, this many 0.4 s."""


def read_html(data: bytes) -> Extracted:
    """Raises DocumentError for data that is no text, or nested as no page is."""
    from selectolax.lexbor import LexborHTMLParser

    source, note = _decode(data)
    _refuse_depth(source)
    tree = LexborHTMLParser(source)
    main = tree.css_first("main, [role=main]")
    text = _Writer(without_menus=True).text_of(main) if main is not None else ""
    if len(text) < _SHORT_MAIN:
        text = _Writer(without_menus=True).text_of(tree.root)
    if not text:  # a page that is nothing but a list of links
        text = _Writer(without_menus=False).text_of(tree.root)
    title_node = tree.css_first("title")
    title = _SPACES.sub(" ", title_node.text()).strip() if title_node is not None else ""
    if title and not text.removeprefix("# ").startswith(title):
        text = f"# {title}\n\n{text}"
    return Extracted(cleaned(text).strip(), "text/html", note=note)


def _refuse_depth(source: str) -> None:
    depth = 0
    for match in _NESTING.finditer(source):
        depth = max(0, depth - 1) if match[1] else depth + 1
        if depth > _MAX_DEPTH:
            raise DocumentError(
                "This page is nested as deeply as no document is; it was not read.",
                hint="Open it in a browser and save it as text or PDF.",
            )


def _decode(data: bytes) -> tuple[str, str]:
    """A byte order mark wins, then valid UTF-8, then what the page says of itself, then a guess."""
    if data.startswith(plain.BOMS):
        return plain.decode(data)
    plain.refuse_binary(data)
    try:
        return data.decode("utf-8"), ""
    except UnicodeDecodeError:
        pass
    declared = _CHARSET.search(data[:4096])
    if declared:
        try:
            return data.decode(declared.group(1).decode("ascii")), ""
        except (UnicodeDecodeError, LookupError):
            pass  # it says what it is not
    # Tags are ASCII in every encoding in question and would hide what the rest looks like.
    encoding, note = plain.guess_encoding(_TAG.sub(b" ", data))
    return data.decode(encoding, "replace"), note


class _Writer:
    """Walks the tree without recursion, since pages nest deeper than Python's stack."""

    def __init__(self, *, without_menus: bool) -> None:
        self._without_menus = without_menus
        self._buffers: list[list[str]] = [[]]
        """The page's, and one for every open table cell."""
        self._rows: list[list[str]] = []
        """The finished cells of every open table row."""
        self._n_pre = 0

    def text_of(self, root: Any) -> str:
        stack = [(root, False)]
        while stack:
            node, leaving = stack.pop()
            tag = node.tag
            if leaving:
                self._leave(tag)
            elif tag == "-text":
                text = node.text_content or ""
                text = _MARKS.sub("", text)
                self._write(text if self._n_pre else _SPACES.sub(" ", text))
            elif not (_is_dropped(node) or (self._without_menus and tag in ("ul", "ol") and _is_menu(node))):
                self._enter(tag)
                stack.append((node, True))
                stack.extend((child, False) for child in reversed(list(node.iter(include_text=True))))
        return _tidy("".join(self._buffers[0]))

    def _write(self, text: str) -> None:
        self._buffers[-1].append(text)

    def _enter(self, tag: str) -> None:
        if tag in _HEADINGS:
            self._write(_PARAGRAPH_BREAK + _HEADINGS[tag])
        elif tag in _PARAGRAPHS:
            self._write(_PARAGRAPH_BREAK)
            self._n_pre += tag == "pre"
        elif tag == "li":
            self._write(_LINE_BREAK + "- ")
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._buffers.append([])
        elif tag == "br":
            self._write("\n")
        elif tag in _BLOCKS:
            self._write(_LINE_BREAK)

    def _leave(self, tag: str) -> None:
        if tag in _PARAGRAPHS or tag in _HEADINGS:
            self._write(_PARAGRAPH_BREAK)
            self._n_pre -= tag == "pre"
        elif tag in ("td", "th"):
            cell = _tidy("".join(self._buffers.pop()))
            if self._rows:
                self._rows[-1].append(cell)
            else:
                self._write(cell)
        elif tag == "tr":
            self._write(_row([cell for cell in self._rows.pop() if cell]))
        elif tag in _BLOCKS or tag == "li":
            self._write(_LINE_BREAK)


def _row(cells: list[str]) -> str:
    """A row of a table in one line; but a table that lays out a page gives its parts one by one."""
    if len(cells) == 1 or any(len(cell) > _LAYOUT_CELL for cell in cells):
        return _PARAGRAPH_BREAK + _PARAGRAPH_BREAK.join(cells) + _PARAGRAPH_BREAK
    return _LINE_BREAK + " | ".join(_SPACES.sub(" ", cell) for cell in cells) + _LINE_BREAK if cells else ""


def _is_dropped(node: Any) -> bool:
    tag = node.tag
    if tag.startswith("-") or tag == "!doctype" or tag in _DROPPED:
        return tag not in ("-document", "-undef")
    attributes = node.attributes
    if not attributes:
        return False
    style = (attributes.get("style") or "").replace(" ", "").lower()
    return (
        "hidden" in attributes
        or "display:none" in style
        or attributes.get("role") in ("navigation", "search", "menu", "menubar")
    )


def _is_menu(node: Any) -> bool:
    links = node.css("a")
    if len(links) < _MENU_LINKS:
        return False
    in_links = sum(len((link.text() or "").strip()) for link in links)
    return in_links < 25 * len(links) and in_links > 0.85 * len(_SPACES.sub(" ", node.text() or ""))


def _tidy(text: str) -> str:
    """White space and breaks that are left to be seen."""

    def visible(match: re.Match[str]) -> str:
        found = match.group()
        return "\n\n" if _PARAGRAPH_BREAK in found or found.count("\n") > 1 else "\n"

    return _BREAKS.sub(visible, text).strip()
