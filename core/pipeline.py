"""One question from its passages to its stored answer: the whole flow on one screen.

``answer`` is a generator of events. It needs neither threads nor Qt; whoever runs it owns the engine.
"""

import codecs
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from core import plan as planning
from core.citations import cite
from core.engine.chat_format import PLAIN, chat_format
from core.engine.prefix_cache import PrefillStep, PrefixCache, root_key
from core.engine.protocol import CancelFlag, Engine
from core.engine.sampling import Sampler, repeats_itself, repeats_lines
from core.engine.ssd_tier import SsdTier
from core.errors import Cancelled, KnownError, PromptTooLong, StoreError
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
    Tokens,
)

_log = logging.getLogger(__name__)
_TITLE_LENGTH = 60
_NO_TEMPLATE = (
    "The chat template in this model's file cannot be used: questions reach it as plain text, and answers "
    "may be poor."
)


class Workbench:
    """Everything that answering needs, owned by the engine thread."""

    def __init__(
        self, engine: Engine, db: Database, *, ram_budget: int = 0, ssd: SsdTier | None = None
    ) -> None:
        """``ram_budget`` in bytes; without ``ssd`` nothing outlives the program."""
        self.engine = engine
        self.db = db
        self.ram_budget = ram_budget
        root = root_key(engine.fingerprint)
        self.index = ContextIndex(root)
        self.cache = PrefixCache(engine, root, self.index.apply, ram_budget=ram_budget, ssd=ssd)
        chat = chat_format(engine.chat_template, engine.token_text("bos"), engine.token_text("eos"))
        self.info = engine.info
        if engine.chat_template and chat is PLAIN:
            self.info = replace(engine.info, note=_NO_TEMPLATE)
        self.writer = PromptWriter(engine, chat)
        self.conversations = ConversationStore(db)
        self.metrics = MetricsStore(db)
        self._tokens = TokenCache(db)
        self._fresh_tokens: dict[str, Tokens] = {}

    def segments_of(self, passages: Sequence[Passage]) -> dict[str, Segment]:
        """Tokenized blocks by id; a block is tokenized once and then kept in the database."""
        blocks = {passage.block.id: passage.block for passage in passages}
        known = self._fresh_tokens | self._tokens.get(list(blocks), self.engine.tokenizer_id)
        for id_, block in blocks.items():
            if id_ not in known:
                known[id_] = self._fresh_tokens[id_] = self.writer.block_tokens(block)
        return {id_: self.writer.block(block, known[id_]) for id_, block in blocks.items()}

    def keep_tokens(self) -> None:
        """Store what was tokenized since the last call; nobody waits for it, and losing it costs little."""
        fresh, self._fresh_tokens = self._fresh_tokens, {}
        try:
            if fresh:
                self._tokens.put(fresh, self.engine.tokenizer_id)
        except StoreError:
            _log.warning("tokens were not stored", exc_info=True)


@dataclass(slots=True)
class _Draft:
    """A prompt that fits, and how it came about."""

    plan: planning.Plan
    branch: tuple[Segment, ...]
    """Segments that stand before this question."""
    added: tuple[Segment, ...]
    """Segments that this question adds."""
    prompt: Prompt
    is_new_branch: bool
    """The turn is stored with its branch: nothing before it is continued."""
    notes: list[str]


def answer(
    bench: Workbench, ticket: int, question: Question, context: Context, cancel: CancelFlag
) -> Iterator[Event]:
    """Answer one question: plan, prefill, stream, store. The last event is AnswerDone.

    A new conversation is created with its first answer. Raises Cancelled while nothing was said yet,
    PromptTooLong, KnownError for a conversation that was deleted, EngineError. A question that is stopped
    in the middle of its answer ends with AnswerDone and what was said.
    """
    started = time.perf_counter()
    draft = _draft(bench, question, context)
    views = _views(draft, context.passages)
    located = bench.cache.locate(draft.prompt)[: len(views) - 1]  # the last chunk is always computed
    reason, detail = _why_missing(bench, draft, views, len(located))
    planned = time.perf_counter()

    reading = _Reading(bench, ticket, draft, views, located)
    yield reading.progress()
    for step in bench.cache.prefill(draft.prompt, cancel):
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
        n_deduplicated_tokens=draft.plan.n_deduplicated_tokens,
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
        question.text, turn_text, draft.plan.passages, cut_off=finish is not FinishReason.STOP
    )
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
    if draft.is_new_branch:
        ledger = (*draft.branch, *ledger)
    with bench.db.write():
        conversation_id = question.conversation_id
        if conversation_id is None:
            conversation_id = bench.conversations.create(_title(question.text))
        turn = bench.conversations.append_turn(
            conversation_id, question.text, result, ledger, bench.engine.tokenizer_id
        )
        bench.metrics.record(metrics, turn.id)
    yield AnswerDone(ticket, turn, conversation_id)


