"""What stored conversations must forget when a document is removed."""

from collections.abc import Sequence

from core.store import answers
from core.store.database import Database
from core.types import Answer


def forget_blocks(db: Database, block_ids: Sequence[str]) -> None:
    """Drop these blocks' text from every turn that quotes them, and those turns' ledgers.

    A turn whose ledger is gone is rendered again from its question and answer, as another branch.
    """
    gone = frozenset(block_ids)
    turns: dict[int, str] = dict(
        db.rows_in(
            "SELECT DISTINCT turns.id, turns.answer FROM turn_blocks"
            " JOIN turns ON turns.id = turn_blocks.turn_id WHERE turn_blocks.block_id IN (?*)",
            block_ids,
        )
    )
    db.run_many(
        "UPDATE turns SET answer = ?, ledger_segments = '[]', ledger_tokens = x'' WHERE id = ?",
        (
            (answers.encode(answers.without_blocks(answers.decode(stored), gone)), turn_id)
            for turn_id, stored in turns.items()
        ),
    )
    db.run_many("DELETE FROM turn_blocks WHERE block_id = ?", ((block_id,) for block_id in block_ids))


def removed_blocks(db: Database, answer: Answer) -> frozenset[str]:
    """Blocks that ``answer`` quotes, that are stored no more, and whose documents were all removed.

    (A document that was edited is still there: what was said about its earlier version stays.)
    """
    documents: dict[str, set[int]] = {}
    for passage in answer.passages:
        if passage.block.text:
            documents.setdefault(passage.block.id, set()).update(
                place.document_id for place in passage.places
            )
    for citation in answer.citations:
        if citation.quote:
            documents.setdefault(citation.block_id, set()).add(citation.document_id)
    for standing in answer.standings:
        for spot in standing.stretches:
            if spot.quote:
                documents.setdefault(spot.block_id, set()).add(spot.document_id)
    stored = {row[0] for row in db.rows_in("SELECT id FROM blocks WHERE id IN (?*)", list(documents))}
    ids = sorted(set().union(*documents.values()))
    there = {row[0] for row in db.rows_in("SELECT id FROM documents WHERE id IN (?*)", ids)}
    return frozenset(
        block_id for block_id, of in documents.items() if block_id not in stored and not of & there
    )
