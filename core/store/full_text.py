"""The full text index (FTS5): what goes in, what comes out, and that removed text is gone.

The indexed column holds stems of terms (``core.text``), one space between them, so that SQLite's tokenizer
finds the same words in any script as the question has. Nothing of a question reaches FTS5's query
language unquoted. FTS5 finds candidates; what they are worth is counted in ``core.retrieval.lexical``.
"""

# ruff: noqa: S608
# The statement is put together from our own names; values are always parameters.

from collections.abc import Iterable, Sequence

from core.store.database import Database
from core.store.scopes import documents_in
from core.text import stem, terms
from core.types import Scope

_ROWS_PER_QUERY = 10_000
"""Postings that one query reads: a word that stands in every second block says little and costs most."""


def stems(text: str) -> list[str]:
    """The terms of a text as they are indexed and looked for."""
    return list(map(stem, terms(text)))


def insert(db: Database, blocks: Iterable[tuple[int, str]]) -> None:
    """Index blocks given as (rowid, text)."""
    db.run_many(
        "INSERT INTO blocks_fts (rowid, text) VALUES (?, ?)",
        ((rowid, " ".join(stems(text))) for rowid, text in blocks),
    )


def delete(db: Database, rowids: Iterable[int]) -> None:
    db.run_many("DELETE FROM blocks_fts WHERE rowid = ?", ((rowid,) for rowid in rowids))


def purge(db: Database) -> None:
    """Make deletions real where they are not already.

    SQLite before 3.42 only marks words as deleted; merging the whole index drops them. Later versions
    drop them at once where the index says so (``secure-delete``).
    """
    if db.row("SELECT 1 FROM blocks_fts_config WHERE k = 'secure-delete' AND v = 1") is None:
        db.run("INSERT INTO blocks_fts (blocks_fts) VALUES ('optimize')")


def n_blocks(db: Database) -> int:
    """The highest rowid: how many blocks there are, or more where some were removed."""
    row = db.row("SELECT coalesce(max(rowid), 0) FROM blocks")
    return 0 if row is None else int(row[0])


def frequency(db: Database, word: str) -> int:
    """In how many blocks it stands."""
    db.run(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.frequencies USING fts5vocab ('main', 'blocks_fts', 'row')"
    )
    row = db.row("SELECT doc FROM temp.frequencies WHERE term = ?", [word])
    return 0 if row is None else int(row[0])


def candidates(db: Database, wanted: Sequence[tuple[str, int]], scope: Scope, limit: int) -> list[int]:
    """Rowids of the best blocks within ``scope`` that hold any of the stems, best first.

    ``wanted`` holds stems and in how many blocks each stands, the ones that count most first; so many of them
    are looked for as together stand in 10,000 blocks. Equal scores are ordered by rowid.
    """
    taken: list[str] = []
    n_rows = 0
    for word, n in wanted:
        if not n or (taken and n_rows + n > _ROWS_PER_QUERY):
            continue
        taken.append(word)
        n_rows += n
    if not taken or limit <= 0:
        return []
    query = " OR ".join('"' + word.replace('"', '""') + '"' for word in taken)
    inside, parameters = documents_in(scope)
    # The plus keeps SQLite from searching once for every block of the scope.
    within = f"AND +rowid IN (SELECT block FROM places WHERE document_id {inside})" if inside else ""
    rows = db.rows(
        f"SELECT rowid FROM blocks_fts WHERE blocks_fts MATCH ? {within} ORDER BY rank LIMIT ?",
        (query, *parameters, limit),
    )
    return [row[0] for row in rows]


def indexed(db: Database, rowids: Sequence[int]) -> dict[int, str]:
    """The stems of blocks, in order, one space between them."""
    return dict(db.rows_in("SELECT rowid, text FROM blocks_fts WHERE rowid IN (?*)", rowids))
