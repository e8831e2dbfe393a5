"""Follow-up questions: whether the passages that answer one are found with the conversation before it."""

import contextlib
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from core.bench.data import rows_of
from core.bench.library import embed_library
from core.cdc import estimate_tokens
from core.config import Settings
from core.retrieval import lexical
from core.retrieval.lexical import Turn
from core.retrieval.search import Searcher
from core.store.collections import CollectionStore
from core.store.database import Database
from core.store.documents import DocumentStore, NewBlock, NewDocument
from core.types import Block, Scope

_AT = 10
"""Gold passages are looked for among so many."""


def measure(
    folder: Path, db: Database, settings: Settings, *, embeddings: bool, limit: int
) -> dict[str, Any]:
    """Recall@10 of gold passages, turn by turn: with the conversation, with the last question alone, and by
    the words of a person's rewrite of it.
    """
    domains = _read_passages(folder, db)
    conversations = list(rows_of(folder / "conversations.jsonl.gz"))[: limit or None]
    with contextlib.ExitStack() as stack:
        result: dict[str, Any] = {}
        meaning = None
        if embeddings:
            meaning, result = embed_library(db, settings, stack)
        searcher, by_words = Searcher(db, meaning), Searcher(db)
        names = {block_id: name for name, block_id in domains.blocks.items()}
        recall: dict[str, list[float]] = defaultdict(list)
        for conversation in conversations:
            scope = Scope(collection_id=domains.collections[conversation["domain"]])
            history: list[Turn] = []
            for turn in conversation["turns"]:
                gold = set(turn["gold_passage_ids"] or ())
                text, rewrite = turn["question"], turn["standalone_question"]
                if gold and rewrite:
                    asked: dict[str, tuple[Searcher, str, Sequence[Turn]]] = {
                        "conversation": (searcher, text, history),
                        "last_question": (searcher, text, ()),
                        "rewrite_by_words": (by_words, rewrite, ()),
                    }
                    for name, (how, question, earlier) in asked.items():
                        query = lexical.query(question, earlier)
                        found = how.ranked(query, question, scope, earlier)[:_AT]
                        recall[name].append(len(gold & {names[one.id] for one in found}) / len(gold))
                history.append(Turn(text, turn["answer"] or ""))
        result["turns"] = len(recall["conversation"])
        result |= {f"recall_at_{_AT}_{name}": float(np.mean(found)) for name, found in recall.items()}
        return result


@dataclass(frozen=True, slots=True)
class _Passages:
    blocks: dict[str, str]
    """Block id by passage id."""
    collections: dict[str, int]
    """By domain."""


def _read_passages(folder: Path, db: Database) -> _Passages:
    """Each passage as a document of one block, since they overlap; read unless they are there."""
    store = DocumentStore(db)
    there = {info.path: info.id for info in store.list_documents()}
    blocks: dict[str, str] = {}
    documents: dict[str, set[int]] = defaultdict(set)
    for number, row in enumerate(rows_of(folder / "passages.jsonl.gz")):
        title = row["title"] or ""
        text = row["text"].strip()
        text = text if text.startswith(title) else f"{title}\n\n{text}"
        block = Block.of(text)
        blocks[row["passage_id"]] = block.id
        if row["passage_id"] not in there:
            whole = NewDocument(
                row["passage_id"],
                f"{title[:80]}.txt",
                xxhash.xxh3_128_hexdigest(text.encode()),
                text=block.text,
                blocks=(NewBlock(block, 0, len(block.text), estimate_tokens(block.text)),),
            )
            there[row["passage_id"]] = store.save(whole).id
        documents[row["domain"]].add(there[row["passage_id"]])
        if number % 2000 == 0:
            sys.stderr.write(f"\r{number:,} passages read")
    sys.stderr.write("\n")
    collections = CollectionStore(db)
    ids = {info.name: info.id for info in collections.list()}
    for domain, found in documents.items():
        if domain not in ids:
            ids[domain] = collections.create(domain)
            collections.assign(tuple(found), ids[domain])
    return _Passages(blocks, ids)
