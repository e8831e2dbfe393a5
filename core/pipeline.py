"""One question from its passages to its stored answer: the whole flow on one screen.

``answer`` is a generator of events. It needs neither threads nor Qt; whoever runs it owns the engine.
"""

import codecs
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from core import plan as planning
from core.citations import cite
from core.engine.chat_format import chat_format
from core.engine.prefix_cache import PrefixCache, root_key
from core.engine.protocol import CancelFlag, Engine
from core.engine.sampling import Sampler
from core.errors import Cancelled, PromptTooLong
from core.index import ContextIndex
from core.prompt import PromptWriter, end_key, lay_out
from core.store.conversations import ConversationStore
from core.store.database import Database
from core.store.metrics import MetricsStore
from core.store.token_cache import TokenCache
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
    Prompt,
    Question,
    RequestMetrics,
    Segment,
    SegmentKind,
    Tier,
)

_RATE_MIN_TOKENS = 128
"""Shorter chunks run slower than the long ones that reuse saves: they say nothing about saved time."""


class Workbench:
    """Everything that answering needs, owned by the engine thread."""

    def __init__(self, engine: Engine, db: Database) -> None:
        self.engine = engine
        root = root_key(engine.fingerprint)
        self.index = ContextIndex(root)
        self.cache = PrefixCache(engine, root, self.index.apply)
        chat = chat_format(engine.chat_template, engine.token_text("bos"), engine.token_text("eos"))
        self.writer = PromptWriter(engine, chat)
        self.tokens = TokenCache(db)
        self.conversations = ConversationStore(db)
        self.metrics = MetricsStore(db)
        self.prefill_tokens_per_s = 0.0
        """Last rate measured on a chunk of at least 128 tokens; 0 until then."""

    def segments_of(self, passages: Sequence[Passage]) -> dict[str, Segment]:
        """Tokenized blocks by id; a block is tokenized once and then kept in the database."""
        blocks = {passage.block.id: passage.block for passage in passages}
        known = self.tokens.get(list(blocks), self.engine.tokenizer_id)
        fresh = {id_: self.writer.block_tokens(block) for id_, block in blocks.items() if id_ not in known}
        if fresh:
            self.tokens.put(fresh, self.engine.tokenizer_id)
        return {id_: self.writer.block(block, (known | fresh)[id_]) for id_, block in blocks.items()}


@dataclass(slots=True)
class _Draft:
    """A prompt that fits, and how it came about."""

    plan: planning.Plan
    branch: tuple[Segment, ...]
    """Segments that stand before this question."""
    added: tuple[Segment, ...]
    """Segments that this question adds."""
    prompt: Prompt
    compacted: bool = False
    notes: list[str] = field(default_factory=list)


