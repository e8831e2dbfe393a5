"""Opening the database, transactions, and the one place where SQLite's errors become ours.

Every thread that needs the store calls ``open_database`` itself: a connection belongs to one thread.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from core.config import DATABASE_FILE, make_private_dir
from core.errors import BugError, StoreError
from core.store import migrations

BUSY_TIMEOUT_MS = 10_000
_MAX_VARIABLES = 500
"""In one statement; old versions of SQLite allow 999."""
_migrating = threading.Lock()


class Database:
    """A connection for the thread that opened it. ``with`` closes it."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self._connection = connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with self.guard():
            return self._connection.execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: Sequence[object] = ()) -> tuple[Any, ...] | None:
        """The first row of a query, or None."""
        with self.guard():
            found: tuple[Any, ...] | None = self._connection.execute(sql, parameters).fetchone()
            return found

    def rows_in(
        self, sql: str, values: Sequence[object], before: Sequence[object] = ()
    ) -> list[tuple[Any, ...]]:
        """All rows of a query with ``IN (?*)`` for ``values``, however many they are.

        ``before`` are the parameters that stand before it. The query runs once for each batch of values.
        """
        found: list[tuple[Any, ...]] = []
        for first in range(0, len(values), _MAX_VARIABLES):
            batch = values[first : first + _MAX_VARIABLES]
            marks = ", ".join("?" * len(batch))
            found += self.rows(sql.replace("?*", marks), [*before, *batch])
        return found

    def version(self) -> int:
        """Another number whenever another connection has changed the database."""
        row = self.row("PRAGMA data_version")
        return -1 if row is None else int(row[0])

    def run(self, sql: str, parameters: Sequence[object] = ()) -> int:
        """Run one statement; the rowid it inserted, else 0."""
        with self.guard():
            return self._connection.execute(sql, parameters).lastrowid or 0

    def run_many(self, sql: str, parameters: Iterable[Sequence[object]]) -> None:
        """Run one statement for each of many parameters."""
        with self.guard():
            self._connection.executemany(sql, parameters)

    @contextmanager
    def write(self) -> Iterator[None]:
        """A transaction: all of it or nothing. Inside another one it is part of that one."""
        connection = self._connection
        if connection.in_transaction:
            yield
            return
        with self.guard():
            # IMMEDIATE, so that waiting for another writer happens here and not half way through.
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                connection.rollback()  # does nothing where the error ended the transaction itself
                raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """What is read inside is of one moment, whatever other connections write meanwhile."""
        if self._connection.in_transaction:
            yield
            return
        with self.guard():
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._connection.rollback()

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Turn SQLite's errors into StoreError, or BugError where the fault is ours."""
        try:
            yield
        except sqlite3.Error as error:
            raise _ours(error, self.path) from error

    def forget_deleted(self) -> None:
        """Leave nothing of what was deleted in the write-ahead log or in backups.

        In the database file itself SQLite overwrites deleted rows (``secure_delete``). Best effort: a
        reader in another thread can hold the log, which the next call then clears.
        """
        for backup in self.path.parent.glob(self.path.name + ".before-*"):
            backup.unlink(missing_ok=True)
        with self.guard():
            # Waiting long for a reader would stop the caller; its turn comes again.
            self._connection.execute("PRAGMA busy_timeout = 1000")
            try:
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            finally:
                self._connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")


def open_database(data_dir: Path) -> Database:
    """Open the database in ``data_dir``, made or brought up to date first, for the calling thread.

    Raises StoreError where the folder or file cannot be used, or where a newer Slipstream wrote it.
    """
    make_private_dir(data_dir)
    path = data_dir / DATABASE_FILE
    try:
        # Created by us before SQLite does, so that no moment passes in which others may read it.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None)
    except (OSError, sqlite3.Error) as error:
        raise _ours(error, path) from error
    database = Database(connection, path)
    try:
        with database.guard():
            _configure(connection)
            _migrate(connection, path)
    except BaseException:
        connection.close()
        raise
    return database


