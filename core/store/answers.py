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
    Spot,
    Standing,
    Stands,
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
        standings=tuple(_standing(standing) for standing in raw.get("standings", ())),
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
    standings = tuple(_without_quotes(standing, gone) for standing in answer.standings)
    notes = answer.notes if REMOVED_NOTE in answer.notes else (*answer.notes, REMOVED_NOTE)
    return dataclasses.replace(
        answer, passages=passages, citations=citations, notes=notes, standings=standings
    )


def _without_quotes(standing: Standing, gone: frozenset[str]) -> Standing:
    """What a block shares with another one is text of both: it goes with either."""
    stretches = tuple(
        dataclasses.replace(spot, quote="") if {spot.block_id, standing.spot.block_id} & gone else spot
        for spot in standing.stretches
    )
    return dataclasses.replace(standing, stretches=stretches)


def _standing(raw: dict[str, Any]) -> Standing:
    return Standing(
        Stands(raw["how"]),
        Spot(**raw["spot"]),
        raw["turn_id"],
        tuple(Spot(**spot) for spot in raw["stretches"]),
    )


def _passage(raw: dict[str, Any]) -> Passage:
    return Passage(
        block=Block(**raw["block"]),
        places=tuple(Place(**place) for place in raw["places"]),
        score=raw["score"],
        quote=raw["quote"],
        quote_start=raw["quote_start"],
    )
