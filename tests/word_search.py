"""Looking for words in a library, without ranking: what the full text index alone finds."""

from collections.abc import Sequence

from core.store import full_text
from core.store.database import Database
from core.store.documents import DocumentStore
from core.text import stem
from core.types import Scope


def texts_with(db: Database, terms: Sequence[str], scope: Scope | None = None, limit: int = 9) -> list[str]:
    stems = [stem(term) for term in terms]
    wanted = [(word, full_text.frequency(db, word)) for word in stems]
    rowids = full_text.candidates(db, wanted, scope or Scope(), limit)
    blocks = DocumentStore(db).blocks(rowids)
    return [blocks[rowid][1] for rowid in rowids]
