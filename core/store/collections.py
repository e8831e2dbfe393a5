"""Collections: named parts of the library, and what their documents allow the cache and the plans to do."""

import time
from collections.abc import Collection, Sequence

from core.errors import KnownError
from core.store.database import Database
from core.types import CachePlace, CollectionInfo, Scope

_INFO = (
    "SELECT id, name, (SELECT count(*) FROM documents WHERE collection_id = collections.id),"
    " apart, on_disk, keep_warm, as_found FROM collections"
)


class CollectionStore:
    def __init__(self, db: Database) -> None:
        self._db = db

    def list(self) -> tuple[CollectionInfo, ...]:
        """Every collection, by name."""
        return tuple(_info(row) for row in self._db.rows(f"{_INFO} ORDER BY name COLLATE NOCASE"))

    def create(self, name: str) -> int:
        """Raises KnownError for a name that is empty or taken."""
        with self._db.write():
            return self._db.run(
                "INSERT INTO collections (name, created_at) VALUES (?, ?)", [self._free(name, 0), time.time()]
            )

    def change(self, info: CollectionInfo) -> None:
        """Store name and switches. Raises KnownError for a name that is empty or taken."""
        with self._db.write():
            self._db.run(
                "UPDATE collections SET name = ?, apart = ?, on_disk = ?, keep_warm = ?, as_found = ?"
                " WHERE id = ?",
                [
                    self._free(info.name, info.id),
                    info.apart,
                    info.on_disk,
                    info.keep_warm,
                    info.as_found,
                    info.id,
                ],
            )

    def delete(self, collection_id: int) -> None:
        """Its documents stay, in no collection."""
        with self._db.write():
            self._db.run("DELETE FROM collections WHERE id = ?", [collection_id])

    def assign(self, document_ids: Collection[int], collection_id: int | None) -> None:
        """Put documents into a collection, out of any other; None: into none.

        Raises KnownError for a collection that is gone.
        """
        with self._db.write():
            if collection_id is not None and self.find(collection_id) is None:
                raise KnownError("This collection was deleted.", hint="Choose another one.")
            self._db.run_many(
                "UPDATE documents SET collection_id = ? WHERE id = ?",
                ((collection_id, document_id) for document_id in document_ids),
            )

    def find(self, collection_id: int) -> CollectionInfo | None:
        row = self._db.row(f"{_INFO} WHERE id = ?", [collection_id])
        return None if row is None else _info(row)

    def holding(self, block_ids: Sequence[str]) -> dict[str, tuple[CollectionInfo, ...]]:
        """Of each block the collections that hold it and allow less than others do."""
        by_id = {info.id: info for info in self.list() if info.apart or not info.on_disk or info.as_found}
        if not by_id:
            return {}
        ids = list(block_ids)
        rows = self._db.rows_in(
            "SELECT DISTINCT blocks.id, documents.collection_id FROM blocks"
            " JOIN places ON places.block = blocks.rowid"
            " JOIN documents ON documents.id = places.document_id"
            " WHERE documents.collection_id IS NOT NULL AND blocks.id IN (?*)",
            ids,
        )
        rows += self._db.rows_in(  # what an older version held can still stand in a conversation
            "SELECT former_blocks.block_id, documents.collection_id FROM former_blocks"
            " JOIN documents ON documents.id = former_blocks.document_id"
            " WHERE documents.collection_id IS NOT NULL AND former_blocks.block_id IN (?*)",
            ids,
        )
        found: dict[str, tuple[CollectionInfo, ...]] = {}
        for block_id, collection_id in rows:
            if collection_id in by_id and by_id[collection_id] not in found.get(block_id, ()):
                found[block_id] = (*found.get(block_id, ()), by_id[collection_id])
        return found

    def asked(self, scope: Scope) -> tuple[CollectionInfo, ...]:
        """The collections that a scope names or whose documents it names."""
        if scope.collection_id is not None:
            info = self.find(scope.collection_id)
            return () if info is None else (info,)
        rows = self._db.rows_in(
            "SELECT DISTINCT collection_id FROM documents WHERE collection_id IS NOT NULL AND id IN (?*)",
            sorted(scope.document_ids),
        )
        ids = {row[0] for row in rows}
        return tuple(info for info in self.list() if info.id in ids) if ids else ()

    def document_ids(self, collection_id: int) -> frozenset[int]:
        rows = self._db.rows("SELECT id FROM documents WHERE collection_id = ?", [collection_id])
        return frozenset(row[0] for row in rows)

    def restrictions(self, document_ids: Collection[int]) -> dict[str, CachePlace]:
        """For every block of these documents, earlier versions included, where the cache may keep it now."""
        ids = list(document_ids)
        rows = self._db.rows_in(
            "SELECT DISTINCT blocks.id FROM places JOIN blocks ON blocks.rowid = places.block"
            " WHERE places.document_id IN (?*)",
            ids,
        )
        rows += self._db.rows_in("SELECT block_id FROM former_blocks WHERE document_id IN (?*)", ids)
        holding = self.holding([row[0] for row in rows])
        return {row[0]: CachePlace().touching(holding.get(row[0], ())) for row in rows}

    def _free(self, name: str, mine: int) -> str:
        name = " ".join(name.split())
        if not name:
            raise KnownError("A collection needs a name.", hint="Type one.")
        taken = self._db.row(
            "SELECT 1 FROM collections WHERE name = ? COLLATE NOCASE AND id <> ?", [name, mine]
        )
        if taken:
            raise KnownError(f"There is a collection named “{name}” already.", hint="Choose another name.")
        return name


def _info(row: Sequence[object]) -> CollectionInfo:
    collection_id, name, n_documents, *switches = row
    assert isinstance(collection_id, int)
    assert isinstance(name, str)
    assert isinstance(n_documents, int)
    return CollectionInfo(collection_id, name, n_documents, *map(bool, switches))
