"""A question's prompt: what stands before it, what it adds, and that it fits the model's context."""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from core import first_word
from core import plan as planning
from core.errors import PromptTooLong
from core.history import branch_of, latest_turns, n_tokens
from core.metrics import count, seconds
from core.prompt import end_key, lay_out
from core.types import Block, CachePlace, Context, Passage, Prompt, Question, Scope, Segment, SegmentKind
from core.workbench import Workbench

_WHOLE_SHARE = 0.75
"""Of the model's context, so much may be documents read whole: the rest is for the turns."""
_RIDE_SHARE = 0.85
"""The same with riders: what is left is for the answer and one more question."""
_HISTORY_SHARE = 0.125
"""Of the model's context, so much stays for old turns of a new branch, whatever the passages take."""


@dataclass(slots=True)
class Draft:
    """A prompt that fits, and how it came about."""

    plan: planning.Plan
    branch: tuple[Segment, ...]
    """Segments that stand before this question."""
    added: tuple[Segment, ...]
    """Segments that this question adds."""
    prompt: Prompt
    place: CachePlace
    is_new_branch: bool
    """The turn is stored with its branch: nothing before it is continued."""
    history: tuple[Segment, ...] = ()
    """Of ``added``: old turns that stand between the passages and the question of a new branch."""
    notes: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    """Why the plan is as it is, a sentence each."""
    order_s: float = 0.0
    """Seconds that making the plan took: order, riders and their texts, references and their tokens."""

    def riding_chunks(self) -> frozenset[int]:
        """Indices of the prompt's chunks that hold riders of this question."""
        riders = {block.id for block in self.plan.riders}
        segments, first = self.prompt.segments, len(self.branch)
        return frozenset(
            index
            for index, chunk in enumerate(self.prompt.chunks)
            if chunk.segment >= first and segments[chunk.segment].block_id in riders
        )


