"""A released migration never changes: these pin what it made."""

import hashlib

from core.store import migrations


def test_names_are_in_order_and_released_ones_stay():
    assert migrations.NAMES[0] == "m001_first_schema"
    assert list(migrations.NAMES) == sorted(migrations.NAMES)


def test_tables_and_columns(db):
    columns = {
        table: [row[1] for row in db.rows(f"PRAGMA table_info({table})")]
        for (table,) in db.rows(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"
            " AND name NOT GLOB '_sqlite*' AND name NOT GLOB 'blocks_fts_*' ORDER BY name"
        )
    }
    assert list(columns) == [
        "block_tokens",
        "block_vectors",
        "blocks",
        "blocks_fts",
        "collections",
        "conversations",
        "documents",
        "former_blocks",
        "learned",
        "left_out",
        "pages",
        "places",
        "requests",
        "to_read",
        "turn_blocks",
        "turns",
        "watched_documents",
        "watched_folders",
        "watched_mounts",
    ]
    assert columns["places"] == ["document_id", "ordinal", "block", "start", "end", "page", "gap"]
    assert columns["blocks"] == ["rowid", "id", "text", "n_tokens_est"]


def test_the_first_schema_is_the_released_one():
    released = hashlib.sha256("".join(" ".join(sql.split()) for sql in migrations._M001).encode()).hexdigest()
    assert released[:16] == "794226d24f112107"
