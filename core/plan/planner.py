"""One question's plan: fit, de-duplicate, align, annotate."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from core.index import ContextIndex, OrderStatistics, PathMatch
from core.plan.align import align
from core.plan.annotate import annotation, annotation_of_whole
from core.plan.content import Surroundings, cached_next, deduplicate
from core.plan.dedup import Form, split_held, whole
from core.plan.policy import within_time
from core.types import Block, Context, Passage, Segment

NO_PATH = PathMatch((), 0)


@dataclass(frozen=True, slots=True)
class Rules:
    """What a plan may do. The product does all of it; comparisons take parts away."""

    align: bool = True
    """False: leave the new blocks in relevance order, whatever that costs."""
    tail: bool = True
    """False: what is not cached follows in relevance order."""
    dedup: bool = True
    """False: repeat what earlier turns hold."""
    rank: bool = True
    """False: say nothing of what was moved or stands further up."""
    whole: bool = True
    """False: never all text in scope in place of the passages found."""
    arrange: Callable[[Sequence[int]], Sequence[int] | None] | None = None
    """In place of alignment: block ids as integers, in relevance order, to the order in which they stand, as
    indices; None to align them after all."""


EVERYTHING = Rules()
"""What the product does."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    context: Context
    segments: Mapping[str, Segment]
    """Tokenized segment of every retrieved block, by block id."""
    held: Collection[str]
    """Ids of blocks that earlier turns of this prompt hold, in its order."""
    after: bytes
    """Key of the prompt's last chunk so far: the new blocks follow it."""
    room: int
    """Tokens that the new blocks may take."""
    rules: Rules = EVERYTHING
    waiting: tuple[frozenset[int], ...] = ()
    """Elements of the questions that are known to come next (a window)."""
    fresh_room: int | None = None
    """Tokens of new blocks that may be prefilled, to keep to a time; cached ones ride free. None: any."""
    around: Surroundings | None = None
    """None: blocks are referenced or sent whole, not shortened by what stands before them."""


@dataclass(frozen=True, slots=True)
class Considered:
    """The new blocks in relevance order, as alignment saw them."""

    elements: tuple[int, ...] = ()
    names: tuple[int, ...] = ()
    """Block ids as integers: they mean the same under every model."""
    lengths: tuple[int, ...] = ()
    """Tokens."""
    groups: tuple[int, ...] = ()
    """The document of each."""


@dataclass(frozen=True, slots=True)
class Plan:
    passages: tuple[Passage, ...]
    """All that the prompt will hold for this question, in relevance order."""
    blocks: tuple[Block, ...]
    """The new ones, in prompt order."""
    forms: tuple[Form, ...]
    """How these stand in the prompt."""
    segments: tuple[Segment, ...]
    """The same, tokenized."""
    references: tuple[Block, ...]
    """Those that stand further up already."""
    annotation: str
    match: PathMatch
    """The cached path that the new blocks begin with."""
    n_left_out: int
    """Retrieved passages that found no room."""
    n_over_time: int
    """Those that would have taken longer to read than is allowed."""
    n_deduplicated_tokens: int
    """Of blocks that are referenced, and saved by references within others."""
    n_shortened: int
    """Of ``blocks``: how many hold a reference in place of some of their text."""
    n_shortened_tokens: int
    """What that saved."""
    moved: bool
    """The new blocks do not stand in relevance order."""
    considered: Considered
    """For the statistics: what was asked for together."""
    is_whole: bool
    """All text in scope stands in the prompt, not only the passages found."""
    quotable: tuple[Passage, ...]
    """What may support an answer: ``passages``, and what else of a document stands there."""