def draft(bench: Workbench, question: Question, context: Context, waiting: Sequence[Context] = ()) -> Draft:
    """A plan and prompt that leave room for the answer.

    Where the conversation leaves too little of it for the passages found, or cannot be continued as it was
    read, a new branch begins: these passages first, where what is cached of them counts, then as many of the
    old turns as there is room for, without theirs.
    Raises KnownError for a conversation that was deleted, PromptTooLong where the question alone is.
    """
    branch, is_new_branch = branch_of(bench, question.conversation_id)
    history: tuple[Segment, ...] = ()
    notes = []
    if is_new_branch and question.conversation_id is not None:
        branch, history = branch[:1], branch[1:]
        notes.append("The conversation was read anew: its model or one of its documents has changed.")
    limit = bench.engine.n_ctx - question.max_tokens
    segments = bench.segments_of([passage.block for passage in context.passages])
    held = _held(bench, branch)
    phrases = planning.phrases_for(question.text)
    ask = _longest_ask(bench, question, context, held, phrases)
    wanted = sum(len(segment.tokens) for id_, segment in segments.items() if id_ not in held)
    before_it = n_tokens(*branch, *history)
    if before_it + ask + wanted > limit and question.conversation_id is not None:
        head = (bench.writer.head(),)
        room = limit - n_tokens(*head, *segments.values()) - ask
        room = min(max(room, int(_HISTORY_SHARE * limit)), limit // 2 - ask)
        room = min(room, first_word.room_for_turns(bench))
        latest = latest_turns(bench, question.conversation_id, room)
        if n_tokens(*head, *latest) < before_it:
            branch, history, held = head, latest, {}
            ask = _longest_ask(bench, question, context, held, phrases)
            is_new_branch = True
            notes = ["Earlier passages and turns were set aside to make room."]
    fixed = n_tokens(*branch, *history)
    if fixed + ask > limit and fixed + (bare := n_tokens(bench.writer.ask("", question.text))) > limit:
        raise PromptTooLong(
            f"The question does not fit: it has {bare:,} tokens, the model reads {bench.engine.n_ctx:,} "
            f"with {question.max_tokens:,} kept for the answer.",
            hint="Shorten it, or choose a larger n_ctx or a shorter answer in the settings.",
        )
    before = CachePlace()
    if question.conversation_id is not None:
        before = bench.conversations.cache_place(question.conversation_id)
    standing = [segment.block_id for segment in branch if segment.block_id]
    touched = bench.touched([*standing, *segments], question.scope)
    place = before.touching(touched)
    as_found = planning.as_found(touched)
    rules = bench.rules.as_found() if as_found else bench.rules
    root = bench.root_of(place.namespace)
    after = end_key(branch, root)
    room = limit - fixed - ask
    next_ones = tuple(_elements(bench, other) for other in waiting)
    by_content = rules.dedup and bench.dedup in ("content", "auto") and not as_found
    around = _surroundings(bench, branch) if by_content else None
    behind = n_tokens(*history) + ask
    left = first_word.time_left(bench, branch, root, segments, behind, in_part=not as_found)
    ridable = _ridable(bench, question.scope, standing, place, fixed)
    order_s = 0.0
    while True:
        request = planning.PlanRequest(
            context,
            segments,
            held,
            after,
            room,
            rules=rules,
            phrases=phrases,
            waiting=next_ones,
            time_left=left,
            ridable=ridable,
            around=around,
        )
        started = time.perf_counter()
        plan, reasons = _plan(bench, question, request, place.namespace, as_found)
        order_s += time.perf_counter() - started
        added = (*plan.segments, *history, _ask(bench, plan, question))
        over = n_tokens(*branch, *added) - limit
        if over <= 0:
            break
        if not plan.blocks:  # not even the annotation fits: the question alone does
            added = (*history, bench.writer.ask("", question.text))
            break
        room -= over
    prompt = lay_out((*branch, *added), root)
    made = Draft(plan, branch, added, prompt, place, is_new_branch, history, notes, reasons, order_s=order_s)
    whole = _whole(bench, question, context, made, limit)
    if whole is not None and (left is None or _fits(left, _cost(bench, whole))):
        return whole
    if plan.n_over_time or plan.excerpt:
        left_out = f"{count(plan.n_over_time, 'passage')} left out" if plan.n_over_time else ""
        in_part = "1 passage read in part" if plan.excerpt else ""
        what = " and ".join(filter(None, (left_out, in_part)))
        made.notes.append(f"{what}, so that the answer begins within {bench.first_word_s:g} s.")
    return made


def _plan(
    bench: Workbench, question: Question, request: planning.PlanRequest, namespace: str, as_found: str
) -> tuple[planning.Plan, list[str]]:
    """The plan of a question, and why it is so. Under ``auto`` the policy may take back what it does.

    ``as_found``: why it leaves the passages alone already; empty if it does not.
    """
    statistics = bench.order_of(namespace)
    plan = planning.make(request, bench.index, statistics)
    if as_found:
        return plan, [as_found] if plan.blocks else []
    if bench.dedup != "auto" or not plan.blocks:
        return plan, []
    ids = [block.id for block in plan.blocks]
    best = next((passage.block.id for passage in plan.passages if passage.block.id in ids), ids[0])
    kinds = (planning.kind_of(block.text) for block in plan.blocks) if plan.moved else ()
    decision = planning.decide(
        planning.Prospect(
            question=question.text,
            n_aligned_tokens=plan.match.weight if plan.moved else 0,
            n_shortened_tokens=plan.n_shortened_tokens,
            prefill_token_s=bench.cache.rates.prefill_token_s.value or 0.0,
            best_moved_by=ids.index(best),
            n_parameters=bench.info.n_params,
            ordered_content=next((kind for kind in kinds if kind), ""),
        )
    )
    aligns = decision.way.aligns or not plan.moved
    shortens = decision.way.shortens or not plan.n_shortened
    if not (aligns and shortens):
        around = request.around if shortens else None
        plan = planning.make(
            replace(request, rules=replace(request.rules, align=aligns), around=around),
            bench.index,
            statistics,
        )
    return plan, [decision.reason]


def _ridable(
    bench: Workbench, scope: Scope, held: Collection[str], place: CachePlace, fixed: int
) -> planning.Ridable:
    """Blocks of the documents asked that may be where this prompt is kept and do not stand in it yet.

    ``fixed``: tokens that stand before the new blocks.
    """

    def passages_of(ids: Sequence[str]) -> list[tuple[Passage, Segment]]:
        holding = bench.collections.holding(ids)
        fit = [
            id_
            for id_ in ids
            if id_ not in held
            and place.touching(holding.get(id_, ())) == place
            and not planning.as_found(holding.get(id_, ()))
        ]
        found = bench.documents.passages_of(fit, scope)
        passages = [found[id_] for id_ in fit if id_ in found]
        segments = bench.segments_of([passage.block for passage in passages])
        return [(passage, segments[passage.block.id]) for passage in passages]

    return planning.Ridable(ride_room(bench) - fixed, bench.info.attention, passages_of)


def _longest_ask(
    bench: Workbench,
    question: Question,
    context: Context,
    held: Collection[str],
    phrases: planning.Phrases,
) -> int:
    """Tokens of the question under the longest annotation that these passages can have."""
    said = planning.annotation(
        context.passages,
        [passage for passage in context.passages if passage.block.id in held],
        moved=bench.rules.rank,
        sources=bench.rules.sources,
        phrases=phrases,
    )
    return n_tokens(bench.writer.ask(said, question.text))


def _held(bench: Workbench, branch: Sequence[Segment]) -> dict[str, None]:
    """Ids of the blocks that stand in a branch, in its order; none where nothing is to be referenced."""
    if bench.dedup == "off" or not bench.rules.dedup:
        return {}
    return dict.fromkeys(segment.block_id for segment in branch if segment.kind is SegmentKind.BLOCK)


def _surroundings(bench: Workbench, branch: Sequence[Segment]) -> planning.Surroundings:
    """What the new blocks may refer to: the blocks of the branch that stand there whole.

    Of one that stands there shortened, or whose text is not known any more, nothing is said to be there.
    """
    standing = {segment.block_id: segment for segment in branch if segment.block_id}
    texts = bench.documents.texts(list(standing)) if standing else {}
    blocks = [Block(id_, texts[id_]) for id_ in standing if id_ in texts]
    whole = bench.segments_of(blocks)
    held = [one for one in blocks if np.array_equal(whole[one.id].tokens, standing[one.id].tokens)]
    labels = {one.label for one in blocks} - {one.label for one in held}
    return planning.Surroundings(
        held=tuple(held),
        unclear=frozenset(labels),
        segment_of=bench.shortened,
        known=bench.known_shortened,
        follow=lambda key, segment: _follow(bench, key, segment),
    )


def _follow(bench: Workbench, key: bytes, segment: Segment) -> tuple[bytes, bool]:
    keys = [chunk.key for chunk in lay_out([segment], key).chunks]
    return keys[-1], bench.cache.knows(keys)


def _elements(bench: Workbench, context: Context) -> frozenset[int]:
    segments = bench.segments_of([passage.block for passage in context.passages])
    return frozenset(segment.element for segment in segments.values())


def ride_room(bench: Workbench) -> int:
    """Tokens that a prompt may have up to its question where blocks ride along."""
    return int(_RIDE_SHARE * bench.engine.n_ctx)


def whole_room(bench: Workbench) -> int:
    """Tokens that the blocks of documents read whole may take."""
    return int(_WHOLE_SHARE * bench.engine.n_ctx)


def _is_kept_warm(bench: Workbench, scope: Scope) -> bool:
    """Whether the user wants just this scope kept warm, and it can be: a path of its own is read for it."""
    is_one = scope.collection_id is not None or len(scope.document_ids) == 1
    return (
        is_one
        and scope not in bench.unkeepable
        and bench.cache.keeps_snapshots
        and bench.documents.is_kept_warm(scope)
    )


def _whole(
    bench: Workbench, question: Question, context: Context, by_passages: Draft, limit: int
) -> Draft | None:
    """The draft with all text in scope, if that is the better one; else None.

    Considered at the start of a conversation, and in every turn where the user wants the documents kept warm.
    """
    if not bench.rules.whole:
        return None
    kept_warm = _is_kept_warm(bench, question.scope)
    if not kept_warm and len(by_passages.branch) > 1:
        return None
    cost = _cost(bench, by_passages)
    if not (kept_warm or cost.n_missing or context.is_opening):
        return None  # nothing can leave less to read
    scope = bench.documents.whole(question.scope, whole_room(bench))
    whole = None if not scope else _whole_draft(bench, question, context, by_passages, scope, kept_warm)
    if whole is not None and whole.prompt.n_tokens > limit:
        whole = None
    choice = planning.choose(
        None if whole is None else _cost(bench, whole),
        cost,
        context,
        kept_warm=kept_warm,
    )
    chosen = whole if choice.whole and whole is not None else by_passages
    if choice.reason:
        chosen.reasons.append(choice.reason)
    return whole if choice.whole else None


def _whole_draft(
    bench: Workbench,
    question: Question,
    context: Context,
    base: Draft,
    scope: Sequence[Passage],
    kept_warm: bool,
) -> Draft | None:
    """All of ``scope`` in place of the passages; None where one of its collections wants these as found."""
    held = _held(bench, base.branch)
    touched = bench.touched([*held, *(passage.block.id for passage in scope)], question.scope)
    if not kept_warm and planning.as_found(touched):
        return None
    segments = bench.segments_of([passage.block for passage in scope])
    place = base.place.touching(touched)
    root = bench.root_of(place.namespace)
    request = planning.PlanRequest(
        context,
        segments,
        held,
        end_key(base.branch, root),
        0,
        rules=bench.rules,
        phrases=planning.phrases_for(question.text),
    )
    plan = planning.make_whole(request, scope)
    added = (*plan.segments, *base.history, _ask(bench, plan, question))
    prompt = lay_out((*base.branch, *added), root)
    return replace(
        base, plan=plan, added=added, prompt=prompt, place=place, notes=list(base.notes), reasons=[]
    )


def _ask(bench: Workbench, plan: planning.Plan, question: Question) -> Segment:
    return bench.writer.ask(plan.annotation, question.text, annotation_last=bench.rules.annotation_last)


def _cost(bench: Workbench, made: Draft) -> planning.Cost:
    n_blocks = n_tokens(*made.added[:-1])
    cached = bench.cache.locate(made.prompt)
    first = len(made.branch)
    missing = sum(
        len(chunk.tokens)
        for index, chunk in enumerate(made.prompt.chunks)
        if first <= chunk.segment < len(made.prompt.segments) - 1 and index >= len(cached)
    )
    return planning.Cost(n_blocks, missing)


def _fits(left: planning.TimeLeft, cost: planning.Cost) -> bool:
    return cost.n_missing <= left.room(cost.n_tokens - cost.n_missing)


def explain(bench: Workbench, made: Draft) -> list[str]:
    """What alignment found, a sentence each; nothing where it had nothing to choose."""
    match, n_new = made.plan.match, len(made.plan.blocks) - len(made.plan.riders)
    others = [*_explain_shortened(made), *_explain_excerpt(made)]
    if not match.order:
        return others
    saved_s = bench.cache.rates.prefill_s(n_tokens(*made.branch), match.weight)
    saves = f"{count(match.weight, 'token')}" + (f", about {seconds(saved_s)}" if saved_s else "")
    come = "comes" if len(match.order) == 1 else "come"
    sentences = [
        f"Cached path: {len(match.order)} of {count(n_new, 'passage')} {come} first, which saves {saves}."
    ]
    if match.runner_up:
        sentences.append(f"The next best path would have saved {count(match.runner_up, 'token')}.")
    if n_riding := len(made.plan.riders):
        stay = "was read before and stays" if n_riding == 1 else "were read before and stay"
        sentences.append(f"{count(n_riding, 'more passage')} {stay} between them.")
    if made.plan.moved:
        sentences.append("The passages were moved for it; their ranking stands behind them.")
    return sentences + others


def _explain_shortened(made: Draft) -> list[str]:
    plan = made.plan
    if not plan.n_shortened:
        return []
    passages = count(len(plan.blocks) - len(plan.riders), "passage")
    saved = count(plan.n_shortened_tokens, "token")
    return [f"{passages}, {plan.n_shortened} shortened: {saved} less, since their text stands further up."]


def _explain_excerpt(made: Draft) -> list[str]:
    titles = [passage.place.title for passage in made.plan.passages if passage.block.id == made.plan.excerpt]
    return [f"Of one passage of “{title}” the part around its best sentence was read." for title in titles]


def n_on_disk(bench: Workbench, prompt: Prompt, place: CachePlace) -> int:
    """How many leading segments of a prompt may be written to SSD."""
    if not place.on_disk:
        return 1  # the instructions say nothing of anybody's documents
    holding = bench.collections.holding([segment.block_id for segment in prompt.segments if segment.block_id])
    for index, segment in enumerate(prompt.segments):
        if not all(info.on_disk for info in holding.get(segment.block_id, ())):
            return index
    return len(prompt.segments)
