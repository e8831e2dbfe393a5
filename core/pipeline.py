"""One question from its passages to its stored answer: the whole flow on one screen.

``answer`` is a generator of events. It needs neither threads nor Qt; whoever runs it owns the engine.
"""

import codecs
import time
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from core.citations import cite
from core.draft import Draft, draft, explain, n_on_disk
from core.engine.prefix_cache import PrefillStep
from core.engine.protocol import CancelFlag
from core.engine.sampling import Sampler, repeats_itself, repeats_lines
from core.errors import Cancelled
from core.standing import standings
from core.types import (
    Answer,
    AnswerDone,
    AnswerText,
    ChunkView,
    Context,
    Event,
    FinishReason,
    MissReason,
    Passage,
    PrefillProgress,
    Question,
    RequestMetrics,
    SegmentKind,
    Tier,
)
from core.workbench import Workbench

_TITLE_LENGTH = 60


def answer(
    bench: Workbench,
    ticket: int,
    question: Question,
    context: Context,
    cancel: CancelFlag,
    *,
    waiting: Sequence[Context] = (),
) -> Iterator[Event]:
    """Answer one question: plan, prefill, stream, store. The last event is AnswerDone.

    ``waiting``: the passages of questions that are known to come next, for the order of this one's.

    A new conversation is created with its first answer. Raises Cancelled while nothing was said yet,
    PromptTooLong, KnownError for a conversation that was deleted, EngineError. A question that is stopped
    in the middle of its answer ends with AnswerDone and what was said.
    """
    started = time.perf_counter()
    made = draft(bench, question, context, waiting)
    views = _views(made)
    located = bench.cache.locate(made.prompt, len(views) - 1)  # the last chunk is always computed
    reason, detail = _why_missing(bench, made, views, len(located))
    made.reasons += explain(bench, made)
    planned = time.perf_counter()

    reading = _Reading(bench, ticket, made, views, located)
    yield reading.progress()
    for step in bench.cache.prefill(made.prompt, cancel, n_on_disk=n_on_disk(bench, made.prompt, made.place)):
        reading.add(step)
        yield reading.progress()

    said: list[int] = []
    pieces: list[str] = []
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    finish = FinishReason.LENGTH
    first_token = time.perf_counter()
    try:
        for token in _sample(bench, question, cancel):
            if not said:
                first_token = time.perf_counter()
            said.append(token)
            if text := decoder.decode(bench.engine.token_bytes(token)):
                pieces.append(text)
                yield AnswerText(ticket, text)
            bench.cache.tend()  # save what was read, a chunk at a time, now that the first word is there
            if repeats_itself(said) or ("\n" in text and repeats_lines("".join(pieces))):
                finish = FinishReason.REPETITION
                break
        else:
            if len(said) < question.max_tokens:
                finish = FinishReason.STOP
    except Cancelled:
        if not said:
            raise
        finish = FinishReason.CANCELLED
    if text := decoder.decode(b"", final=True):
        pieces.append(text)
        yield AnswerText(ticket, text)
    decode_s = time.perf_counter() - first_token

    metrics = replace(
        reading.metrics(),
        n_deduplicated_tokens=made.plan.n_deduplicated_tokens,
        n_answer_tokens=len(said),
        retrieve_ms=context.retrieve_ms,
        plan_ms=(planned - started) * 1000,
        ttft_ms=(first_token - started) * 1000,
        decode_tokens_per_s=(len(said) - 1) / decode_s if len(said) > 1 else 0.0,
        miss_reason=reason,
        miss_detail=detail,
    )
    turn_text = "".join(pieces).strip()
    citations, sentences = cite(
        question.text, turn_text, made.plan.quotable, cut_off=finish is not FinishReason.STOP
    )
    result = Answer(
        text=turn_text,
        citations=citations,
        sentences=sentences,
        passages=_shown(made.plan.passages, made.plan.quotable, {one.block_id for one in citations}),
        n_found=context.n_found,
        finish=finish,
        metrics=metrics,
        chunks=tuple(views),
        notes=tuple(_notes(made, context, finish, turn_text)),
        plan=tuple(made.reasons),
        standings=standings(bench, question.conversation_id, made.plan),
    )
    ledger = (*made.added, bench.writer.answer(said))
    if made.is_new_branch:
        ledger = (*made.branch, *ledger)
    with bench.db.write():
        conversation_id = question.conversation_id
        if conversation_id is None:
            conversation_id = bench.conversations.create(_title(question.text))
        bench.conversations.set_cache_place(conversation_id, made.place)
        turn = bench.conversations.append_turn(
            conversation_id, question.text, result, ledger, bench.engine.tokenizer_id
        )
        bench.metrics.record(metrics, turn.id)
    bench.learn_order(made.plan, made.place.namespace)
    yield AnswerDone(ticket, turn, conversation_id)