def make(request: PlanRequest, index: ContextIndex, statistics: OrderStatistics | None = None) -> Plan:
    """Plan one question. The same request, index and statistics give the same plan."""
    new, references = split_held(request.context.passages, frozenset(request.held))
    fitting, room = [], request.room
    for passage in new:
        n_tokens = len(request.segments[passage.block.id].tokens)
        if n_tokens <= room:
            fitting.append(passage)
            room -= n_tokens
    considered = Considered(
        elements=tuple(request.segments[passage.block.id].element for passage in fitting),
        names=tuple(int(passage.block.id, 16) for passage in fitting),
        lengths=tuple(len(request.segments[passage.block.id].tokens) for passage in fitting),
        groups=tuple(passage.place.document_id for passage in fitting),
    )
    rules = request.rules
    order: tuple[int, ...] = tuple(range(len(fitting)))
    match = NO_PATH
    given = None if rules.arrange is None else rules.arrange(considered.names)
    if given is not None:
        order = tuple(given)
    elif rules.align:
        order, match = align(
            considered.elements,
            index,
            request.after,
            statistics=statistics if rules.tail else None,
            lengths=considered.lengths,
            groups=considered.groups,
            waiting=request.waiting,
            names=considered.names,
        )
    n_cached = len(match.order)
    if rules.align and request.around is not None:
        order, n_cached = _followed(request, fitting, order, n_cached)
    over_time = _over_time(request.fresh_room, considered.lengths, order[:n_cached])
    order = tuple(i for i in order if i not in over_time)
    moved = list(order) != sorted(order)
    sent = [passage for i, passage in enumerate(fitting) if i not in over_time]
    kept = {passage.block.id for passage in (*sent, *references)}
    passages: dict[str, Passage] = {}
    for passage in request.context.passages:
        if passage.block.id in kept:
            passages.setdefault(passage.block.id, passage)
    used = tuple(passages.values())
    blocks = tuple(fitting[i].block for i in order)
    forms = tuple(whole(block) for block in blocks)
    segments = tuple(request.segments[block.id] for block in blocks)
    n_saved = n_shortened = 0
    if request.around is not None:
        shortened = deduplicate(
            blocks, request.segments, request.around, request.after, n_whole=len(match.order)
        )
        forms, segments = shortened.forms, shortened.segments
        n_saved, n_shortened = shortened.n_saved_tokens, shortened.n_blocks
    stands_at = {id_: n for n, id_ in enumerate((*request.held, *(block.id for block in blocks)))}
    ranked = [stands_at[passage.block.id] for passage in used]
    return Plan(
        passages=used,
        blocks=blocks,
        forms=forms,
        segments=segments,
        references=tuple(passage.block for passage in references),
        annotation=annotation(
            used,
            references if rules.rank else (),
            moved=rules.rank and any(b < a for a, b in pairwise(ranked)),
            n_saved_tokens=n_saved,
        ),
        match=match,
        n_left_out=len({p.block.id for p in request.context.passages}) - len(used) - len(over_time),
        n_over_time=len(over_time),
        n_deduplicated_tokens=sum(len(request.segments[p.block.id].tokens) for p in references) + n_saved,
        n_shortened=n_shortened,
        n_shortened_tokens=n_saved,
        moved=moved,
        considered=considered,
        is_whole=False,
        quotable=used,
    )


def _over_time(room: int | None, lengths: Sequence[int], cached: Sequence[int]) -> frozenset[int]:
    """Which of the fitting passages are not read, in order to keep to ``room`` tokens."""
    if room is None:
        return frozenset()
    free = frozenset(cached)
    taken = within_time(lengths, [i in free for i in range(len(lengths))], room)
    return frozenset(range(len(lengths))) - frozenset(taken)


def _followed(
    request: PlanRequest, fitting: Sequence[Passage], order: tuple[int, ...], n_cached: int
) -> tuple[tuple[int, ...], int]:
    """``order`` with those blocks next to the first ``n_cached`` that are cached there in a shorter form.

    And how many are cached then.
    """
    blocks = [fitting[i].block for i in order]
    if request.around is None:
        return order, n_cached
    following = cached_next(
        blocks[:n_cached], blocks[n_cached:], request.segments, request.around, request.after
    )
    rest = order[n_cached:]
    chosen = [rest[i] for i in following]
    moved = (*order[:n_cached], *chosen, *(i for i in rest if i not in chosen))
    return moved, n_cached + len(chosen)


def make_whole(request: PlanRequest, scope: Sequence[Passage]) -> Plan:
    """A plan that puts all of ``scope`` into the prompt, in its own order; what is held already stays there.

    ``request.segments`` holds every block of ``scope``; ``request.room`` is not looked at. The passages found
    are ranked in the annotation.
    """
    inside = {passage.block.id for passage in scope}
    found = [passage for passage in request.context.passages if passage.block.id in inside]
    found = list({passage.block.id: passage for passage in found}.values())
    held = frozenset(request.held)
    new, _ = split_held(scope, held)
    _, references = split_held(found, held)  # what passages would have repeated, and no more
    ranked = {passage.block.id for passage in found}
    return Plan(
        passages=tuple(found),
        blocks=tuple(passage.block for passage in new),
        forms=tuple(whole(passage.block) for passage in new),
        segments=tuple(request.segments[passage.block.id] for passage in new),
        references=tuple(passage.block for passage in references),
        annotation=annotation_of_whole(scope, () if request.context.is_opening else found),
        match=NO_PATH,
        n_left_out=0,
        n_over_time=0,
        n_deduplicated_tokens=sum(len(request.segments[p.block.id].tokens) for p in references),
        n_shortened=0,
        n_shortened_tokens=0,
        moved=True,
        considered=Considered(),
        is_whole=True,
        quotable=(*found, *(passage for passage in scope if passage.block.id not in ranked)),
    )
