"""Conversations: what was asked and answered, and the tokens each turn added to the prompt."""

import json
import time
from collections.abc import Sequence

import numpy as np

from core.store import answers, redaction
from core.store.database import Database
from core.types import Answer, CachePlace, ConversationInfo, Segment, SegmentKind, Turn


class ConversationStore:
    def __init__(self, db: Database) -> None:
        self._db = db

    def create(self, title: str) -> int:
        now = time.time()
        with self._db.write():
            return self._db.run(
                "INSERT INTO conversations (title, created_at, updated_at) VALUES (?, ?, ?)",
                [title, now, now],
            )

    def cache_place(self, conversation_id: int) -> CachePlace:
        """Where the cache keeps its prompts; the default for a conversation that is gone."""
        row = self._db.row("SELECT namespace, on_disk FROM conversations WHERE id = ?", [conversation_id])
        return CachePlace() if row is None else CachePlace(row[0], bool(row[1]))

    def namespaces(self) -> set[str]:
        """Every namespace that some conversation is cached in, but for the default one."""
        rows = self._db.rows("SELECT DISTINCT namespace FROM conversations WHERE namespace <> ''")
        return {row[0] for row in rows}

    def set_cache_place(self, conversation_id: int, place: CachePlace) -> None:
        with self._db.write():
            self._db.run(
                "UPDATE conversations SET namespace = ?, on_disk = ? WHERE id = ?",
                [place.namespace, place.on_disk, conversation_id],
            )

    def list(self) -> tuple[ConversationInfo, ...]:
        """Every conversation, the one used last first."""
        rows = self._db.rows(
            "SELECT id, title,"
            " (SELECT count(*) FROM turns WHERE conversation_id = conversations.id), updated_at"
            " FROM conversations ORDER BY updated_at DESC, id DESC"
        )
        return tuple(ConversationInfo(*row) for row in rows)

    def turns(self, conversation_id: int) -> tuple[Turn, ...]:
        rows = self._db.rows(
            "SELECT id, question, answer FROM turns WHERE conversation_id = ? ORDER BY ordinal",
            [conversation_id],
        )
        return tuple(Turn(turn_id, question, answers.decode(answer)) for turn_id, question, answer in rows)

    def append_turn(
        self,
        conversation_id: int,
        question: str,
        answer: Answer,
        ledger: Sequence[Segment],
        tokenizer_id: str,
    ) -> Turn:
        """Store a finished turn. ``ledger`` holds all segments that the turn added to the prompt.

        What it quotes from a document that was removed meanwhile is left out, as ``remove`` would do.
        """
        db = self._db
        with db.write():
            gone = redaction.removed_blocks(db, answer)
            if gone:
                answer, ledger = answers.without_blocks(answer, gone), ()
            turn_id = self._insert_turn(conversation_id, question, answer, ledger, tokenizer_id)
        return Turn(turn_id, question, answer)

    def _insert_turn(
        self,
        conversation_id: int,
        question: str,
        answer: Answer,
        ledger: Sequence[Segment],
        tokenizer_id: str,
    ) -> int:
        segments = json.dumps([[segment.kind, segment.block_id, len(segment.tokens)] for segment in ledger])
        tokens = b"".join(segment.tokens.astype("<i4").tobytes() for segment in ledger)
        blocks = {passage.block.id for passage in answer.passages}
        blocks |= {citation.block_id for citation in answer.citations}
        blocks |= {segment.block_id for segment in ledger if segment.block_id}
        blocks |= {spot.block_id for standing in answer.standings for spot in standing.stretches}
        now = time.time()
        db = self._db
        stored = answers.encode(answer)
        turn_id = db.run(
            "INSERT INTO turns (conversation_id, ordinal, question, answer, tokenizer_id, ledger_segments,"
            " ledger_tokens, created_at) SELECT ?, coalesce(max(ordinal) + 1, 0), ?, ?, ?, ?, ?, ?"
            " FROM turns WHERE conversation_id = ?",
            [conversation_id, question, stored, tokenizer_id, segments, tokens, now, conversation_id],
        )
        db.run_many("INSERT INTO turn_blocks VALUES (?, ?)", ((turn_id, block_id) for block_id in blocks))
        db.run("UPDATE conversations SET updated_at = ? WHERE id = ?", [now, conversation_id])
        return turn_id

    def ledger(self, conversation_id: int) -> tuple[tuple[str, tuple[Segment, ...]], ...]:
        """Of each turn, in order: which tokenizer made its tokens, and its segments.

        No segments: a document it quoted was removed; render it from its question and answer.
        """
        rows = self._db.rows(
            "SELECT tokenizer_id, ledger_segments, ledger_tokens FROM turns WHERE conversation_id = ?"
            " ORDER BY ordinal",
            [conversation_id],
        )
        return tuple((tokenizer_id, _segments(segments, blob)) for tokenizer_id, segments, blob in rows)

    def given(self, conversation_id: int) -> dict[str, int]:
        """Of each block in the conversation's prompt so far: the id of the turn that put it there. One of
        which only a part was read is not there.
        """
        rows = self._db.rows(
            "SELECT id, ledger_segments FROM turns WHERE conversation_id = ? ORDER BY ordinal",
            [conversation_id],
        )
        given: dict[str, int] = {}
        for turn_id, stored in rows:
            segments = json.loads(stored)
            if segments and segments[0][0] == SegmentKind.HEAD:
                given.clear()  # a new branch: what stood before it was set aside
            for kind, block_id, _ in segments:
                if kind == SegmentKind.BLOCK:
                    given.setdefault(block_id, turn_id)
        return given

    def delete(self, conversation_id: int) -> None:
        """Delete a conversation with all its turns, from the disk as well."""
        with self._db.write():
            self._db.run("DELETE FROM conversations WHERE id = ?", [conversation_id])
        self._db.forget_deleted()


def _segments(stored: str, blob: bytes) -> tuple[Segment, ...]:
    tokens = np.frombuffer(blob, dtype="<i4").astype(np.int32)
    segments = []
    at = 0
    for kind, block_id, n_tokens in json.loads(stored):
        segments.append(Segment(SegmentKind(kind), tokens[at : at + n_tokens], block_id))
        at += n_tokens
    return tuple(segments)
