"""What the reading pane asks of a document: stretches of its text, and what a citation means on a page."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from core.store.database import Database
from core.types import PassageText, TextLoaded

_WITHOUT_HEADINGS = frozenset(
    (
        "",
        "text/plain",
        "text/csv",
        "text/tab-separated-values",
        "application/json",
        "application/pdf",
        "message/rfc822",
    )
)
"""In the text of these a line that starts with ``#`` is no heading."""
_HEADING = re.compile(r"^#{1,6} +(\S.*)$", re.MULTILINE)
_MAX_HEADINGS_TRIED = 50


@dataclass(frozen=True, slots=True)
class PagePart:
    """What is to be marked on one page of a file, and how to tell that it is still the same file."""

    path: str
    n_bytes: int
    mtime_ns: int
    content_hash: str
    wanted: str
    """The quote's part on this page, or the block's if the quote is not in it; empty if there is none."""
    around: str
    """The block's part on this page."""


@dataclass(frozen=True, slots=True)
class _Standing:
    """Where a block stands first in a document."""

    rowid: int
    ordinal: int
    start: int
    text: str

    def span(self, quote: str) -> tuple[int, int]:
        """Character offsets of ``quote`` in the block; the whole block if it is not in it."""
        at = self.text.find(quote) if quote else -1
        return (at, at + len(quote)) if at >= 0 else (0, len(self.text))


class PassageStore:
    def __init__(self, db: Database) -> None:
        self._db = db

    def passage(self, document_id: int, block_id: str, quote: str, around: int = 1) -> PassageText | None:
        """The block with ``around`` neighbours on each side, as they stand in the document, and where
        ``quote`` is in it (the whole block if it is not in it). None if the document or block is gone.
        """
        with self._db.reading():
            return self._passage(document_id, block_id, quote, around)

    def _passage(self, document_id: int, block_id: str, quote: str, around: int) -> PassageText | None:
        block = self._standing(document_id, block_id)
        document = self._db.row(
            "SELECT title, path, media_type, n_pages, n_blocks FROM documents WHERE id = ?", [document_id]
        )
        if block is None or document is None:
            return None
        title, path, media_type, n_pages, n_blocks = document
        first = max(0, block.ordinal - around)
        part = self.part(document_id, first, block.ordinal + around + 1 - first)
        index = block.ordinal - part.first
        # The white space before a block belongs to its part: the block itself ends where its part does.
        ends = [*part.cuts[1:], len(part.text)]
        at = ends[index] - len(block.text)
        start, end = block.span(quote)
        page = self._page_at(document_id, block.start + start)
        heading = ""
        if media_type not in _WITHOUT_HEADINGS:
            heading = self._heading_before(document_id, block, start)
        return PassageText(
            document_id,
            title,
            path,
            page,
            part.text,
            (at + start, at + end),
            block_id,
            quote,
            part.first,
            part.cuts,
            n_blocks,
            media_type,
            n_pages,
            heading,
        )

    def part(self, document_id: int, first: int, n_blocks: int) -> TextLoaded:
        """The text of up to ``n_blocks`` blocks from the ordinal ``first`` on, as it stands there."""
        first = max(0, first)
        rows = self._db.rows(
            "SELECT places.gap, blocks.text FROM places JOIN blocks ON blocks.rowid = places.block"
            " WHERE places.document_id = ? AND places.ordinal BETWEEN ? AND ? ORDER BY places.ordinal",
            [document_id, first, first + n_blocks - 1],
        )
        cuts, texts, at = [], [], 0
        for gap, text in rows:
            cuts.append(at)
            texts += [gap, text]
            at += len(gap) + len(text)
        return TextLoaded(document_id, first, "".join(texts), tuple(cuts))

    def page_part(self, document_id: int, page: int, block_id: str, quote: str) -> PagePart | None:
        """What of a block and a quote stands on a page. None if the document is gone."""
        with self._db.reading():
            return self._page_part(document_id, page, block_id, quote)

    def _page_part(self, document_id: int, page: int, block_id: str, quote: str) -> PagePart | None:
        document = self._db.row(
            "SELECT path, n_bytes, mtime_ns, content_hash FROM documents WHERE id = ?", [document_id]
        )
        if document is None:
            return None
        path, n_bytes, mtime_ns, content_hash = document
        block = self._standing(document_id, block_id)
        if block is None:
            return PagePart(path, n_bytes, mtime_ns, content_hash, "", "")
        starts = self._page_starts(document_id)
        begin = starts[page - 1] if 1 <= page <= len(starts) else 0
        end = starts[page] if 1 <= page < len(starts) else block.start + len(block.text)
        low, high = begin - block.start, end - block.start
        start, stop = block.span(quote)
        return PagePart(
            path,
            n_bytes,
            mtime_ns,
            content_hash,
            block.text[max(start, low) : max(0, min(stop, high))],
            block.text[max(0, low) : max(0, high)],
        )

    def _standing(self, document_id: int, block_id: str) -> _Standing | None:
        row = self._db.row(
            "SELECT blocks.rowid, places.ordinal, places.start, blocks.text FROM places"
            " JOIN blocks ON blocks.rowid = places.block"
            " WHERE places.document_id = ? AND blocks.id = ? ORDER BY places.ordinal LIMIT 1",
            [document_id, block_id],
        )
        return None if row is None else _Standing(*row)

    def _page_starts(self, document_id: int) -> Sequence[int]:
        rows = self._db.rows("SELECT start FROM pages WHERE document_id = ? ORDER BY page", [document_id])
        return [start for (start,) in rows]

    def _page_at(self, document_id: int, offset: int) -> int | None:
        return bisect_right(self._page_starts(document_id), offset) or None

    def _heading_before(self, document_id: int, block: _Standing, offset: int) -> str:
        """The nearest heading at or before a character of a block, without its signs."""
        line_end = block.text.find("\n", offset)
        here = _HEADING.findall(block.text[: line_end if line_end >= 0 else None])
        if here:
            return str(here[-1])
        rows = self._db.rows(
            "SELECT blocks.text FROM places JOIN blocks ON blocks.rowid = places.block"
            " WHERE places.document_id = ? AND places.ordinal < ? AND instr(blocks.text, '# ')"
            " ORDER BY places.ordinal DESC LIMIT ?",
            [document_id, block.ordinal, _MAX_HEADINGS_TRIED],
        )
        for (text,) in rows:
            if found := _HEADING.findall(text):
                return str(found[-1])
        return ""
