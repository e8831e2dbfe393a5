"""One question's plan: fit, de-duplicate, align, annotate."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from core.index import ContextIndex, OrderStatistics, PathMatch
from core.plan.align import align
from core.plan.annotate import annotation, annotation_of_whole
from core.plan.dedup import split_held
from core.types import Block, Context, Passage, Segment

NO_PATH = PathMatch((), 0)


@dataclass(frozen=True, slots=True)
class PlanRequest:
    context: Context
    segments: Mapping[str, Segment]
    """Tokenized segment of every retrieved block, by block id."""
    held: AbstractSet[str]
    """Ids of blocks that earlier turns of this prompt hold."""
    after: bytes
    """Key of the prompt's last chunk so far: the new blocks follow it."""
    room: int
    """Tokens that the new blocks may take."""
    align: bool = True
    """False: leave the new blocks in relevance order, whatever that costs."""
    waiting: tuple[frozenset[int], ...] = ()
    """Elements of the questions that are known to come next (a window)."""


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
    references: tuple[Block, ...]
    """Those that stand further up already."""
    annotation: str
    match: PathMatch
    """The cached path that the new blocks begin with."""
    n_left_out: int
    """Retrieved passages that found no room."""
    n_deduplicated_tokens: int
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
    new, references = split_held(request.context.passages, request.held)
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
    order: tuple[int, ...] = tuple(range(len(fitting)))
    match = NO_PATH
    if request.align:
        order, match = align(
            considered.elements,
            index,
            request.after,
            statistics=statistics,
            lengths=considered.lengths,
            groups=considered.groups,
            waiting=request.waiting,
            names=considered.names,
        )
    moved = list(order) != sorted(order)
    kept = {passage.block.id for passage in (*fitting, *references)}
    passages: dict[str, Passage] = {}
    for passage in request.context.passages:
        if passage.block.id in kept:
            passages.setdefault(passage.block.id, passage)
    used = tuple(passages.values())
    return Plan(
        passages=used,
        blocks=tuple(fitting[i].block for i in order),
        references=tuple(passage.block for passage in references),
        annotation=annotation(used, references, moved=moved),
        match=match,
        n_left_out=len({p.block.id for p in request.context.passages}) - len(used),
        n_deduplicated_tokens=sum(len(request.segments[p.block.id].tokens) for p in references),
        moved=moved,
        considered=considered,
        is_whole=False,
        quotable=used,
    )


def make_whole(request: PlanRequest, scope: Sequence[Passage]) -> Plan:
    """A plan that puts all of ``scope`` into the prompt, in its own order; what is held already stays there.

    ``request.segments`` holds every block of ``scope``; ``request.room`` is not looked at. The passages found
    are ranked in the annotation.
    """
    inside = {passage.block.id for passage in scope}
    found = [passage for passage in request.context.passages if passage.block.id in inside]
    found = list({passage.block.id: passage for passage in found}.values())
    new, _ = split_held(scope, request.held)
    _, references = split_held(found, request.held)  # what passages would have repeated, and no more
    ranked = {passage.block.id for passage in found}
    return Plan(
        passages=tuple(found),
        blocks=tuple(passage.block for passage in new),
        references=tuple(passage.block for passage in references),
        annotation=annotation_of_whole(scope, () if request.context.is_opening else found),
        match=NO_PATH,
        n_left_out=0,
        n_deduplicated_tokens=sum(len(request.segments[p.block.id].tokens) for p in references),
        moved=True,
        considered=Considered(),
        is_whole=True,
        quotable=(*found, *(passage for passage in scope if passage.block.id not in ranked)),
    )