def answer(
    bench: Workbench,
    ticket: int,
    question: Question,
    conversation_id: int,
    context: Context,
    cancel: CancelFlag,
) -> Iterator[Event]:
    """Answer one question: plan, prefill, stream, store. The last event is AnswerDone.

    Raises Cancelled while nothing was said yet, PromptTooLong, EngineError. A question that is stopped
    in the middle of its answer ends with AnswerDone and what was said.
    """
    started = time.perf_counter()
    draft = _draft(bench, question, conversation_id, context)
    planned = time.perf_counter()

    views = _views(draft, context.passages)
    kept = min(bench.cache.n_cached_chunks(draft.prompt), len(views) - 1)
    reason, detail = _why_missing(bench, draft, views, kept)
    for i in range(kept):
        views[i] = replace(views[i], tier=Tier.LIVE)
    n_live = sum(len(chunk.tokens) for chunk in draft.prompt.chunks[:kept])
    progress = PrefillProgress(
        ticket, tuple(views), draft.prompt.n_tokens, n_live, 0, draft.plan.n_deduplicated_tokens, 0.0, 0.0
    )
    yield progress
    for step in bench.cache.prefill(draft.prompt, cancel):
        n = len(draft.prompt.chunks[step.chunk].tokens)
        views[step.chunk] = replace(views[step.chunk], tier=Tier.PREFILLED)
        n_done = progress.n_prefilled_tokens + n
        prefill_s = progress.prefill_s + step.seconds
        if n >= _RATE_MIN_TOKENS:
            bench.prefill_tokens_per_s = n / step.seconds
        progress = replace(
            progress, chunks=tuple(views), n_prefilled_tokens=n_done, prefill_s=prefill_s,
            tokens_per_s=n_done / prefill_s,
        )  # fmt: skip
        yield progress

    said: list[int] = []
    pieces: list[str] = []
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    finish = FinishReason.LENGTH
    decode_started = first_token = time.perf_counter()
    try:
        for token in _sample(bench, question, cancel):
            if not said:
                first_token = time.perf_counter()
            said.append(token)
            if text := decoder.decode(bench.engine.token_bytes(token)):
                pieces.append(text)
                yield AnswerText(ticket, text)
        if len(said) < question.max_tokens:
            finish = FinishReason.STOP
    except Cancelled:
        if not said:
            raise
        finish = FinishReason.CANCELLED
    if text := decoder.decode(b"", final=True):
        pieces.append(text)
        yield AnswerText(ticket, text)
    decode_s = time.perf_counter() - decode_started

    metrics = RequestMetrics(
        n_prompt_tokens=draft.prompt.n_tokens,
        n_live_tokens=n_live,
        n_prefilled_tokens=progress.n_prefilled_tokens,
        n_deduplicated_tokens=draft.plan.n_deduplicated_tokens,
        n_answer_tokens=len(said),
        hit_ratio=n_live / draft.prompt.n_tokens,
        retrieve_ms=context.retrieve_ms,
        plan_ms=(planned - started) * 1000,
        prefill_ms=progress.prefill_s * 1000,
        ttft_ms=(first_token - started) * 1000,
        decode_tokens_per_s=len(said) / decode_s if said else 0.0,
        prefill_tokens_per_s=bench.prefill_tokens_per_s or progress.tokens_per_s,
        miss_reason=reason,
        miss_detail=detail,
    )
    turn_text = "".join(pieces).strip()
    citations, sentences = cite(question.text, turn_text, draft.plan.passages)
    result = Answer(
        text=turn_text,
        citations=citations,
        sentences=sentences,
        passages=draft.plan.passages,
        n_found=context.n_found,
        finish=finish,
        metrics=metrics,
        chunks=tuple(views),
        notes=tuple(_notes(draft, context, finish, turn_text)),
    )
    ledger = (*draft.added, bench.writer.answer(said))
    if draft.compacted or not bench.conversations.turns(conversation_id):
        ledger = (*draft.branch, *ledger)
    turn = bench.conversations.append_turn(
        conversation_id, question.text, result, ledger, bench.engine.tokenizer_id
    )
    bench.metrics.record(metrics, turn.id)
    yield AnswerDone(ticket, turn, conversation_id)


def settle(bench: Workbench, conversation_id: int, cancel: CancelFlag) -> None:
    """Read the finished answer again as canonical chunks while the user reads it.

    KV made token by token is not what prefilling gives, so the next turn cannot build on it. What is not
    settled when the next question comes is prefilled with it. Raises Cancelled.
    """
    segments, _ = _branch(bench, conversation_id)
    prompt = lay_out(segments, bench.cache.root)
    if prompt.n_tokens <= bench.engine.n_ctx:
        for _step in bench.cache.prefill(prompt, cancel, logits=False):
            pass


def _branch(bench: Workbench, conversation_id: int) -> tuple[tuple[Segment, ...], bool]:
    """The conversation's prompt so far, and whether it had to be rendered anew (a new branch).

    A turn whose ledger begins with a head starts a branch: what stood before it was set aside. A ledger
    that is gone (its document was removed) or of another model is rendered from the turns' text.
    """
    ledgers = bench.conversations.ledger(conversation_id)
    if not ledgers:
        return (bench.writer.head(),), False
    segments: list[Segment] = []
    for tokenizer_id, ledger in ledgers:
        if tokenizer_id != bench.engine.tokenizer_id or not ledger:
            turns = bench.conversations.turns(conversation_id)
            return bench.writer.history_from_text((t.question, t.answer.text) for t in turns), True
        if ledger[0].kind is SegmentKind.HEAD:
            segments.clear()
        segments += ledger
    return tuple(segments), False


