"""A released migration never changes: these pin what it made."""

import hashlib
from dataclasses import replace

from core.store import migrations
from core.store.collections import CollectionStore
from core.store.database import open_database
from core.types import CollectionInfo


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


def test_collections_of_an_older_database_are_not_left_as_found(data_dir, monkeypatch):
    older = migrations.NAMES[: migrations.NAMES.index("m006_as_found")]
    with monkeypatch.context() as before:
        before.setattr(migrations, "_ALL", migrations._ALL[: len(older)])
        before.setattr(migrations, "NAMES", older)
        with open_database(data_dir) as db:
            db.run("INSERT INTO collections (name, apart, on_disk, created_at) VALUES ('Tax', 1, 0, 0)")
    with open_database(data_dir) as db:
        assert (data_dir / "slipstream.db.before-m006_as_found").exists()
        store = CollectionStore(db)
        (info,) = store.list()
        assert info == CollectionInfo(1, "Tax", apart=True, on_disk=False)
        store.change(replace(info, as_found=True))
        assert store.list() == (CollectionInfo(1, "Tax", apart=True, on_disk=False, as_found=True),)