class _Reading:
    """What became live, chunk by chunk: the engine's own counts of one prompt."""

    def __init__(
        self, bench: Workbench, ticket: int, draft: _Draft, views: list[ChunkView], located: Sequence[Tier]
    ) -> None:
        self._bench = bench
        self._ticket = ticket
        self._draft = draft
        self._views = views
        self._expected_cached = sum(view.n_tokens for view in views[: len(located)])
        n_live = sum(tier is Tier.LIVE for tier in located)
        self._views[:n_live] = [replace(view, tier=Tier.LIVE) for view in views[:n_live]]
        self._seconds = dict.fromkeys((Tier.RAM, Tier.SSD, Tier.PREFILLED), 0.0)
        self._saved_s = bench.cache.live_cost(n_live)

    def add(self, step: PrefillStep) -> None:
        self._views[step.chunk] = replace(self._views[step.chunk], tier=step.tier)
        self._seconds[step.tier] += step.seconds
        self._saved_s += step.saved_s
        if step.tier is Tier.PREFILLED:
            self._expected_cached = self._count(Tier.LIVE, Tier.RAM, Tier.SSD)

    def progress(self) -> PrefillProgress:
        n_prefilled = self._count(Tier.PREFILLED)
        seconds = self._seconds[Tier.PREFILLED]
        return PrefillProgress(
            self._ticket,
            tuple(self._views),
            self._draft.prompt.n_tokens,
            self._expected_cached,
            n_prefilled,
            self._draft.plan.n_deduplicated_tokens,
            seconds,
            n_prefilled / seconds if seconds else 0.0,
        )

    def metrics(self) -> RequestMetrics:
        """Counts and times of the whole prompt, once every chunk is live."""
        progress = self.progress()
        restore_s = self._seconds[Tier.RAM] + self._seconds[Tier.SSD]
        return RequestMetrics(
            n_prompt_tokens=progress.n_prompt_tokens,
            n_live_tokens=self._count(Tier.LIVE),
            n_ram_tokens=self._count(Tier.RAM),
            n_ssd_tokens=self._count(Tier.SSD),
            n_prefilled_tokens=progress.n_prefilled_tokens,
            hit_ratio=self._count(Tier.LIVE, Tier.RAM, Tier.SSD) / progress.n_prompt_tokens,
            restore_ms=restore_s * 1000,
            prefill_ms=progress.prefill_s * 1000,
            prefill_tokens_per_s=progress.tokens_per_s,
            saved_ms=max(0.0, self._saved_s - restore_s) * 1000,
        )

    def _count(self, *tiers: Tier) -> int:
        return sum(view.n_tokens for view in self._views if view.tier in tiers)