def _draft(bench: Workbench, question: Question, conversation_id: int, context: Context) -> _Draft:
    """A plan and prompt that leave room for the answer: passages give way first, then old turns."""
    branch, compacted = _branch(bench, conversation_id)
    limit = bench.engine.n_ctx - question.max_tokens
    ask = len(bench.writer.ask("", question.text).tokens)
    segments = bench.segments_of(context.passages)
    wanted = sum(len(segment.tokens) for segment in segments.values())
    set_aside = False
    if _n_tokens(branch) + ask + min(wanted, limit // 3) > limit and len(branch) > 1:
        branch = _compacted(bench, conversation_id, limit // 2 - ask)
        compacted = set_aside = True
    fixed = _n_tokens(branch)
    if fixed + ask > limit:
        raise PromptTooLong(
            f"The question does not fit: it has {ask:,} tokens, the model reads {bench.engine.n_ctx:,} "
            f"with {question.max_tokens:,} kept for the answer.",
            hint="Shorten it, or choose a larger n_ctx in the settings.",
        )
    held = {segment.block_id for segment in branch if segment.block_id}
    after = end_key(branch, bench.cache.root)
    room = limit - fixed - ask
    while True:
        plan = planning.make(planning.PlanRequest(context, segments, held, after, room), bench.index)
        added = (
            *(segments[block.id] for block in plan.blocks),
            bench.writer.ask(plan.annotation, question.text),
        )
        over = fixed + _n_tokens(added) - limit
        if over <= 0:
            break
        if not plan.blocks:  # not even the annotation fits: the question alone does
            added = (bench.writer.ask("", question.text),)
            break
        room -= over
    draft = _Draft(plan, branch, added, lay_out((*branch, *added), bench.cache.root), compacted)
    if set_aside:
        draft.notes.append("Earlier passages and turns were set aside to make room.")
    elif compacted:
        draft.notes.append("The conversation was read anew: its model or one of its documents has changed.")
    return draft


def _compacted(bench: Workbench, conversation_id: int, room: int) -> tuple[Segment, ...]:
    """A new branch: head and as many of the latest turns as fit ``room`` tokens, without passages."""
    turns = [(turn.question, turn.answer.text) for turn in bench.conversations.turns(conversation_id)]
    for first in range(len(turns) + 1):
        branch = bench.writer.history_from_text(turns[first:])
        if _n_tokens(branch) <= room:
            return branch
    return (bench.writer.head(),)


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
    bench: Workbench, draft: _Draft, views: Sequence[ChunkView], kept: int
) -> tuple[MissReason, str]:
    """Why the first chunk that must be prefilled is not cached; asked before anything is cut."""
    segment = draft.prompt.segments[draft.prompt.chunks[kept].segment]
    if segment.kind is SegmentKind.ASK and kept == len(views) - 1:
        return MissReason.NEW_QUESTION, ""
    if segment.kind is SegmentKind.ANSWER:
        return MissReason.ANSWER_PENDING, ""
    return bench.index.why_missing(segment.element), views[kept].label


def _views(draft: _Draft, passages: Sequence[Passage]) -> list[ChunkView]:
    names = {passage.block.id: place_in_words(passage) for passage in passages}
    words = {
        SegmentKind.HEAD: "instructions",
        SegmentKind.BLOCK: "earlier passage",
        SegmentKind.ASK: "earlier question",
        SegmentKind.ANSWER: "earlier answer",
    }
    views = []
    last = len(draft.prompt.segments) - 1
    for chunk in draft.prompt.chunks:
        segment = draft.prompt.segments[chunk.segment]
        label = "question" if chunk.segment == last else names.get(segment.block_id, words[segment.kind])
        views.append(ChunkView(label, len(chunk.tokens), Tier.PENDING))
    return views


def place_in_words(passage: Passage) -> str:
    """``contract-b.pdf, p. 4``."""
    place = passage.place
    return f"{place.title}, p. {place.page}" if place.page else place.title


def _notes(draft: _Draft, context: Context, finish: FinishReason, text: str) -> list[str]:
    notes = list(draft.notes)
    if not context.passages:
        notes.append("No passage was found: this answer does not come from your documents.")
    elif context.is_opening:
        notes.append("No passage holds the words of the question; the beginnings of the documents were read.")
    elif len(draft.plan.passages) < context.n_found:
        notes.append(f"{len(draft.plan.passages)} of {context.n_found} passages used.")
    if draft.plan.n_left_out:
        notes.append("Some passages did not fit into the model's context.")
    if not text:
        notes.append("The model gave no answer; the passages found are beside it.")
    if finish is FinishReason.LENGTH:
        notes.append("The answer was cut at its length limit.")
    elif finish is FinishReason.CANCELLED:
        notes.append("Stopped; what was said is kept.")
    return notes


def _n_tokens(segments: Sequence[Segment]) -> int:
    return sum(len(segment.tokens) for segment in segments)
