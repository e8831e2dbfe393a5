"""The schema, as append-only migrations. A migration that was released is never changed.

Ids of documents, conversations and turns are never used again (AUTOINCREMENT): stored answers name
documents by id, and a removed document's id must not come to mean another one.
"""

import sqlite3
from collections.abc import Callable
from typing import Any

from core.text import stem, terms

SET_NAME = "slipstream"

_M001 = (
    """
    CREATE TABLE documents (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        path TEXT NOT NULL UNIQUE,
        content_hash TEXT NOT NULL,         -- xxh3_128 of the file's bytes; '' if it could not be read
        title TEXT NOT NULL,
        media_type TEXT NOT NULL,
        n_bytes INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL,
        status TEXT NOT NULL,
        note TEXT NOT NULL,
        n_blocks INTEGER NOT NULL,
        n_pages INTEGER NOT NULL,
        added_at REAL NOT NULL              -- Unix time in seconds
    )""",
    "CREATE INDEX documents_content_hash ON documents (content_hash)",
    """
    CREATE TABLE blocks (
        rowid INTEGER PRIMARY KEY,          -- explicit, so that VACUUM does not renumber it
        id TEXT NOT NULL UNIQUE,            -- xxh3_64 of the rendered bytes
        text TEXT NOT NULL,
        n_tokens_est INTEGER NOT NULL
    )""",
    """
    CREATE TABLE places (
        document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        ordinal INTEGER NOT NULL,
        block INTEGER NOT NULL REFERENCES blocks (rowid),
        start INTEGER NOT NULL,             -- character offsets in the document's text
        "end" INTEGER NOT NULL,
        page INTEGER,                       -- 1-based
        gap TEXT NOT NULL,                  -- white space between the block before and this one
        PRIMARY KEY (document_id, ordinal)
    ) WITHOUT ROWID""",
    "CREATE INDEX places_block ON places (block)",
    """
    CREATE TABLE pages (
        document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        page INTEGER NOT NULL,              -- 1-based
        start INTEGER NOT NULL,             -- where it begins in the document's text
        PRIMARY KEY (document_id, page)
    ) WITHOUT ROWID""",
    # The text column holds terms (core.text.terms), not the block's text; rowid = blocks.rowid.
    """
    CREATE VIRTUAL TABLE blocks_fts USING fts5 (
        text, tokenize = "unicode61 remove_diacritics 2 tokenchars '_'"
    )""",
    """
    CREATE TABLE block_tokens (
        block_id TEXT NOT NULL REFERENCES blocks (id) ON DELETE CASCADE,
        tokenizer_id TEXT NOT NULL,
        tokens BLOB NOT NULL,               -- int32, little endian
        UNIQUE (block_id, tokenizer_id)
    )""",
    """
    CREATE TABLE conversations (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        title TEXT NOT NULL,
        created_at REAL NOT NULL,
        updated_at REAL NOT NULL
    )""",
    "CREATE INDEX conversations_updated_at ON conversations (updated_at)",
    """
    CREATE TABLE turns (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation_id INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        ordinal INTEGER NOT NULL,
        question TEXT NOT NULL,
        answer TEXT NOT NULL,               -- JSON, core/store/answers.py
        tokenizer_id TEXT NOT NULL,
        ledger_segments TEXT NOT NULL,      -- JSON: [[kind, block id, number of tokens], ...]
        ledger_tokens BLOB NOT NULL,        -- int32, little endian, all segments in order
        created_at REAL NOT NULL,
        UNIQUE (conversation_id, ordinal)
    )""",
    # Which blocks a turn quotes or holds in its ledger: what must go when a document is removed.
    """
    CREATE TABLE turn_blocks (
        turn_id INTEGER NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
        block_id TEXT NOT NULL,
        PRIMARY KEY (turn_id, block_id)
    ) WITHOUT ROWID""",
    "CREATE INDEX turn_blocks_block_id ON turn_blocks (block_id)",
    """
    CREATE TABLE requests (
        id INTEGER PRIMARY KEY,
        ts REAL NOT NULL,                   -- Unix time in seconds
        turn_id INTEGER REFERENCES turns (id) ON DELETE SET NULL,
        n_prompt_tokens INTEGER NOT NULL,
        n_live_tokens INTEGER NOT NULL,
        n_ram_tokens INTEGER NOT NULL,
        n_ssd_tokens INTEGER NOT NULL,
        n_prefilled_tokens INTEGER NOT NULL,
        n_deduplicated_tokens INTEGER NOT NULL,
        n_answer_tokens INTEGER NOT NULL,
        hit_ratio REAL NOT NULL,
        retrieve_ms REAL NOT NULL,
        plan_ms REAL NOT NULL,
        restore_ms REAL NOT NULL,
        prefill_ms REAL NOT NULL,
        ttft_ms REAL NOT NULL,
        decode_tokens_per_s REAL NOT NULL,
        prefill_tokens_per_s REAL NOT NULL,
        saved_ms REAL NOT NULL,
        miss_reason TEXT NOT NULL,
        miss_detail TEXT NOT NULL
    )""",
    "CREATE INDEX requests_turn_id ON requests (turn_id)",
)


def m001_first_schema(db: Any) -> None:
    for statement in _M001:
        db.conn.execute(statement)


