"""Documents, their blocks and places. A block is stored once, however many documents hold it."""

# ruff: noqa: S608
# Statements are put together from our own column names; values are always parameters.

import time
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from core.store import full_text, redaction
from core.store.database import Database
from core.store.scopes import documents_in
from core.types import Block, DocumentInfo, DocumentStatus, Passage, Place, Scope

_MOST = 2**63 - 1
_LOOKED_AT = 64
"""Blocks after which a library is mostly known to be too long to be read whole."""
_INFO = "id, path, title, status, note, n_bytes, n_blocks, n_pages, added_at, collection_id, keep_warm"


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document as the reader compares it with the file on disk."""

    info: DocumentInfo
    content_hash: str
    """xxh3_128 of the file's bytes, hexadecimal; empty if it could not be read."""
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class NewBlock:
    """A piece of a document's text to be saved."""

    block: Block
    start: int
    end: int
    """Character offsets of ``block.text`` in the document's text."""
    n_tokens_est: int


@dataclass(frozen=True, slots=True)
class NewDocument:
    """A file that was read, or could not be read (``status`` and ``note`` say so)."""

    path: str
    title: str
    content_hash: str = ""
    media_type: str = ""
    n_bytes: int = 0
    mtime_ns: int = 0
    status: DocumentStatus = DocumentStatus.READY
    note: str = ""
    text: str = field(default="", repr=False)
    """Its whole text: what stands between the blocks is kept for the reading pane."""
    blocks: tuple[NewBlock, ...] = ()
    page_starts: tuple[int, ...] = ()
    """Where each page begins in ``text``, ascending; empty where the format has no pages."""


