"""Watched folders: where they are, which documents came by watching them, what the user took out of them.

Paths are text as ``documents.path`` has them. A document lies in a folder if its path begins with it.
"""

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import xxhash

from core.store.database import Database

_BELOW = "substr(documents.path, 1, length(?)) = ?"
_CAME = "SELECT document_id FROM watched_documents"


@dataclass(frozen=True, slots=True)
class FolderRecord:
    """A watched folder as it is stored."""

    path: str
    collection_id: int | None
    seen_as: str
    """Device and inode when it was last there with something in it; empty if it never was."""
    mounts: Mapping[str, str] = field(default_factory=dict)
    """The same of the folders below it that were on another device than their parent, by path."""


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A document below a watched folder, as it is compared with the file on disk."""

    document_id: int
    path: str
    content_hash: str
    """Empty if it could not be read."""
    n_bytes: int
    mtime_ns: int
    came_by_watching: bool


class FolderStore:
    def __init__(self, db: Database) -> None:
        self._db = db

    def list(self) -> tuple[FolderRecord, ...]:
        """Every watched folder, by path."""
        mounts: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for folder, path, seen_as in self._db.rows("SELECT folder, path, seen_as FROM watched_mounts"):
            mounts[folder][path] = seen_as
        rows = self._db.rows("SELECT path, collection_id, seen_as FROM watched_folders ORDER BY path")
        return tuple(
            FolderRecord(path, collection_id, seen_as, mounts[path]) for path, collection_id, seen_as in rows
        )

    def add(self, path: str, collection_id: int | None) -> None:
        """Watch a folder, or have what is found in a watched one go into another collection from now on."""
        with self._db.write():
            self._db.run(
                "INSERT INTO watched_folders (path, collection_id, added_at, after_id, seen_as)"
                " VALUES (?, ?, ?, (SELECT coalesce(max(seq), 0) FROM sqlite_sequence"
                " WHERE name = 'documents'), '')"
                " ON CONFLICT (path) DO UPDATE SET collection_id = excluded.collection_id",
                [path, collection_id, time.time()],
            )

    def remove(self, path: str) -> None:
        """Watch it no longer. Its documents stay; that they came by watching is kept, for the next time."""
        with self._db.write():
            self._db.run("DELETE FROM watched_folders WHERE path = ?", [path])

    def set_seen(self, path: str, seen_as: str, mounts: Mapping[str, str]) -> None:
        """Remember which folder was met, and which ones on other devices below it; all of them, each time."""
        with self._db.write():
            self._db.run("UPDATE watched_folders SET seen_as = ? WHERE path = ?", [seen_as, path])
            self._db.run("DELETE FROM watched_mounts WHERE folder = ?", [path])
            self._db.run_many(
                "INSERT INTO watched_mounts SELECT path, ?, ? FROM watched_folders WHERE path = ?",
                ((mount, which, path) for mount, which in mounts.items()),
            )

    def documents(self, path: str) -> tuple[KnownFile, ...]:
        """Every document below a folder, by path."""
        start = below(path)
        rows = self._db.rows(
            "SELECT id, documents.path, content_hash, n_bytes, mtime_ns,"  # noqa: S608  (our own words)
            f" id IN ({_CAME}) FROM documents WHERE {_BELOW} ORDER BY documents.path",
            [start, start],
        )
        return tuple(
            KnownFile(id_, its_path, content_hash, n_bytes, mtime_ns, bool(came))
            for id_, its_path, content_hash, n_bytes, mtime_ns, came in rows
        )

    def count(self, path: str) -> int:
        """How many documents lie below a folder."""
        start = below(path)
        row = self._db.row(f"SELECT count(*) FROM documents WHERE {_BELOW}", [start, start])  # noqa: S608
        assert row is not None
        return int(row[0])

    def mark_new(self, path: str) -> tuple[int, ...]:
        """Note which documents came by watching a folder, and tell those that were not noted before.

        Those are the ones below it that are newer than the watching: also what was read just before a
        crash, and what the user added there by hand meanwhile, which watching would have found as well.
        """
        start = below(path)
        new = (
            f"SELECT id FROM documents WHERE {_BELOW}"  # noqa: S608
            f" AND id > (SELECT after_id FROM watched_folders WHERE path = ?) AND id NOT IN ({_CAME})"
        )
        with self._db.write():
            found = [row[0] for row in self._db.rows(new, [start, start, path])]
            self._db.run_many("INSERT INTO watched_documents VALUES (?)", ((one,) for one in found))
        return tuple(found)

    def came_by_watching(self, document_ids: Collection[int]) -> frozenset[int]:
        """Those of the documents that came by watching a folder."""
        rows = self._db.rows_in(f"{_CAME} WHERE document_id IN (?*)", list(document_ids))
        return frozenset(row[0] for row in rows)

    def leave_out(self, document_id: int) -> None:
        """Before the user's removal of a document: watching must not bring its file back."""
        row = self._db.row("SELECT path FROM documents WHERE id = ?", [document_id])
        if row is None:
            return
        inside = [one.path for one in self.list() if row[0].startswith(below(one.path))]
        with self._db.write():
            self._db.run_many(
                "INSERT OR IGNORE INTO left_out VALUES (?, ?)", ((one, _hash(row[0])) for one in inside)
            )

    def without_left_out(self, folder: str, paths: Iterable[str]) -> frozenset[str]:
        """Those of ``paths`` that the user did not take out of the library."""
        rows = self._db.rows("SELECT path_hash FROM left_out WHERE folder = ?", [folder])
        hashes = {row[0] for row in rows}
        return frozenset(path for path in paths if not hashes or _hash(path) not in hashes)


def below(folder: str) -> str:
    """What the paths of everything in a folder begin with."""
    return folder.rstrip("/") + "/"


def _hash(path: str) -> str:
    return xxhash.xxh3_128_hexdigest(path.encode())