def warm_up(bench: Workbench, cancel: CancelFlag) -> None:
    """Before the first question: bring what was used last from SSD into RAM, and read the instructions that
    every conversation begins with. Raises Cancelled.
    """
    for _n_bytes in bench.cache.warm_up(bench.ram_budget // 2):
        if cancel.is_set():
            raise Cancelled
    if not bench.cache.n_live_tokens:
        for _step in bench.cache.prefill(
            lay_out([bench.writer.head()], bench.cache.root), cancel, logits=False
        ):
            pass


def settle(bench: Workbench, conversation_id: int, cancel: CancelFlag) -> None:
    """Read the finished answer again as canonical chunks while the user reads it, and save what is unsaved.

    KV made token by token is not what prefilling gives, so the next turn cannot build on it. What is not
    settled when the next question comes is prefilled with it. Raises Cancelled.
    """
    bench.keep_tokens()
    segments, _ = _branch(bench, conversation_id)
    prompt = lay_out(segments, bench.cache.root)
    if prompt.n_tokens <= bench.engine.n_ctx:
        for _step in bench.cache.prefill(prompt, cancel, logits=False):
            pass
    while not cancel.is_set() and bench.cache.tend():
        pass


def _branch(bench: Workbench, conversation_id: int | None) -> tuple[tuple[Segment, ...], bool]:
    """The conversation's prompt so far, and whether it is a new branch.

    A turn whose ledger begins with a head starts a branch: what stood before it was set aside. If a ledger
    since then is gone (its document was removed) or of another model, the turns' text is rendered anew.
    """
    if conversation_id is None:
        return (bench.writer.head(),), True
    ledgers = bench.conversations.ledger(conversation_id)
    if not ledgers:
        raise KnownError("This conversation was deleted.", hint="Start a new one.")
    heads = [n for n, (_, ledger) in enumerate(ledgers) if ledger and ledger[0].kind is SegmentKind.HEAD]
    current = ledgers[heads[-1] :] if heads else ledgers
    if all(ledger and tokenizer == bench.engine.tokenizer_id for tokenizer, ledger in current):
        return tuple(segment for _, ledger in current for segment in ledger), False
    turns = bench.conversations.turns(conversation_id)
    return bench.writer.history_from_text((t.question, t.answer.text) for t in turns), True


def _draft(bench: Workbench, question: Question, context: Context) -> _Draft:
    """A plan and prompt that leave room for the answer: passages give way first, then old turns."""
    branch, is_new_branch = _branch(bench, question.conversation_id)
    notes = []
    if is_new_branch and question.conversation_id is not None:
        notes.append("The conversation was read anew: its model or one of its documents has changed.")
    limit = bench.engine.n_ctx - question.max_tokens
    ask = len(bench.writer.ask("", question.text).tokens)
    segments = bench.segments_of(context.passages)
    held = {segment.block_id for segment in branch if segment.block_id}
    wanted = sum(len(segment.tokens) for id_, segment in segments.items() if id_ not in held)
    if _n_tokens(branch) + ask + min(wanted, limit // 3) > limit and question.conversation_id is not None:
        branch = _compacted(bench, question.conversation_id, limit // 2 - ask)
        held = set()
        is_new_branch = True
        notes = ["Earlier passages and turns were set aside to make room."]
    fixed = _n_tokens(branch)
    if fixed + ask > limit:
        raise PromptTooLong(
            f"The question does not fit: it has {ask:,} tokens, the model reads {bench.engine.n_ctx:,} "
            f"with {question.max_tokens:,} kept for the answer.",
            hint="Shorten it, or choose a larger n_ctx or a shorter answer in the settings.",
        )
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
    prompt = lay_out((*branch, *added), bench.cache.root)
    return _Draft(plan, branch, added, prompt, is_new_branch, notes)


def _compacted(bench: Workbench, conversation_id: int, room: int) -> tuple[Segment, ...]:
    """A new branch: head and as many of the latest turns as fit ``room`` tokens, without passages."""
    head = bench.writer.head()
    room -= len(head.tokens)
    kept: list[Segment] = []
    for turn in reversed(bench.conversations.turns(conversation_id)):
        pair = bench.writer.turn_from_text(turn.question, turn.answer.text)
        room -= _n_tokens(pair)
        if room < 0:
            break
        kept[:0] = pair
    return (head, *kept)


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
    elif finish is FinishReason.REPETITION:
        notes.append("The model began to repeat itself and was stopped.")
    elif finish is FinishReason.CANCELLED:
        notes.append("Stopped; what was said is kept.")
    return notes


def _title(question: str) -> str:
    words = " ".join(question.split())
    return words if len(words) <= _TITLE_LENGTH else words[: _TITLE_LENGTH - 1] + "…"


def _n_tokens(segments: Sequence[Segment]) -> int:
    return sum(len(segment.tokens) for segment in segments)