class _Reading:
    """What became live, chunk by chunk: the engine's own counts of one prompt."""

    def __init__(
        self, bench: Workbench, ticket: int, made: Draft, views: list[ChunkView], located: Sequence[Tier]
    ) -> None:
        self._bench = bench
        self._ticket = ticket
        self._made = made
        self._views = views
        self._expected_cached = sum(view.n_tokens for view in views[: len(located)])
        n_live = sum(tier is Tier.LIVE for tier in located)
        self._views[:n_live] = [replace(view, tier=Tier.LIVE) for view in views[:n_live]]
        self._seconds = dict.fromkeys((Tier.RAM, Tier.SSD, Tier.PREFILLED), 0.0)
        self._riding = made.riding_chunks()
        self._saved_s = sum(
            cost for index, cost in enumerate(bench.cache.live_costs(n_live)) if index not in self._riding
        )

    def add(self, step: PrefillStep) -> None:
        self._views[step.chunk] = replace(self._views[step.chunk], tier=step.tier)
        self._seconds[step.tier] += step.seconds
        self._saved_s += 0.0 if step.chunk in self._riding else step.saved_s
        if step.tier is Tier.PREFILLED:
            self._expected_cached = self._count(Tier.LIVE, Tier.RAM, Tier.SSD)

    def progress(self) -> PrefillProgress:
        n_prefilled = self._count(Tier.PREFILLED)
        seconds = self._seconds[Tier.PREFILLED]
        return PrefillProgress(
            self._ticket,
            tuple(self._views),
            self._made.prompt.n_tokens,
            self._expected_cached,
            n_prefilled,
            self._made.plan.n_deduplicated_tokens,
            seconds,
            n_prefilled / seconds if seconds else 0.0,
        )

    def metrics(self) -> RequestMetrics:
        """Counts and times of the whole prompt, once every chunk is live."""
        progress = self.progress()
        restore_s = self._seconds[Tier.RAM] + self._seconds[Tier.SSD]
        cached = (Tier.LIVE, Tier.RAM, Tier.SSD)
        n_riding = sum(self._views[i].n_tokens for i in self._riding if self._views[i].tier in cached)
        return RequestMetrics(
            n_prompt_tokens=progress.n_prompt_tokens,
            n_rider_tokens=n_riding,
            n_live_tokens=self._count(Tier.LIVE),
            n_ram_tokens=self._count(Tier.RAM),
            n_ssd_tokens=self._count(Tier.SSD),
            n_prefilled_tokens=progress.n_prefilled_tokens,
            hit_ratio=(self._count(*cached) - n_riding) / (progress.n_prompt_tokens - n_riding),
            restore_ms=restore_s * 1000,
            prefill_ms=progress.prefill_s * 1000,
            prefill_tokens_per_s=progress.tokens_per_s,
            saved_ms=max(0.0, self._saved_s - restore_s) * 1000,
        )

    def _count(self, *tiers: Tier) -> int:
        return sum(view.n_tokens for view in self._views if view.tier in tiers)


