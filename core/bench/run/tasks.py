"""Workloads made of tasks: reading and comparing documents, a chain of workers, a person's own questions."""

import itertools
import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from core.bench.data import rows_of
from core.bench.run.questions import Asked, Shelf, Workload, with_turns
from core.errors import KnownError
from core.ingest.library import blocks_of, ingest
from core.retrieval.lexical import Turn
from core.retrieval.search import Searcher
from core.store.database import Database
from core.text import sentences
from core.types import Block, Passage, Scope

_DOCUMENTS_A_TASK = 4
_WORKERS = 4
_QUESTIONS_A_DOCUMENT = 3


def documents(folder: Path, db: Database, k: int, limit: int, longest: int) -> Workload:
    """What an agent does with a family of documents, a conversation a family: read the first, compare each
    further one with it, then rank all. Passages are the documents' beginnings, in their own order.
    """
    families: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows_of(folder / "docs.jsonl.gz"):
        families[row.get("family") or row.get("subset") or ""].append(row)
    shelf = Shelf(db, longest)
    names: dict[str, list[str]] = {}
    questions: list[Asked] = []
    for family, rows in families.items():
        if limit and len(questions) >= limit:
            break
        for row in rows:
            pieces = [
                (f"{row['doc_id']}#{n}", new.block.text) for n, new in enumerate(blocks_of(row["text"]))
            ]
            shelf.add(row["doc_id"], row["title"], pieces)
            names[row["doc_id"]] = [name for name, _ in pieces]
        chosen = rows[:_DOCUMENTS_A_TASK]
        if len(chosen) < 2:
            continue
        first = chosen[0]
        tasks = [(f"What does {first['title']} say? Name its main points.", [first], k)]
        tasks += [
            (f"Compare {other['title']} with {first['title']}.", [first, other], -(-k // 2))
            for other in chosen[1:]
        ]
        tasks.append(("Rank all of these documents by how much they differ from the first.", chosen, 2))
        for number, (text, read, n_each) in enumerate(tasks):
            wanted = [name for row in read for name in names[row["doc_id"]][:n_each]]
            scope = Scope(frozenset(shelf.documents[row["doc_id"]] for row in read))
            questions.append(
                Asked(f"{family}:{number}", family, text, shelf.take(wanted, len(wanted)), scope)
            )
    questions = questions[:limit] if limit else questions
    return Workload("documents", with_turns(questions), f"{len(questions)} tasks over families of documents")


def chain(folder: Path, db: Database, k: int, limit: int, longest: int) -> Workload:
    """Chain of agents: workers read the parts of a document one by one for a question, one joins their notes.

    The notes are given (the first sentence of each part): what is measured is reading, not the notes.
    """
    asked: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows_of(folder / "questions.jsonl.gz"):
        for document in row["gold_doc_ids"][:1]:
            asked[document].append(row)
    texts = {row["doc_id"]: row for row in rows_of(folder / "docs.jsonl.gz") if row["doc_id"] in asked}
    pieces: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in rows_of(folder / "blocks.jsonl.gz"):
        if row["doc_id"] in texts:
            text = texts[row["doc_id"]]["text"][row["start"] : row["end"]]
            pieces[row["doc_id"]].append((row["block_id"], text))
    shelf = Shelf(db, longest)
    questions: list[Asked] = []
    for document, rows in asked.items():
        if limit and len(questions) >= limit:
            break
        if document not in texts or len(pieces[document]) < 2:
            continue
        shelf.add(document, texts[document].get("title") or document, pieces[document])
        names = [name for name, _ in pieces[document]]
        parts = [names[at : at + k] for at in range(0, min(len(names), k * _WORKERS), k)]
        for row in rows[:_QUESTIONS_A_DOCUMENT]:
            notes = []
            for number, part in enumerate(parts):
                qid = f"{row['qid']}:{number}"
                text = f"Note what helps to answer this question, and nothing else: {row['question']}"
                passages = shelf.take(part, k)
                questions.append(Asked(qid, qid, text, passages))
                notes += [_note(passages[0])] if passages else []
            qid = f"{row['qid']}:join"
            evidence = tuple(one["text"] for one in row.get("evidence") or ())
            questions.append(
                Asked(qid, qid, row["question"], tuple(notes), Scope(), tuple(row["answers"] or ()), evidence)
            )
    questions = questions[:limit] if limit else questions
    return Workload("chain", tuple(questions), f"{len(questions)} requests of workers and joiners, k = {k}")


def _note(passage: Passage) -> Passage:
    text = passage.block.text
    start, end = next(iter(sentences(text)), (0, len(text)))
    return Passage(Block.of(text[start:end]), passage.places, 0.0, "", 0)


def replay(path: Path, folder: Path, db: Database, k: int, limit: int) -> Workload:
    """A person's own questions over a folder of documents, read and searched as the program does.

    A line is ``{"question": …}``, with ``session``, ``answer`` and ``evidence`` (texts that an answer needs,
    verbatim) where they are known.
    """
    ingest([folder], db, cancel=threading.Event(), progress=lambda _: None)
    searcher = Searcher(db)
    history: dict[str, list[Turn]] = defaultdict(list)
    questions = []
    for number, row in enumerate(itertools.islice(_recorded(path), limit or None)):
        session = str(row.get("session", f"alone {number}"))
        text = str(row["question"])
        found = searcher.search(
            text, scope=Scope(), limit=k, token_budget=1 << 20, history=tuple(history[session])
        )
        answer = str(row.get("answer", ""))
        history[session].append(Turn(text, answer))
        questions.append(
            Asked(
                f"{number}",
                session,
                text,
                found.passages,
                answers=(answer,) if answer else (),
                evidence=tuple(map(str, row.get("evidence", ()))),
            )
        )
    return Workload("replay", with_turns(questions), f"{len(questions)} recorded questions, k = {k}")


def _recorded(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8") as file:
            for line in file:
                if line.strip():
                    row = json.loads(line)
                    yield {**row, "question": str(row["question"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise KnownError(
            f"The recorded questions {path} cannot be read.",
            hint='Each line is a JSON object {"question": "…"}.',
            details=str(error),
        ) from error
