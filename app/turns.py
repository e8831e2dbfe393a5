"""What the chat page shows, without Qt: turns, and how events change them."""

from dataclasses import dataclass, replace
from enum import StrEnum
from time import monotonic
from typing import Final

from core.types import (
    Answer,
    AnswerDone,
    AnswerText,
    ChunkView,
    Passage,
    PrefillProgress,
    QuestionFailed,
    RequestMetrics,
    SessionTotals,
    SourcesFound,
    Standing,
    TicketEvent,
    Tier,
    Turn,
)

MOST_AHEAD: Final = 0.95
"""A chunk that is being read is never shown as read before the engine says so."""


class Phase(StrEnum):
    WAITING = "waiting"
    READING = "reading"
    ANSWERING = "answering"
    DONE = "done"
    FAILED = "failed"


@dataclass(slots=True, eq=False)
class TurnState:
    """One question on the screen and everything known about its answer so far."""

    question: str
    conversation_id: int | None = None
    ticket: int | None = None
    phase: Phase = Phase.WAITING
    passages: tuple[Passage, ...] = ()
    progress: PrefillProgress | None = None
    heard_at_s: float = 0.0
    """When ``progress`` came, on the monotonic clock."""
    text: str = ""
    answer: Answer | None = None
    failure: QuestionFailed | None = None
    sources_open: bool = False
    """All chips are shown, not the first three alone."""
    searched: bool = False
    """The search is over, whatever it found."""
    stopping: bool = False
    loading: bool = False
    """The model is still loading; the answer follows when it has."""
    turn_id: int | None = None
    """None until it is answered and stored."""

    @staticmethod
    def of(turn: Turn, conversation_id: int) -> "TurnState":
        answer = turn.answer
        return TurnState(
            turn.question,
            conversation_id,
            phase=Phase.DONE,
            passages=answer.passages,
            text=answer.text,
            answer=answer,
            turn_id=turn.id,
        )

    @property
    def running(self) -> bool:
        return self.phase in (Phase.WAITING, Phase.READING, Phase.ANSWERING)

    @property
    def chunks(self) -> tuple[ChunkView, ...]:
        if self.answer is not None and self.answer.chunks:
            return self.answer.chunks
        return self.progress.chunks if self.progress is not None else ()

    @property
    def metrics(self) -> RequestMetrics | None:
        return self.answer.metrics if self.answer is not None else None

    @property
    def n_deduplicated_tokens(self) -> int:
        if self.answer is not None:
            return self.answer.metrics.n_deduplicated_tokens
        return self.progress.n_deduplicated_tokens if self.progress is not None else 0

    @property
    def live_progress(self) -> PrefillProgress | None:
        """The last progress with its clock running on, since the engine reports whole chunks alone."""
        if self.progress is None or self.phase is not Phase.READING:
            return self.progress
        return replace(self.progress, prefill_s=self.progress.prefill_s + monotonic() - self.heard_at_s)

    @property
    def n_ahead_tokens(self) -> float:
        """About how many tokens of the chunk that is being read now are read, at the measured rate."""
        if self.progress is None or self.phase is not Phase.READING:
            return 0.0
        chunk = next((one for one in self.progress.chunks if one.tier is Tier.PENDING), None)
        if chunk is None:
            return 0.0
        passed_s = monotonic() - self.heard_at_s
        return min(passed_s * self.progress.tokens_per_s, chunk.n_tokens * MOST_AHEAD)

    def number_of(self, passage: Passage) -> int:
        """The citation number of a passage in the finished answer; 0 if it is not cited."""
        if self.answer is not None:
            for citation in self.answer.citations:
                if citation.block_id == passage.block.id:
                    return citation.number
        return 0

    def standing_of(self, passage: Passage) -> Standing | None:
        """Where a passage's text is, if it does not stand whole among the passages of this turn."""
        standings = self.answer.standings if self.answer is not None else ()
        return next((one for one in standings if one.spot.block_id == passage.block.id), None)

    def apply(self, event: TicketEvent) -> None:
        """Take one event of this turn's ticket, in order."""
        match event:
            case SourcesFound():
                self.passages = event.context.passages
                self.searched = True
                self.conversation_id = event.conversation_id
            case PrefillProgress():
                self.progress = event
                self.heard_at_s = monotonic()
                self.phase = Phase.READING
            case AnswerText():
                self.text += event.text
                self.phase = Phase.ANSWERING
            case AnswerDone():
                self.answer = event.turn.answer
                self.turn_id = event.turn.id
                self.text = event.turn.answer.text
                self.passages = event.turn.answer.passages or self.passages
                self.conversation_id = event.conversation_id
                self.phase = Phase.DONE
            case QuestionFailed():
                self.failure = event
                self.phase = Phase.FAILED
            case _:
                pass


def counted(totals: SessionTotals, metrics: RequestMetrics) -> SessionTotals:
    """The session's totals with one more question."""
    return replace(
        totals,
        n_questions=totals.n_questions + 1,
        n_prompt_tokens=totals.n_prompt_tokens + metrics.n_needed_tokens,
        n_cached_tokens=totals.n_cached_tokens + metrics.n_reused_tokens,
        saved_ms=totals.saved_ms + metrics.saved_ms,
    )