def _sample(bench: Workbench, question: Question, cancel: CancelFlag) -> Iterator[int]:
    """The answer's tokens; ends at an end token or at ``max_tokens``, for which the draft left room."""
    sampler = Sampler(question.sampling)
    for n in range(question.max_tokens):
        token = sampler.pick(bench.engine.logits())
        if bench.engine.is_end(token):
            return
        yield token
        if n + 1 < question.max_tokens:
            bench.cache.decode(token, cancel)


def _why_missing(
    bench: Workbench, made: Draft, views: Sequence[ChunkView], kept: int
) -> tuple[MissReason, str]:
    """Why the first chunk that must be prefilled is not cached; asked before anything is cut."""
    segment = made.prompt.segments[made.prompt.chunks[kept].segment]
    if segment.kind is SegmentKind.ASK and kept == len(views) - 1:
        return MissReason.NEW_QUESTION, ""
    if segment.kind is SegmentKind.ANSWER:
        return MissReason.ANSWER_PENDING, ""
    reason = bench.index.why_missing(segment.element, made.prompt.chunks[0].parent)
    if reason is MissReason.NEVER_SEEN and segment.kind is SegmentKind.BLOCK:
        if bench.cache.is_of_another_model(segment.block_id):
            reason = MissReason.MODEL_CHANGED
        elif bench.documents.was_edited(segment.block_id):
            reason = MissReason.DOCUMENT_EDITED
    return reason, views[kept].label


def _views(made: Draft) -> list[ChunkView]:
    names = {passage.block.id: place_in_words(passage) for passage in made.plan.quotable}
    words = {
        SegmentKind.HEAD: "instructions",
        SegmentKind.BLOCK: "earlier passage",
        SegmentKind.EXCERPT: "part of an earlier passage",
        SegmentKind.ASK: "earlier question",
        SegmentKind.ANSWER: "earlier answer",
    }
    views = []
    last = len(made.prompt.segments) - 1
    for chunk in made.prompt.chunks:
        segment = made.prompt.segments[chunk.segment]
        label = "question" if chunk.segment == last else names.get(segment.block_id, words[segment.kind])
        views.append(ChunkView(label, len(chunk.tokens), Tier.PENDING))
    return views


def _shown(
    passages: Sequence[Passage], quotable: Sequence[Passage], cited: AbstractSet[str]
) -> tuple[Passage, ...]:
    """The passages of an answer, and behind them what else of a whole document it cites."""
    shown = {passage.block.id for passage in passages}
    more = [one for one in quotable if one.block.id in cited - shown]
    return (*passages, *more)


def place_in_words(passage: Passage) -> str:
    """``contract-b.pdf, p. 4``."""
    place = passage.place
    return f"{place.title}, p. {place.page}" if place.page else place.title


def _notes(made: Draft, context: Context, finish: FinishReason, text: str) -> list[str]:
    notes = list(made.notes)
    if made.plan.is_whole:
        notes.append("All of the text was read, not only the passages found.")
    elif not context.passages:
        notes.append("No passage was found: this answer does not come from your documents.")
    elif context.is_opening:
        notes.append("No passage holds the words of the question; the beginnings of the documents were read.")
    elif len(made.plan.passages) < context.n_found:
        notes.append(f"{len(made.plan.passages)} of {context.n_found} passages used.")
    if made.plan.n_left_out:
        notes.append("Some passages did not fit into the model's context.")
    if not text:
        notes.append("The model gave no answer; the passages found are beside it.")
    if finish is FinishReason.LENGTH:
        notes.append("The answer was cut at its length limit.")
    elif finish is FinishReason.REPETITION:
        notes.append("The model began to repeat itself and was stopped.")
    elif finish is FinishReason.CANCELLED:
        notes.append("Stopped; what was said is kept.")
    return notes


def _title(question: str) -> str:
    words = " ".join(question.split())
    return words if len(words) <= _TITLE_LENGTH else words[: _TITLE_LENGTH - 1] + "…"