def _configure(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    _use_wal(connection)
    connection.execute("PRAGMA synchronous = NORMAL")  # a crash of the machine may lose the last moments
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA secure_delete = ON").fetchall()
    connection.execute("PRAGMA temp_store = MEMORY")  # document text must not reach temporary files
    connection.execute("PRAGMA cache_size = -16000")  # KiB


def _use_wal(connection: sqlite3.Connection) -> None:
    """SQLite does not wait here when another connection is just opening or closing the file; we do."""
    give_up_at = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up_at:
                raise
            time.sleep(0.01)
        else:
            return


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Apply what is missing, once, whichever thread or process comes first."""
    known = set(migrations.NAMES)
    with _migrating:
        applied = _applied(connection)
        if applied == known:
            return
        if applied - known:
            raise StoreError(
                "The database was written by a newer version of Slipstream.",
                hint="Update Slipstream, or choose another folder with --data-dir. Nothing was changed.",
                details=f"{path}: {', '.join(sorted(applied - known))}",
            )
        if applied:
            _back_up(connection, path, min(known - applied))
        connection.execute("BEGIN IMMEDIATE")
        try:
            migrations.apply(connection)
            connection.execute("COMMIT")
        except BaseException:
            connection.rollback()
            raise
        if sqlite3.sqlite_version_info >= (3, 42):
            # Removed words leave the index at once. SQLite before 3.42 cannot read such an index; there
            # ``full_text.purge`` does it.
            connection.execute("INSERT INTO blocks_fts (blocks_fts, rank) VALUES ('secure-delete', 1)")


def _applied(connection: sqlite3.Connection) -> set[str]:
    table = connection.execute("SELECT 1 FROM sqlite_master WHERE name = '_sqlite_migrations'").fetchone()
    if table is None:
        return set()
    rows = connection.execute(
        "SELECT name FROM _sqlite_migrations WHERE migration_set = ?", [migrations.SET_NAME]
    )
    return {name for (name,) in rows}


def _back_up(connection: sqlite3.Connection, path: Path, migration: str) -> None:
    """Copy the database beside itself as it was before ``migration``."""
    target = path.with_name(f"{path.name}.before-{migration}")
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600))
    copy = sqlite3.connect(target)
    try:
        connection.backup(copy)
    finally:
        copy.close()


_KNOWN_CAUSES: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_FULL: (
        "The disk is full; the last change was not saved.",
        "Make room on the disk and try again. Everything saved before is intact.",
    ),
    sqlite3.SQLITE_IOERR: (
        "The disk reported an error; the last change was not saved.",
        "Check that the disk is connected and has room, then try again.",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "The database is damaged.",
        "Move it away and add your documents again; the documents themselves are untouched.",
    ),
    sqlite3.SQLITE_NOTADB: (
        "The database file is damaged or is something else.",
        "Move it away and add your documents again; the documents themselves are untouched.",
    ),
    sqlite3.SQLITE_BUSY: (
        "Another program is using the database.",
        "Close other Slipstream windows and try again.",
    ),
    sqlite3.SQLITE_LOCKED: (
        "Another part of the program is using the database.",
        "Try again in a moment.",
    ),
    sqlite3.SQLITE_READONLY: (
        "The database cannot be written.",
        "Give yourself write permission for its folder, or choose another one with --data-dir.",
    ),
    sqlite3.SQLITE_PERM: (
        "The database may not be opened.",
        "Give yourself permission for its folder, or choose another one with --data-dir.",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "The database cannot be opened.",
        "Check its folder's permissions, or choose another one with --data-dir.",
    ),
}


def _ours(error: sqlite3.Error | OSError, path: Path) -> StoreError | BugError:
    if isinstance(error, OSError):
        message, hint = _KNOWN_CAUSES[sqlite3.SQLITE_CANTOPEN]
    else:
        # The low byte is the primary code; the rest says which variety.
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code not in _KNOWN_CAUSES:
            return BugError(
                "A database statement failed; the last change was not saved.", details=repr(error)
            )
        message, hint = _KNOWN_CAUSES[code]
    return StoreError(message, hint=hint, details=f"{path}: {error}")
