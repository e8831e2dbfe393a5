"""The full text index (FTS5): what goes in, what comes out, and that removed text is gone.

The indexed column holds terms (``core.text.terms``), one space between them, so that SQLite's tokenizer
finds the same words in any script as the question has. Nothing of a question reaches FTS5's query
language unquoted.
"""

# ruff: noqa: S608
# The statement is put together from our own names; values are always parameters.

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.store.database import Database
from core.store.scopes import documents_in
from core.text import terms
from core.types import Scope

_MAX_TERMS = 64
"""Of a question that is a pasted page the first terms say what it is about; each one costs time."""


@dataclass(frozen=True, slots=True)
class Match:
    """A block that holds at least one of the terms looked for."""

    block_id: str
    text: str
    n_tokens_est: int
    score: float
    """BM25, higher is better; comparable within one query only."""


def insert(db: Database, blocks: Iterable[tuple[int, str]]) -> None:
    """Index blocks given as (rowid, text)."""
    db.run_many(
        "INSERT INTO blocks_fts (rowid, text) VALUES (?, ?)",
        ((rowid, " ".join(terms(text))) for rowid, text in blocks),
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


def match(db: Database, wanted: Sequence[str], scope: Scope, limit: int) -> list[Match]:
    """The best blocks within ``scope`` that hold any of ``wanted`` (terms of ``core.text``), best first.

    A term that is given twice counts twice. Equal scores are ordered by block id, so that the order
    does not depend on when a file was added.
    """
    if not wanted or limit <= 0:
        return []
    query = " OR ".join('"' + term.replace('"', '""') + '"' for term in wanted[:_MAX_TERMS])
    inside, parameters = documents_in(scope)
    # The plus keeps SQLite from searching once for every block of the scope.
    within = f"AND +rowid IN (SELECT block FROM places WHERE document_id {inside})" if inside else ""
    rows = db.rows(
        "SELECT blocks.id, blocks.text, blocks.n_tokens_est, -found.rank FROM"
        " (SELECT rowid, rank FROM blocks_fts"
        f" WHERE blocks_fts MATCH ? {within} ORDER BY rank LIMIT ?) AS found"
        " JOIN blocks ON blocks.rowid = found.rowid ORDER BY found.rank, blocks.id",
        (query, *parameters, limit),
    )
    return [Match(*row) for row in rows]
