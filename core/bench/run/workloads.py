"""From a data folder to the questions of a workload. Everything is decided by the data and the seed."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.bench.data import rows_of
from core.bench.run.questions import Asked, Shelf, Workload, with_turns
from core.bench.run.tasks import chain, documents, replay
from core.errors import KnownError, SettingsError
from core.retrieval.search import Searcher
from core.store.database import Database
from core.types import Scope

NAMES = (
    "multi-session", "multi-turn", "hybrid:N", "memory", "documents", "chain", "batch", "restart", "storm",
    "replay",
)  # fmt: skip
_HYBRID = (2, 4, 8, 16, 32)
_RETRIEVED_TOKENS = 1 << 20
"""Budget of our own retrieval: ``k`` alone decides how many passages there are."""


@dataclass(frozen=True, slots=True)
class Source:
    """What to take of the data."""

    folder: Path
    trace: str = ""
    """Path of a trace, or its name in the folder ``traces`` beside the data."""
    k: int = 5
    limit: int = 0
    """Questions; 0: all."""
    seed: int = 1
    longest: int = 0
    """Characters that a passage is cut to; 0: not at all."""
    warm: int = 0
    """So many questions come first and do not count."""


def build(name: str, source: Source, db: Database) -> Workload:
    """The questions of a workload; its documents are saved in ``db``.

    Raises SettingsError for a name that there is none of, KnownError for data that is not there.
    """
    if source.k < 1 or source.limit < 0 or source.warm < 0:
        raise SettingsError("Of k, limit and warm, one makes no sense.")
    kind, _, number = name.partition(":")
    made = _build(kind, number, name, source, db)
    if not made.questions:
        raise KnownError(f"No question was found in {source.folder}.")
    counted = tuple(replace(q, counted=q.counted and n >= source.warm) for n, q in enumerate(made.questions))
    if not any(asked.counted for asked in counted):
        raise SettingsError("All questions would only warm the caches: nothing is left to be measured.")
    return replace(made, questions=counted)


def _build(kind: str, number: str, name: str, source: Source, db: Database) -> Workload:
    if kind == "multi-session":
        return _library(_at(source, "library"), db)
    if kind == "multi-turn":
        return _turns(_at(source, "mtrag"), db)
    if kind == "hybrid":
        if not number.isdecimal() or int(number) not in _HYBRID:
            raise SettingsError(f"hybrid:N takes one of {', '.join(map(str, _HYBRID))}, not {number!r}.")
        made = _turns(_at(source, "mtrag"), db)
        mixed = with_turns(tuple(interleaved(made.questions, int(number))))
        return replace(made, name=name, questions=mixed, note=f"{made.note}; {number} sessions at a time")
    if kind == "memory":
        return _memory(_at(source, "locomo"), db)
    if kind == "documents":
        return documents(_at(source, "templates").folder, db, source.k, source.limit, source.longest)
    if kind == "chain":
        return chain(_at(source, "library").folder, db, source.k, source.limit, source.longest)
    if kind == "replay":
        if not source.trace:
            raise SettingsError("replay needs --trace FILE: JSON lines with a question each.")
        return replay(Path(source.trace), source.folder, db, source.k, source.limit)
    if kind in ("batch", "restart", "storm"):
        made = replace(_any(source, db), name=kind)
        if kind == "batch":
            return replace(made, known=True, note=f"{made.note}; all known in advance")
        if kind == "storm":
            return replace(made, tight=True, note=f"{made.note}; RAM and SSD hold a fifth of the working set")
        again = [
            replace(q, qid=f"{q.qid} again", session=f"{q.session} again", restart=n == 0)
            for n, q in enumerate(made.questions)
        ]
        first = [replace(asked, counted=False) for asked in made.questions]
        return replace(made, questions=(*first, *again), note=f"{made.note}; asked, restarted, asked again")
    raise SettingsError(f"There is no workload {name}.", hint=f"There are: {', '.join(NAMES)}.")


def _at(source: Source, name: str) -> Source:
    """The same source, its folder being the one of this set where several lie side by side."""
    inside = source.folder / name
    return replace(source, folder=inside) if inside.is_dir() else source


def _any(source: Source, db: Database) -> Workload:
    """Single questions of whichever set the folder holds."""
    source = _at(source, "library")
    if (source.folder / "passages.jsonl.gz").exists():
        return _turns(source, db)
    if (source.folder / "docs.jsonl.gz").exists():
        return _library(source, db)
    return _memory(source, db)


def _library(source: Source, db: Database) -> Workload:
    """Questions of many people over one library, each a session of its own."""
    folder = source.folder
    asked = {row["qid"]: row for row in rows_of(folder / "questions.jsonl.gz")}
    rows = _trace(source)
    shelf = Shelf(db, source.longest)
    texts = {row["doc_id"]: row for row in rows_of(folder / "docs.jsonl.gz")}
    pieces: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in rows_of(folder / "blocks.jsonl.gz"):
        pieces[row["doc_id"]].append(
            (row["block_id"], texts[row["doc_id"]]["text"][row["start"] : row["end"]])
        )
    owner = {name: document for document, found in pieces.items() for name, _ in found}
    for document, found in pieces.items():
        shelf.add(document, texts[document].get("title") or document, found)
    by_document = "document" in source.trace
    retrieved: Mapping[str, Sequence[str]] | None = None
    if rows is not None:
        retrieved = {row["qid"]: row["blocks"] for row in rows if row["qid"] in asked and row["blocks"]}
        names = list(retrieved)
    else:
        names = list(asked)

    def group(qid: str) -> str:
        if by_document and retrieved is not None:
            return owner.get(retrieved[qid][0], "")
        return str(asked[qid].get("subset", "")) if "subset" in source.trace else ""

    questions = []
    searcher = Searcher(db)
    for qid in chosen(names, group, source.limit, source.seed):
        row = asked[qid]
        scope = Scope()
        if by_document or (rows is None and row.get("scope") == "document"):
            holder = group(qid) if by_document else (row["gold_doc_ids"] or [""])[0]
            scope = Scope(frozenset({shelf.documents[holder]})) if holder in shelf.documents else scope
        if retrieved is not None:
            passages = shelf.take(retrieved[qid], source.k)
        else:
            passages = searcher.search(
                row["question"], scope=scope, limit=source.k, token_budget=_RETRIEVED_TOKENS
            ).passages
        if passages:
            questions.append(
                Asked(
                    qid,
                    qid,
                    row["question"],
                    passages,
                    scope,
                    tuple(row["answers"] or ()),
                    tuple(one["text"] for one in row.get("evidence") or ()),
                    shelf.ids(row.get("gold_block_ids") or ()),
                )
            )
    return Workload("multi-session", tuple(questions), f"{len(questions)} questions, {_taken(source)}")


def _turns(source: Source, db: Database) -> Workload:
    """Conversations of several turns, one after the other."""
    folder = source.folder
    conversations = list(rows_of(folder / "conversations.jsonl.gz"))
    rows = _trace(source)
    traced = None if rows is None else {(row["conv_id"], row["turn"]): row["blocks"] for row in rows}
    random.Random(source.seed).shuffle(conversations)
    wanted: set[str] = set()
    plan: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = []
    for conversation in conversations:
        if source.limit and len(plan) >= source.limit:
            break
        for turn in conversation["turns"]:
            name = conversation["conv_id"]
            blocks = turn["shown_passage_ids"] if traced is None else traced.get((name, turn["turn"]), [])
            plan.append((conversation, turn, list(blocks or [])[: source.k]))
            wanted |= {*plan[-1][2]}
    plan = plan[: source.limit] if source.limit else plan
    shelf = Shelf(db, source.longest)
    members: dict[str, list[str]] = defaultdict(list)
    for row in rows_of(folder / "passages.jsonl.gz"):
        if row["passage_id"] in wanted:
            title = row.get("title") or ""
            text = row["text"].strip()
            text = text if text.startswith(title) else f"{title}\n\n{text}"
            shelf.add(
                row["passage_id"], f"{title[:80] or row['passage_id']}.txt", [(row["passage_id"], text)]
            )
            members[row["domain"]].append(row["passage_id"])
    scopes = {domain: shelf.collect(domain, found) for domain, found in members.items()}
    questions = [
        Asked(
            f"{conversation['conv_id']}:{turn['turn']}",
            conversation["conv_id"],
            turn["question"],
            shelf.take(blocks, source.k),
            scopes.get(conversation["domain"], Scope()),
            (turn["answer"],) if turn["answer"] else (),
            (),
            shelf.ids(turn["gold_passage_ids"] or ()),
        )
        for conversation, turn, blocks in plan
    ]
    n = len({asked.session for asked in questions})
    note = (
        f"{len(questions)} turns of {n} conversations, {_taken(source, 'passages shown to the annotators')}"
    )
    return Workload("multi-turn", with_turns(questions), note)


def _memory(source: Source, db: Database) -> Workload:
    """Questions over long dialogues: the sessions of a dialogue are the blocks of one document."""
    folder = source.folder
    asked = {row["qid"]: row for row in rows_of(folder / "questions.jsonl.gz")}
    rows = _trace(source if source.trace else replace(source, trace="locomo"))
    if rows is None:
        raise KnownError("The workload memory needs a trace.", hint="Give one with --trace FILE.")
    said: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in rows_of(folder / "blocks.jsonl.gz"):
        said[row["sample_id"]].append((row["block_id"], row["text"]))
    shelf = Shelf(db, source.longest)
    for name, pieces in said.items():
        shelf.add(name, f"{name}.txt", pieces)
    retrieved = {row["qid"]: row["blocks"] for row in rows if row["qid"] in asked}
    questions = []
    for qid in chosen(list(retrieved), lambda name: str(asked[name]["sample_id"]), source.limit, source.seed):
        row = asked[qid]
        answers = (str(row["answer"]),) if row["answer"] not in (None, "") else ()
        questions.append(
            Asked(
                qid,
                qid,
                row["question"],
                shelf.take(retrieved[qid], source.k),
                Scope(frozenset({shelf.documents[row["sample_id"]]})),
                answers,
                (),
                shelf.ids(row["gold_block_ids"] or ()),
            )
        )
    return Workload("memory", tuple(questions), f"{len(questions)} questions, {_taken(source, 'locomo')}")


def chosen(names: Sequence[str], group: Callable[[str], str], limit: int, seed: int) -> list[str]:
    """``limit`` names (0: all) in random order, of as few whole groups as hold so many.

    A random sample of everything would hardly hold two questions about one document, and nothing could be
    reused whatever the policy.
    """
    rng = random.Random(seed)
    members: dict[str, list[str]] = defaultdict(list)
    for name in names:
        members[group(name)].append(name)
    groups = list(members)
    rng.shuffle(groups)
    taken: list[str] = []
    for one in groups:
        if limit and len(taken) >= limit:
            break
        taken += members[one]
    rng.shuffle(taken)
    return taken[:limit] if limit else taken


def interleaved(questions: Sequence[Asked], n: int) -> Iterator[Asked]:
    """Turn by turn of ``n`` sessions; where one ends, the next begins in its place."""
    sessions: dict[str, list[Asked]] = defaultdict(list)
    for asked in questions:
        sessions[asked.session].append(asked)
    waiting = iter(sessions.values())
    open_ones: list[list[Asked]] = [session for _, session in zip(range(n), waiting, strict=False)]
    while open_ones:
        for place, session in enumerate(list(open_ones)):
            yield session.pop(0)
            if not session:
                open_ones[place] = next(waiting, [])
        open_ones = [session for session in open_ones if session]


def _trace(source: Source) -> list[dict[str, Any]] | None:
    """The rows of the trace; None where none was named. Raises KnownError where it is not there."""
    if not source.trace:
        return None
    names: Iterable[Path] = (
        Path(source.trace),
        *(
            folder / f"{source.trace}.jsonl.gz"
            for folder in (source.folder, source.folder / "traces", source.folder.parent / "traces")
        ),
    )
    for path in names:
        if path.is_file():
            return list(rows_of(path))
    raise KnownError(f"There is no trace {source.trace}.", hint="Give the path of a .jsonl.gz file.")


def _taken(source: Source, otherwise: str = "our own retrieval by words") -> str:
    name = Path(source.trace).name.removesuffix(".jsonl.gz") if source.trace else otherwise
    cut = f", passages cut to {source.longest} characters" if source.longest else ""
    return f"{name}, k = {source.k}, seed {source.seed}{cut}"