_M002 = (
    """
    CREATE TABLE collections (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        apart INTEGER NOT NULL DEFAULT 0,   -- a cache namespace of its own
        on_disk INTEGER NOT NULL DEFAULT 1, -- snapshots may be written to SSD
        keep_warm INTEGER NOT NULL DEFAULT 0,
        created_at REAL NOT NULL
    )""",
    "ALTER TABLE documents ADD COLUMN collection_id INTEGER REFERENCES collections (id) ON DELETE SET NULL",
    "ALTER TABLE documents ADD COLUMN keep_warm INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX documents_collection_id ON documents (collection_id)",
    "ALTER TABLE documents ADD COLUMN edited_at REAL",  # when it last took the place of an older version
    # Which collections kept apart a conversation ever touched, and whether it may be written to SSD.
    "ALTER TABLE conversations ADD COLUMN namespace TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE conversations ADD COLUMN on_disk INTEGER NOT NULL DEFAULT 1",
    # Blocks that an earlier version of a document held: what conversations quote of it goes with it, too.
    """
    CREATE TABLE former_blocks (
        document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        block_id TEXT NOT NULL,
        PRIMARY KEY (document_id, block_id)
    ) WITHOUT ROWID""",
    # What was learned in use and would take long to learn again; one row a subject, replaced as a whole.
    "CREATE TABLE learned (name TEXT PRIMARY KEY, state BLOB NOT NULL, updated_at REAL NOT NULL)",
)


def m002_collections(db: Any) -> None:
    for statement in _M002:
        db.conn.execute(statement)


_M003 = (
    # What the user asked to have read, until it was: taken up at the next start after a crash.
    """
    CREATE TABLE to_read (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        path BLOB NOT NULL,                 -- of a file or folder, the file system's own bytes
        options TEXT NOT NULL,              -- JSON; never a password
        added_at REAL NOT NULL              -- Unix time in seconds
    )""",
)


def m003_to_read(db: Any) -> None:
    for statement in _M003:
        db.conn.execute(statement)


_M004 = (
    """
    CREATE TABLE watched_folders (
        path TEXT PRIMARY KEY,              -- absolute, links in it kept as the user knows them
        collection_id INTEGER REFERENCES collections (id) ON DELETE SET NULL,
        added_at REAL NOT NULL,             -- Unix time in seconds
        after_id INTEGER NOT NULL,          -- the newest document's id when watching began
        seen_as TEXT NOT NULL               -- device and inode when it was last there with something in it
    ) WITHOUT ROWID""",
    # Folders below a watched one on another device than their parent: what is missing there while they are
    # not mounted is not gone.
    """
    CREATE TABLE watched_mounts (
        folder TEXT NOT NULL REFERENCES watched_folders (path) ON DELETE CASCADE,
        path TEXT NOT NULL,
        seen_as TEXT NOT NULL,              -- device and inode when it was last there
        PRIMARY KEY (folder, path)
    ) WITHOUT ROWID""",
    # Documents that came by watching a folder: they leave when their file does.
    """
    CREATE TABLE watched_documents (
        document_id INTEGER PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE
    )""",
    # Files in a watched folder that the user took out of the library: xxh3_128 of the path, not its words.
    """
    CREATE TABLE left_out (
        folder TEXT NOT NULL REFERENCES watched_folders (path) ON DELETE CASCADE,
        path_hash TEXT NOT NULL,
        PRIMARY KEY (folder, path_hash)
    ) WITHOUT ROWID""",
)


def m004_watched_folders(db: Any) -> None:
    for statement in _M004:
        db.conn.execute(statement)


_M005 = (
    # What an embedder made of a block; numbers are never used again, so that what is held in memory of one
    # that is gone cannot be taken for another.
    """
    CREATE TABLE block_vectors (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        block INTEGER NOT NULL REFERENCES blocks (rowid) ON DELETE CASCADE,
        embedder_id TEXT NOT NULL,
        scales BLOB NOT NULL,               -- float32, little endian, one a window
        vectors BLOB NOT NULL,              -- int8, window by window
        UNIQUE (embedder_id, block)
    )""",
    "CREATE INDEX block_vectors_block ON block_vectors (block)",
)


def m005_meaning(db: Any) -> None:
    """Vectors; and the full text index holds stems from here on."""
    for statement in _M005:
        db.conn.execute(statement)
    # Its rows are made again one by one: the text of a whole library would not fit into every memory.
    db.conn.execute("DELETE FROM blocks_fts")
    db.conn.executemany(
        "INSERT INTO blocks_fts (rowid, text) VALUES (?, ?)",
        (
            (rowid, " ".join(map(stem, terms(text))))
            for rowid, text in db.conn.execute("SELECT rowid, text FROM blocks")
        ),
    )


_M006 = (
    # Passages are neither moved nor shortened nor accompanied.
    "ALTER TABLE collections ADD COLUMN as_found INTEGER NOT NULL DEFAULT 0",
)


def m006_as_found(db: Any) -> None:
    for statement in _M006:
        db.conn.execute(statement)


_M007 = (
    # Cached tokens that nobody asked for are no gain.
    "ALTER TABLE requests ADD COLUMN n_rider_tokens INTEGER NOT NULL DEFAULT 0",
)


def m007_riders(db: Any) -> None:
    for statement in _M007:
        db.conn.execute(statement)


_ALL: tuple[Callable[[Any], None], ...] = (
    m001_first_schema,
    m002_collections,
    m003_to_read,
    m004_watched_folders,
    m005_meaning,
    m006_as_found,
    m007_riders,
)

NAMES = tuple(migration.__name__ for migration in _ALL)
"""Every migration, oldest first."""


def apply(connection: sqlite3.Connection) -> None:
    """Apply what is missing, each in a savepoint together with the record of it (sqlite-utils)."""
    from sqlite_utils import Database
    from sqlite_utils.migrations import Migrations

    migrations = Migrations(SET_NAME)
    for migration in _ALL:
        migrations(name=migration.__name__)(migration)
    migrations.apply(Database(connection, execute_plugins=False))
