"""Answers as JSON and back. Fields that an older version did not write take their defaults."""

import dataclasses
import json
from typing import Any

from core.types import (
    Answer,
    AnswerSentence,
    Block,
    ChunkView,
    Citation,
    FinishReason,
    MissReason,
    Passage,
    Place,
    RequestMetrics,
    Tier,
)

REMOVED_NOTE = "The quoted document was removed."


def encode(answer: Answer) -> str:
    return json.dumps(dataclasses.asdict(answer), ensure_ascii=False, separators=(",", ":"))


def decode(stored: str) -> Answer:
    raw: dict[str, Any] = json.loads(stored)
    return Answer(
        text=raw["text"],
        citations=tuple(Citation(**citation) for citation in raw["citations"]),
        sentences=tuple(
            AnswerSentence(
                sentence["start"], sentence["end"], tuple(sentence["citations"]), claims=sentence["claims"]
            )
            for sentence in raw["sentences"]
        ),
        passages=tuple(_passage(passage) for passage in raw["passages"]),
        n_found=raw["n_found"],
        finish=FinishReason(raw["finish"]),
        metrics=metrics_from(raw["metrics"]),
        chunks=tuple(
            ChunkView(chunk["label"], chunk["n_tokens"], Tier(chunk["tier"])) for chunk in raw["chunks"]
        ),
        notes=tuple(raw["notes"]),
        plan=tuple(raw.get("plan", ())),
    )


def metrics_from(raw: dict[str, Any]) -> RequestMetrics:
    return RequestMetrics(**{**raw, "miss_reason": MissReason(raw["miss_reason"])})


def without_blocks(answer: Answer, gone: frozenset[str]) -> Answer:
    """The answer without the text of the blocks in ``gone``; the user's note says why."""
    passages = tuple(
        dataclasses.replace(passage, block=Block(passage.block.id, ""), quote="", quote_start=0)
        if passage.block.id in gone
        else passage
        for passage in answer.passages
    )
    citations = tuple(
        dataclasses.replace(citation, quote="") if citation.block_id in gone else citation
        for citation in answer.citations
    )
    notes = answer.notes if REMOVED_NOTE in answer.notes else (*answer.notes, REMOVED_NOTE)
    return dataclasses.replace(answer, passages=passages, citations=citations, notes=notes)


def _passage(raw: dict[str, Any]) -> Passage:
    return Passage(
        block=Block(**raw["block"]),
        places=tuple(Place(**place) for place in raw["places"]),
        score=raw["score"],
        quote=raw["quote"],
        quote_start=raw["quote_start"],
    )
