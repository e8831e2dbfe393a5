"""What all workloads are made of: questions, each with its passages in relevance order."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import xxhash

from core.cdc import estimate_tokens
from core.store.collections import CollectionStore
from core.store.database import Database
from core.store.documents import DocumentStore, NewBlock, NewDocument
from core.types import Block, Passage, Place, Scope

EVERYWHERE = Scope()


@dataclass(frozen=True, slots=True)
class Asked:
    """One question as every policy gets it."""

    qid: str
    """Different for every question of a workload."""
    session: str
    """Questions of one session are turns of one conversation."""
    text: str
    passages: tuple[Passage, ...]
    """Best first; each block once."""
    scope: Scope = EVERYWHERE
    answers: tuple[str, ...] = ()
    """Any of them is right."""
    evidence: tuple[str, ...] = ()
    """Text that an answer needs, verbatim."""
    gold_blocks: frozenset[str] = frozenset()
    """Ids of the blocks that an answer needs; looked at where ``evidence`` is empty."""
    continues: bool = False
    """The session has a later question."""
    counted: bool = True
    """False: asked to fill the caches only."""
    restart: bool = False
    """The program was ended before this question."""

    @property
    def reply(self) -> str:
        """What stands in the conversation as its answer, for every policy alike."""
        return self.answers[0] if self.answers else "I did not find it."


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    questions: tuple[Asked, ...]
    """In order of arrival."""
    note: str
    """What was taken of the data, in words."""
    known: bool = False
    """All questions are known before the first is asked: policies may change their order."""
    tight: bool = False
    """RAM and SSD hold a fifth of the working set each."""


class Shelf:
    """Documents with given blocks, saved so that the product's own paths find them."""

    def __init__(self, db: Database, longest: int = 0) -> None:
        """``longest``: every block is cut to so many characters (0: not at all)."""
        self._store = DocumentStore(db)
        self._collections = CollectionStore(db)
        self._longest = longest
        self.passages: dict[str, Passage] = {}
        """By the data's own name of a block."""
        self.documents: dict[str, int] = {}
        """Id by the data's own name."""

    def add(self, name: str, title: str, pieces: Sequence[tuple[str, str]]) -> None:
        """Save a document that consists of these pieces, ``(name, text)``. Empty ones are left out."""
        blocks = [
            (piece, Block.of(text[: self._longest] if self._longest else text)) for piece, text in pieces
        ]
        blocks = [(piece, block) for piece, block in blocks if block.text]
        new, spans, parts, at = [], [], [], 0
        for _, block in blocks:
            end = at + len(block.text)
            new.append(NewBlock(block, at, end, estimate_tokens(block.text)))
            spans.append((at, end))
            parts.append(block.text)
            at = end + 2
        text = "\n\n".join(parts)
        saved = self._store.save(
            NewDocument(
                name,
                title,
                xxhash.xxh3_128_hexdigest(f"{name}\n{text}".encode()),
                text=text,
                blocks=tuple(new),
            )
        )
        self.documents[name] = saved.id
        for ordinal, ((piece, block), (start, end)) in enumerate(zip(blocks, spans, strict=True)):
            place = Place(saved.id, title, name, ordinal, start, end, None)
            self.passages[piece] = Passage(block, (place,), 0.0, "", 0)

    def collect(self, name: str, documents: Iterable[str]) -> Scope:
        """A collection of these documents."""
        collection = self._collections.create(name)
        self._collections.assign(tuple(self.documents[one] for one in documents), collection)
        return Scope(collection_id=collection)

    def take(self, names: Iterable[str], k: int) -> tuple[Passage, ...]:
        """The first ``k`` passages of these names, each block once; unknown names are left out."""
        found: dict[str, Passage] = {}
        for name in names:
            passage = self.passages.get(name)
            if passage is not None:
                found.setdefault(passage.block.id, passage)
        return tuple(found.values())[:k]

    def ids(self, names: Iterable[str]) -> frozenset[str]:
        """Ids of the blocks of these names."""
        return frozenset(self.passages[name].block.id for name in names if name in self.passages)


def with_turns(questions: Sequence[Asked]) -> tuple[Asked, ...]:
    """The same questions, each knowing whether its session goes on."""
    last = {asked.session: number for number, asked in enumerate(questions)}
    return tuple(replace(asked, continues=last[asked.session] > n) for n, asked in enumerate(questions))