class DocumentStore:
    def __init__(self, db: Database) -> None:
        self._db = db

    def list_documents(self) -> tuple[DocumentInfo, ...]:
        """Every document, by path."""
        return tuple(_info(row) for row in self._db.rows(f"SELECT {_INFO} FROM documents ORDER BY path"))

    def find_by_path(self, path: str) -> DocumentRecord | None:
        return self._find("path = ?", path)

    def find_by_id(self, document_id: int) -> DocumentRecord | None:
        return self._find("id = ?", document_id)

    def find_by_hash(self, content_hash: str) -> DocumentRecord | None:
        """A document with these bytes that was read successfully, the oldest first."""
        return self._find("status IN ('ready', 'ready with a note') AND content_hash = ?", content_hash)

    def save(self, document: NewDocument) -> DocumentInfo:
        """Store a document in one transaction, in place of an older version of the same path.

        The older version keeps its id. Its blocks go if no other document holds them.
        """
        db = self._db
        with db.write():
            document_id, old_blocks = self._put_row(document)
            rowids = self._put_blocks(document.blocks)
            starts = document.page_starts
            places = []
            end = 0
            for ordinal, new in enumerate(document.blocks):
                page = bisect_right(starts, new.start) or None
                gap = document.text[end : new.start]
                places.append((document_id, ordinal, rowids[new.block.id], new.start, new.end, page, gap))
                end = new.end
            db.run_many("INSERT INTO places VALUES (?, ?, ?, ?, ?, ?, ?)", places)
            db.run_many(
                "INSERT INTO pages VALUES (?, ?, ?)",
                ((document_id, page, start) for page, start in enumerate(starts, start=1)),
            )
            self._drop_former(document_id, old_blocks)
            row = db.row(f"SELECT {_INFO} FROM documents WHERE id = ?", [document_id])
        assert row is not None
        return _info(row)

    def relocate(self, document_id: int, path: str, title: str, mtime_ns: int) -> DocumentInfo:
        """The same bytes are now at ``path`` (it may be the same path): the blocks stay as they are."""
        db = self._db
        with db.write():
            self._drop_path(path, document_id)
            db.run(
                "UPDATE documents SET path = ?, title = ?, mtime_ns = ? WHERE id = ?",
                [path, title, storable_time(mtime_ns), document_id],
            )
            row = db.row(f"SELECT {_INFO} FROM documents WHERE id = ?", [document_id])
        assert row is not None
        return _info(row)

    def copy(self, document_id: int, path: str, title: str, mtime_ns: int) -> DocumentInfo:
        """The same bytes are at ``path`` as well: another document with the same blocks.

        One that stood at ``path`` keeps its id, its collection and whether it is kept warm.
        """
        db = self._db
        same = "content_hash, media_type, n_bytes, status, note, n_blocks, n_pages"
        with db.write():
            old = db.row("SELECT id FROM documents WHERE path = ?", [path])
            old_blocks: list[int] = []
            if old is None:
                copied = db.run(
                    f"INSERT INTO documents (path, title, mtime_ns, added_at, {same})"
                    f" SELECT ?, ?, ?, ?, {same} FROM documents WHERE id = ?",
                    [path, title, storable_time(mtime_ns), time.time(), document_id],
                )
            else:
                copied = int(old[0])
                old_blocks = self._clear(copied)
                db.run(
                    f"UPDATE documents SET (title, mtime_ns, added_at, edited_at, {same}) ="
                    f" (SELECT ?, ?, ?, ?, {same} FROM documents WHERE id = ?) WHERE id = ?",
                    [title, storable_time(mtime_ns), time.time(), time.time(), document_id, copied],
                )
            db.run(
                'INSERT INTO places SELECT ?, ordinal, block, start, "end", page, gap FROM places'
                " WHERE document_id = ?",
                [copied, document_id],
            )
            db.run(
                "INSERT INTO pages SELECT ?, page, start FROM pages WHERE document_id = ?",
                [copied, document_id],
            )
            self._drop_former(copied, old_blocks)
            row = db.row(f"SELECT {_INFO} FROM documents WHERE id = ?", [copied])
        assert row is not None
        return _info(row)

    def remove(self, document_id: int) -> frozenset[str]:
        """Remove a document everywhere, earlier versions included: blocks, index, token caches, quotes.

        Returns the ids of the blocks that no document holds any more; other caches must forget them.
        """
        return self.remove_all([document_id])

    def remove_all(self, document_ids: Sequence[int]) -> frozenset[str]:
        """The same for several in one go: making deletions real costs as much for one as for many."""
        db = self._db
        with db.write():
            blocks = db.rows_in(
                "SELECT DISTINCT block FROM places WHERE document_id IN (?*)", list(document_ids)
            )
            former = db.rows_in(
                "SELECT block_id FROM former_blocks WHERE document_id IN (?*)", list(document_ids)
            )
            db.run_many("DELETE FROM documents WHERE id = ?", ((one,) for one in document_ids))
            gone = [
                *self._drop_orphans(list(dict.fromkeys(row[0] for row in blocks))),
                *self.missing_blocks([row[0] for row in former]),
            ]
            redaction.forget_blocks(db, gone)
            full_text.purge(db)
        db.forget_deleted()
        return frozenset(gone)

    def places_of(self, block_ids: Sequence[str], scope: Scope) -> dict[str, tuple[Place, ...]]:
        """The places of each block within ``scope``, by document and ordinal. Blocks without one are
        left out.
        """
        found: dict[str, list[Place]] = {}
        for block_id, *place in self._places("blocks.id", block_ids, scope):
            found.setdefault(block_id, []).append(Place(*place))
        return {block_id: tuple(places) for block_id, places in found.items()}

    def passages_of(self, block_ids: Sequence[str], scope: Scope) -> dict[str, Passage]:
        """The same blocks with their texts; the passages have no quote and no score."""
        found: dict[Block, list[Place]] = {}
        for block_id, text, *place in self._places("blocks.id, blocks.text", block_ids, scope):
            found.setdefault(Block(block_id, text), []).append(Place(*place))
        return {block.id: Passage(block, tuple(places), 0.0, "", 0) for block, places in found.items()}

    def _places(self, columns: str, block_ids: Sequence[str], scope: Scope) -> list[tuple[Any, ...]]:
        """Those columns, and those of ``Place``, of every place of these blocks within ``scope``."""
        inside, parameters = documents_in(scope)
        return self._db.rows_in(
            f"SELECT {columns}, documents.id, documents.title, documents.path, places.ordinal,"
            ' places.start, places."end", places.page FROM blocks'
            " JOIN places ON places.block = blocks.rowid"
            " JOIN documents ON documents.id = places.document_id"
            f" WHERE {f'documents.id {inside} AND' if inside else ''} blocks.id IN (?*)"
            " ORDER BY documents.id, places.ordinal",
            list(dict.fromkeys(block_ids)),
            parameters,
        )

    def missing_blocks(self, block_ids: Collection[str]) -> set[str]:
        """Those of ``block_ids`` that stand in no document."""
        rows = self._db.rows_in("SELECT id FROM blocks WHERE id IN (?*)", list(block_ids))
        return set(block_ids) - {row[0] for row in rows}

    def was_edited(self, block_id: str) -> bool:
        """Whether this block stands only in documents that took the place of an older version."""
        row = self._db.row(
            "SELECT count(*), count(documents.edited_at) FROM blocks"
            " JOIN places ON places.block = blocks.rowid"
            " JOIN documents ON documents.id = places.document_id WHERE blocks.id = ?",
            [block_id],
        )
        return row is not None and row[0] > 0 and row[0] == row[1]

    def blocks(self, rowids: Sequence[int]) -> dict[int, tuple[str, str, int]]:
        """Id, text and estimated tokens of blocks, by rowid; those that are gone are left out."""
        sql = "SELECT rowid, id, text, n_tokens_est FROM blocks WHERE rowid IN (?*)"
        rows = self._db.rows_in(sql, rowids)
        return {rowid: (id_, text, n_tokens) for rowid, id_, text, n_tokens in rows}

    def texts(self, block_ids: Sequence[str]) -> dict[str, str]:
        """Text of blocks by id; those that are gone are left out."""
        return dict(self._db.rows_in("SELECT id, text FROM blocks WHERE id IN (?*)", block_ids))

    def rowids_in(self, scope: Scope) -> list[int]:
        """Rowids of the blocks of the documents in ``scope``."""
        inside, parameters = documents_in(scope)
        where = f"WHERE document_id {inside}" if inside else ""
        return [row[0] for row in self._db.rows(f"SELECT DISTINCT block FROM places {where}", parameters)]

    def openings(self, scope: Scope, limit: int) -> list[tuple[str, str, int]]:
        """Id, text and estimated tokens of the first block of each document in ``scope``, the latest first.

        Empty if there are more than ``limit`` documents: their beginnings would say nothing about them all.
        """
        inside, parameters = documents_in(scope)
        rows = self._db.rows(
            "SELECT blocks.id, blocks.text, blocks.n_tokens_est FROM places"
            " JOIN blocks ON blocks.rowid = places.block"
            f" WHERE places.ordinal = 0 {f'AND places.document_id {inside}' if inside else ''}"
            " ORDER BY places.document_id DESC LIMIT ?",
            [*parameters, limit + 1],
        )
        return list(dict.fromkeys((id_, text, n) for id_, text, n in rows)) if len(rows) <= limit else []

    def whole(self, scope: Scope, max_tokens_est: int) -> tuple[Passage, ...] | None:
        """Every block of the documents in ``scope``, in the one order in which they are read whole: by
        document and place, a block that comes again left out. None if they have more tokens (estimated).

        The passages have no quote and no score.
        """
        inside, parameters = documents_in(scope)
        n_blocks = self._db.row(
            f"SELECT coalesce(sum(n_blocks), 0) FROM documents {f'WHERE id {inside}' if inside else ''}",
            parameters,
        )
        if n_blocks is None or n_blocks[0] > max_tokens_est:
            return None  # a block has at least one token: no need to look at a large library's blocks
        where = f"WHERE places.document_id {inside}" if inside else ""
        of_places = f"FROM places JOIN blocks ON blocks.rowid = places.block {where}"
        first = self._db.rows(
            f"SELECT blocks.rowid, blocks.n_tokens_est {of_places} LIMIT ?", [*parameters, _LOOKED_AT]
        )
        if sum(dict(first).values()) > max_tokens_est:
            return None  # the usual case is known at a glance
        total = self._db.row(
            "SELECT coalesce(sum(n), 0) FROM"
            f" (SELECT max(blocks.n_tokens_est) AS n {of_places} GROUP BY blocks.rowid)",
            parameters,
        )
        if total is None or total[0] > max_tokens_est:
            return None
        rows = self._db.rows(
            f"SELECT blocks.id {of_places} ORDER BY places.document_id, places.ordinal", parameters
        )
        ids = list(dict.fromkeys(row[0] for row in rows))
        found = self.passages_of(ids, scope)
        return tuple(found[id_] for id_ in ids)

    def near(self, block_ids: Collection[str], scope: Scope, most: int) -> list[Block]:
        """Up to ``most`` other blocks of the documents in ``scope`` that hold these, the nearest first."""
        inside, parameters = documents_in(scope)
        held = self._db.rows_in(
            "SELECT DISTINCT places.document_id, places.ordinal FROM places"
            " JOIN blocks ON blocks.rowid = places.block"
            f" WHERE {f'places.document_id {inside} AND' if inside else ''} blocks.id IN (?*)",
            list(block_ids),
            parameters,
        )
        found: dict[str, tuple[int, int, int]] = {}
        for document_id, ordinal in held:
            around = self._db.rows(
                "SELECT blocks.id, places.ordinal FROM places JOIN blocks ON blocks.rowid = places.block"
                " WHERE places.document_id = ? AND places.ordinal BETWEEN ? AND ?",
                [document_id, ordinal - most, ordinal + most],
            )
            for id_, other in around:
                place = (abs(other - ordinal), document_id, other)
                found[id_] = min(found.get(id_, place), place)
        nearest = sorted(found.keys() - set(block_ids), key=found.__getitem__)[:most]
        texts = self.texts(nearest)
        return [Block(id_, texts[id_]) for id_ in nearest]

    def keep_warm(self, document_id: int, *, wanted: bool) -> None:
        """Note whether the user wants a document read whole and kept."""
        with self._db.write():
            self._db.run("UPDATE documents SET keep_warm = ? WHERE id = ?", [wanted, document_id])

    def is_kept_warm(self, scope: Scope) -> bool:
        """Whether the user wants all documents in ``scope`` kept warm; never for everything."""
        inside, parameters = documents_in(scope)
        if not inside:
            return False
        row = self._db.row(
            "SELECT count(*), coalesce(sum(documents.keep_warm OR coalesce(collections.keep_warm, 0)), 0)"
            " FROM documents LEFT JOIN collections ON collections.id = documents.collection_id"
            f" WHERE documents.id {inside}",
            parameters,
        )
        return row is not None and row[0] > 0 and row[0] == row[1]

    def kept_warm(self) -> tuple[int, ...]:
        """Documents that the user wants kept warm, also by their collection; the latest first."""
        rows = self._db.rows(
            "SELECT documents.id FROM documents LEFT JOIN collections"
            " ON collections.id = documents.collection_id"
            " WHERE (documents.keep_warm OR coalesce(collections.keep_warm, 0)) AND n_blocks > 0"
            " ORDER BY documents.added_at DESC, documents.id DESC"
        )
        return tuple(row[0] for row in rows)

    def _find(self, condition: str, value: object) -> DocumentRecord | None:
        row = self._db.row(
            f"SELECT content_hash, mtime_ns, {_INFO} FROM documents WHERE {condition} ORDER BY id LIMIT 1",
            [value],
        )
        return None if row is None else DocumentRecord(_info(row[2:]), row[0], row[1])

    def _put_row(self, document: NewDocument) -> tuple[int, list[int]]:
        """Insert or replace the documents row; its id and the rowids of the blocks it held before."""
        db = self._db
        columns: dict[str, object] = {
            "path": document.path,
            "content_hash": document.content_hash,
            "title": document.title,
            "media_type": document.media_type,
            "n_bytes": document.n_bytes,
            "mtime_ns": storable_time(document.mtime_ns),
            "status": document.status.value,
            "note": document.note,
            "n_blocks": len(document.blocks),
            "n_pages": len(document.page_starts),
            "added_at": time.time(),
        }
        names = ", ".join(columns)
        marks = ", ".join("?" * len(columns))
        old = db.row("SELECT id, content_hash FROM documents WHERE path = ?", [document.path])
        if old is None:
            new_id = db.run(f"INSERT INTO documents ({names}) VALUES ({marks})", [*columns.values()])
            return new_id, []
        document_id = int(old[0])
        if old[1] and old[1] != document.content_hash:
            columns["edited_at"] = time.time()
            names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        blocks = self._clear(document_id)
        db.run(
            f"UPDATE documents SET ({names}) = ({marks}) WHERE id = ?",
            [*columns.values(), document_id],
        )
        return document_id, blocks

    def _put_blocks(self, blocks: Sequence[NewBlock]) -> dict[str, int]:
        """Store and index the blocks that are not there yet; the rowid of every one by block id."""
        db = self._db
        wanted = {new.block.id: new for new in blocks}
        rowids: dict[str, int] = dict(
            db.rows_in("SELECT id, rowid FROM blocks WHERE id IN (?*)", list(wanted))
        )
        fresh = [new for block_id, new in wanted.items() if block_id not in rowids]
        if fresh:
            last = db.row("SELECT coalesce(max(rowid), 0) FROM blocks")
            assert last is not None
            numbered = list(enumerate(fresh, start=int(last[0]) + 1))
            db.run_many(
                "INSERT INTO blocks (rowid, id, text, n_tokens_est) VALUES (?, ?, ?, ?)",
                ((rowid, new.block.id, new.block.text, new.n_tokens_est) for rowid, new in numbered),
            )
            full_text.insert(db, ((rowid, new.block.text) for rowid, new in numbered))
            rowids.update((new.block.id, rowid) for rowid, new in numbered)
        return rowids

    def _blocks_of(self, document_id: int) -> list[int]:
        rows = self._db.rows("SELECT DISTINCT block FROM places WHERE document_id = ?", [document_id])
        return [rowid for (rowid,) in rows]

    def _clear(self, document_id: int) -> list[int]:
        """Take all places and pages from a document; the rowids of the blocks it held."""
        blocks = self._blocks_of(document_id)
        self._db.run("DELETE FROM places WHERE document_id = ?", [document_id])
        self._db.run("DELETE FROM pages WHERE document_id = ?", [document_id])
        return blocks

    def _drop_former(self, document_id: int, blocks: Sequence[int]) -> None:
        """Delete what nobody holds any more of a document's earlier version, and remember that it was its."""
        gone = self._drop_orphans(blocks)
        if gone:
            full_text.purge(self._db)
        self._db.run_many(
            "INSERT OR IGNORE INTO former_blocks VALUES (?, ?)", ((document_id, id_) for id_ in gone)
        )

    def _drop_path(self, path: str, kept: int) -> None:
        """Delete whatever stands at ``path``, unless that is the document ``kept``."""
        old = self._db.row("SELECT id FROM documents WHERE path = ? AND id <> ?", [path, kept])
        if old is not None:
            blocks = self._blocks_of(int(old[0]))
            self._db.run("DELETE FROM documents WHERE id = ?", [old[0]])
            if self._drop_orphans(blocks):
                full_text.purge(self._db)

    def _drop_orphans(self, rowids: Sequence[int]) -> list[str]:
        """Delete those of the blocks that have no place any more; their ids."""
        gone = self._db.rows_in(
            "SELECT rowid, id FROM blocks WHERE rowid IN (?*)"
            " AND NOT EXISTS (SELECT 1 FROM places WHERE places.block = blocks.rowid)",
            rowids,
        )
        full_text.delete(self._db, (rowid for rowid, _id in gone))
        self._db.run_many("DELETE FROM blocks WHERE rowid = ?", ((rowid,) for rowid, _id in gone))
        return [block_id for _rowid, block_id in gone]


def storable_time(mtime_ns: int) -> int:
    """A file's time as it can be stored: file systems know years after 2262, SQLite's integers do not."""
    return max(-_MOST, min(mtime_ns, _MOST))


def _info(row: Sequence[Any]) -> DocumentInfo:
    document_id, path, title, status, *rest = row
    info = DocumentInfo(document_id, path, title, DocumentStatus(status), *rest)
    return replace(info, keep_warm=bool(info.keep_warm))  # SQLite has no truth values
