"""Whether what is found holds the evidence: questions of people whose answers have known places.

The library is read as the program reads it and searched as the program searches; nothing is simulated.
The evidence counts as found if the blocks taken cover it, character by character, in the document that it
was marked in.
"""

import contextlib
import json
import tempfile
import time
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from core.bench import conversations
from core.bench.data import rows_of
from core.bench.library import add_made_up_blocks, embed_library
from core.config import Settings
from core.engine.llama import LlamaEngine
from core.engine.model_files import choose_model
from core.errors import KnownError
from core.ingest.library import blocks_of
from core.retrieval import lexical
from core.retrieval.search import Searcher
from core.store.database import Database, open_database
from core.store.documents import DocumentStore, NewDocument
from core.types import Scope, rendered

_KEPT_BLOCKS = 500
"""So many passages count as cached, the last ones used."""
_GAP = 4
"""White space of so many characters between two blocks is not missed."""


@dataclass(frozen=True, slots=True)
class _Evidence:
    document_id: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Asked:
    subset: str
    text: str
    scope: Scope
    evidence: tuple[_Evidence, ...]


def measure(
    folder: Path,
    settings: Settings,
    *,
    questions: Path | None,
    budget: int,
    scope: str,
    embeddings: bool,
    limit: int,
    n_blocks: int,
    keep: Path | None,
    prefer_cached: float | None = None,
    emit: Path | None = None,
) -> dict[str, Any]:
    """Evidence recall within ``budget`` tokens of the model in ``settings``, mean reciprocal rank, times.

    A question about one document is asked of that document, whatever the scope. Raises KnownError where the
    data cannot be used.
    """
    with contextlib.ExitStack() as stack:
        if keep is None:
            keep = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        db = stack.enter_context(open_database(keep))
        if (folder / "conversations.jsonl.gz").exists():
            return conversations.measure(folder, db, settings, embeddings=embeddings, limit=limit)
        ids, subsets = _read_library(folder, db)
        asked = list(_questions(questions or folder / "questions.jsonl.gz", ids, subsets, scope))
        if not asked:
            raise KnownError("No question has evidence with a known place in these documents.")
        if n_blocks:
            add_made_up_blocks(db, n_blocks, settings, vectors=embeddings)
        asked = asked[:: max(1, len(asked) // limit)][:limit] if limit else asked
        result: dict[str, Any] = {"scope": scope, "budget_tokens": budget}
        meaning = None
        if embeddings:
            meaning, speed = embed_library(db, settings, stack)
            result |= speed
        sizes = _TokenCounts(settings)
        stack.callback(sizes.close)
        searcher = Searcher(db, meaning)
        if prefer_cached is not None:
            return result | _contexts(searcher, db, asked, settings, prefer_cached, emit)
        return result | _recall(searcher, db, asked, sizes, budget, settings)


def _recall(
    searcher: Searcher,
    db: Database,
    asked: Sequence[_Asked],
    sizes: "_TokenCounts",
    budget: int,
    settings: Settings,
) -> dict[str, Any]:
    places = _places(db)
    ranks: dict[str, list[int]] = defaultdict(list)
    spent_ms = []
    for one in asked:
        started = time.perf_counter()
        searcher.search(
            one.text, scope=one.scope, limit=settings.passages, token_budget=settings.passage_tokens
        )
        spent_ms.append((time.perf_counter() - started) * 1000)
        found = searcher.ranked(lexical.query(one.text), one.text, one.scope)
        ranks[one.subset].append(
            _rank(one, [(block.id, block.text) for block in found], places, sizes, budget)
        )
    return {
        "all": _summary([rank for subset in ranks.values() for rank in subset]),
        "subsets": {subset: _summary(found) for subset, found in sorted(ranks.items())},
        "query_ms_p50": float(np.percentile(spent_ms, 50)),
        "query_ms_p95": float(np.percentile(spent_ms, 95)),
        "blocks": len(places),
    }


def _contexts(
    searcher: Searcher,
    db: Database,
    asked: Sequence[_Asked],
    settings: Settings,
    margin: float,
    emit: Path | None,
) -> dict[str, Any]:
    """Contexts as the program makes them, a passage of the last questions preferred within ``margin``."""
    places = _places(db)
    seen: OrderedDict[str, None] = OrderedDict()
    n_found = n_seen = n_taken = 0
    lines = []
    for one in asked:
        context = searcher.search(
            one.text,
            scope=one.scope,
            limit=settings.passages,
            token_budget=settings.passage_tokens,
            cached=seen.keys(),
            cache_margin=margin,
        )
        ids = [passage.block.id for passage in context.passages]
        spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for id_ in ids:
            n_seen += id_ in seen
            for document_id, start, end in places[id_]:
                spans[document_id].append((start, end))
        n_found += any(_holds(spans[evidence.document_id], evidence) for evidence in one.evidence)
        n_taken += len(ids)
        for id_ in ids:
            seen.pop(id_, None)
            seen[id_] = None
        while len(seen) > _KEPT_BLOCKS:
            seen.popitem(last=False)
        lines.append(json.dumps({"blocks": ids}) + "\n")
    if emit is not None:
        emit.write_text("".join(lines), encoding="utf-8")
    return {
        "prefer_cached": margin,
        "n": len(asked),
        "evidence_recall": n_found / len(asked),
        "passages_seen_before": n_seen / max(1, n_taken),
    }


def _summary(ranks: Sequence[int]) -> dict[str, float | int]:
    return {
        "n": len(ranks),
        "evidence_recall": sum(rank > 0 for rank in ranks) / len(ranks),
        "mrr": sum(1 / rank for rank in ranks if rank) / len(ranks),
    }


def _rank(
    asked: _Asked,
    found: Sequence[tuple[str, str]],
    places: dict[str, list[tuple[int, int, int]]],
    sizes: "_TokenCounts",
    budget: int,
) -> int:
    """How many blocks were taken until one piece of evidence was whole; 0 if none is within the budget."""
    covered: dict[int, list[tuple[int, int]]] = defaultdict(list)
    taken = 0
    for block_id, text in found:
        n_tokens = sizes.of(block_id, text)
        if n_tokens > budget:
            continue
        budget -= n_tokens
        taken += 1
        for document_id, start, end in places[block_id]:
            covered[document_id].append((start, end))
        if any(_holds(covered[one.document_id], one) for one in asked.evidence):
            return taken
    return 0


def _holds(spans: Sequence[tuple[int, int]], evidence: _Evidence) -> bool:
    at = evidence.start
    for start, end in sorted(spans):
        if start <= at + _GAP and end > at:
            at = end
        if at >= evidence.end:
            return True
    return False


def _places(db: Database) -> dict[str, list[tuple[int, int, int]]]:
    """Document, start and end of every place, by block id."""
    found: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for block_id, *place in db.rows(
        'SELECT blocks.id, document_id, start, "end" FROM places JOIN blocks ON blocks.rowid = places.block'
    ):
        found[block_id].append((place[0], place[1], place[2]))
    return found


def _read_library(folder: Path, db: Database) -> tuple[dict[str, int], dict[str, frozenset[int]]]:
    """Ids of the documents by their name in the data, and by subset; read unless they are there."""
    store = DocumentStore(db)
    ids: dict[str, int] = {}
    subsets: dict[str, set[int]] = defaultdict(set)
    there = {info.path: info.id for info in store.list_documents()}
    files = sorted(folder.glob("*docs.jsonl.gz"))
    if not files:
        raise KnownError(f"There are no documents (*docs.jsonl.gz) in {folder}.")
    for file in files:
        for row in rows_of(file):
            if row["doc_id"] not in there:
                text = row["text"]
                title = (row["title"] or row["doc_id"]).replace("/", " ")[:80]
                document = NewDocument(
                    row["doc_id"],
                    f"{title}.txt",
                    xxhash.xxh3_128_hexdigest(text.encode()),
                    n_bytes=len(text.encode()),
                    text=text,
                    blocks=blocks_of(text),
                )
                there[row["doc_id"]] = store.save(document).id
            ids[row["doc_id"]] = there[row["doc_id"]]
            subsets[row["subset"]].add(ids[row["doc_id"]])
    return ids, {subset: frozenset(found) for subset, found in subsets.items()}


def _questions(
    file: Path, ids: dict[str, int], subsets: dict[str, frozenset[int]], scope: str
) -> Iterator[_Asked]:
    for row in rows_of(file):
        evidence = tuple(
            _Evidence(ids[one["doc_id"]], one["start"], one["start"] + len(one["text"].rstrip()))
            for one in row["evidence"]
            if one["doc_id"] in ids
        )
        if not evidence:
            continue
        chosen = Scope()
        if scope == "document" or row["scope"] == "document":
            chosen = Scope(frozenset(ids[name] for name in row["gold_doc_ids"] if name in ids))
        elif scope == "subset":
            chosen = Scope(subsets[row["subset"]])
        yield _Asked(row["subset"], row["question"], chosen, evidence)


class _TokenCounts:
    """Tokens of rendered blocks, in the vocabulary of the model that would read them."""

    def __init__(self, settings: Settings) -> None:
        self._engine = LlamaEngine(choose_model(settings.model), settings.with_(n_ctx=512))
        self._known: dict[str, int] = {}

    def of(self, block_id: str, text: str) -> int:
        if block_id not in self._known:
            self._known[block_id] = len(self._engine.tokenize(rendered(text), special=False))
        return self._known[block_id]

    def close(self) -> None:
        self._engine.close()
