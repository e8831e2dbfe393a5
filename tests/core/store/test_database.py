import sqlite3
import stat
import threading

import pytest

from core.errors import BugError, StoreError
from core.store import migrations
from core.store.database import open_database


def test_open_makes_a_private_database_in_wal_mode(data_dir, db):
    assert db.row("PRAGMA journal_mode") == ("wal",)
    assert db.row("PRAGMA secure_delete") == (1,)
    assert db.row("PRAGMA foreign_keys") == (1,)
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700
    db.run("INSERT INTO conversations (title, created_at, updated_at) VALUES ('a', 0, 0)")
    for file in data_dir.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_many_threads_can_open_a_new_database_at_once(data_dir):
    failures = []

    def open_it():
        try:
            open_database(data_dir).close()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with open_database(data_dir) as db:
        assert db.row("SELECT count(*) FROM _sqlite_migrations") == (len(migrations.NAMES),)


def test_a_transaction_is_all_or_nothing(db):
    with pytest.raises(ZeroDivisionError), db.write():
        db.run("INSERT INTO conversations (title, created_at, updated_at) VALUES ('a', 0, 0)")
        with db.write():
            db.run("INSERT INTO conversations (title, created_at, updated_at) VALUES ('b', 0, 0)")
        _ = 1 // 0
    assert db.rows("SELECT title FROM conversations") == []


def test_a_newer_database_is_refused_and_left_alone(data_dir, db):
    db.run(
        "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('slipstream', 'm999_later', '')"
    )
    db.close()
    with pytest.raises(StoreError, match="newer version"):
        open_database(data_dir)


def test_a_migration_of_an_old_database_is_preceded_by_a_backup(data_dir, db, monkeypatch):
    db.run("INSERT INTO conversations (title, created_at, updated_at) VALUES ('kept', 0, 0)")
    db.close()

    def m999_breaks(database):
        database.conn.execute("DELETE FROM conversations")
        raise sqlite3.OperationalError("no")

    monkeypatch.setattr(migrations, "_ALL", (*migrations._ALL, m999_breaks))
    monkeypatch.setattr(migrations, "NAMES", (*migrations.NAMES, "m999_breaks"))
    with pytest.raises(BugError):
        open_database(data_dir)
    backup = data_dir / "slipstream.db.before-m999_breaks"
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    for file in (data_dir / "slipstream.db", backup):
        connection = sqlite3.connect(file)
        assert connection.execute("SELECT title FROM conversations").fetchall() == [("kept",)]
        connection.close()
    monkeypatch.undo()
    with open_database(data_dir) as db:
        db.forget_deleted()
    assert not backup.exists()  # a backup must not keep what was deleted since


def test_a_damaged_file_is_named_as_such(data_dir):
    data_dir.mkdir()
    (data_dir / "slipstream.db").write_bytes(b"this is no database at all" * 100)
    with pytest.raises(StoreError, match="damaged"):
        open_database(data_dir)


def test_a_folder_that_cannot_be_used_is_named_as_such(data_dir):
    (data_dir / "slipstream.db").mkdir(parents=True)
    with pytest.raises(StoreError, match="cannot be opened"):
        open_database(data_dir)


def test_a_full_disk_loses_only_the_last_change(db):
    db.run("INSERT INTO conversations (title, created_at, updated_at) VALUES ('kept', 0, 0)")
    (pages,) = db.row("PRAGMA page_count")
    db.run(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="disk is full"), db.write():
        db.run(
            "INSERT INTO conversations (title, created_at, updated_at) VALUES (?, 0, 0)", ["x" * 1_000_000]
        )
    assert db.rows("SELECT title FROM conversations") == [("kept",)]


def test_a_locked_database_is_named_as_such(data_dir, db):
    other = sqlite3.connect(data_dir / "slipstream.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    db.run("PRAGMA busy_timeout = 1")
    with pytest.raises(StoreError, match="Another program"), db.write():
        pass
    other.close()


def test_a_wrong_statement_is_our_bug(db):
    with pytest.raises(BugError):
        db.rows("SELECT nothing FROM nowhere")
