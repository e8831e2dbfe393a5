"""One question's plan: fit, de-duplicate, align, annotate."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from core.index import ContextIndex, OrderStatistics, PathMatch
from core.plan.align import align
from core.plan.annotate import annotation, annotation_of_whole
from core.plan.content import Surroundings, cached_next, deduplicate
from core.plan.dedup import Form, split_held, whole
from core.plan.phrases import ENGLISH, Phrases
from core.plan.policy import TimeLeft, within_time
from core.plan.riders import Ridable, Ride, ride
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
    sources: bool = True
    """False: do not say which files passages are from."""
    annotation_last: bool = False
    """True: the annotation stands behind the question."""
    ride: bool = True
    """False: no block that was not asked for, even where it is cached between those that were."""
    whole: bool = True
    """False: never all text in scope in place of the passages found."""
    arrange: Callable[[Sequence[int]], Sequence[int] | None] | None = None
    """In place of alignment: block ids as integers, in relevance order, to the order in which they stand, as
    indices; None to align them after all."""

    def as_found(self) -> "Rules":
        """The same, but the passages stand in relevance order, and none but they."""
        return replace(self, align=False, tail=False, ride=False, arrange=None)


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
    phrases: Phrases = ENGLISH
    """Of the question's language."""
    waiting: tuple[frozenset[int], ...] = ()
    """Elements of the questions that are known to come next (a window)."""
    time_left: TimeLeft | None = None
    """To read new blocks in; cached ones ride free. None: as long as it takes."""
    ridable: Ridable | None = None
    """None: nothing rides along."""
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
    riders: tuple[Block, ...]
    """Of ``blocks``: those that nobody asked for, cached between those that were."""
    annotation: str
    match: PathMatch
    """The cached path that the new blocks begin with."""
    excerpt: str
    """Id of the one of ``blocks`` of which only a part is read; empty if none."""
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


@dataclass(frozen=True, slots=True)
class _Order:
    """The new blocks in prompt order, before any is left out or shortened."""

    standing: tuple[Passage, ...]
    n_cached: int
    """So many of them in front are cached."""
    match: PathMatch
    riders: tuple[Passage, ...] = ()
    segments: Mapping[str, Segment] = field(default_factory=dict)
    """Of the riders."""


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
    order = _ordered(request, fitting, considered, index, statistics)
    riders = order.riders
    segments_of = {**request.segments, **order.segments} if riders else request.segments
    standing, n_cached, around = order.standing, order.n_cached, request.around
    if rules.align and around is not None:
        followed = _followed(request, around, segments_of, order)
        if followed is None:
            around = None
        else:
            standing, n_cached = followed
    over_time, part = _over_time(
        request.time_left, fitting, segments_of, standing[:n_cached], needed=not references
    )
    blocks = tuple(passage.block for passage in standing if passage.block.id not in over_time)
    forms = tuple(whole(block) for block in blocks)
    segments = tuple(segments_of[block.id] for block in blocks)
    n_saved = n_shortened = 0
    if around is not None:
        shortened = deduplicate(blocks, segments_of, around, request.after, n_whole=order.n_cached)
        forms, segments = shortened.forms, shortened.segments
        n_saved, n_shortened = shortened.n_saved_tokens, shortened.n_blocks
    if part is not None:  # last: it serves this question alone
        blocks = (*blocks, part.block)
        forms = (*forms, Form(part.block.id, part.block.label, (part.text,)))
        segments = (*segments, part.segment)
    stands_at = {id_: n for n, id_ in enumerate((*request.held, *(block.id for block in blocks)))}
    found: dict[str, Passage] = {}
    for passage in request.context.passages:
        found.setdefault(passage.block.id, passage)
    used = tuple(passage for id_, passage in found.items() if id_ in stands_at)
    places = [stands_at[passage.block.id] for passage in used]
    new_places = [place for place in places if place >= len(request.held)]
    return Plan(
        passages=used,
        blocks=blocks,
        forms=forms,
        segments=segments,
        references=tuple(passage.block for passage in references),
        riders=tuple(passage.block for passage in riders),
        annotation=annotation(
            used,
            references if rules.rank else (),
            moved=rules.rank and (bool(riders) or not _rises(places)),
            sources=rules.sources,
            phrases=request.phrases,
        ),
        match=order.match,
        excerpt="" if part is None else part.block.id,
        n_left_out=len(found) - len(used) - len(over_time) + (part is not None),
        n_over_time=len(over_time) - (part is not None),
        n_deduplicated_tokens=sum(len(request.segments[p.block.id].tokens) for p in references) + n_saved,
        n_shortened=n_shortened,
        n_shortened_tokens=n_saved,
        moved=not _rises(new_places),
        considered=considered,
        is_whole=False,
        quotable=(*used, *riders),
    )


def _rises(places: Sequence[int]) -> bool:
    return all(a < b for a, b in pairwise(places))


def _ordered(
    request: PlanRequest,
    fitting: Sequence[Passage],
    considered: Considered,
    index: ContextIndex,
    statistics: OrderStatistics | None,
) -> _Order:
    """Align: the cached path, then the rest."""
    rules = request.rules
    given = None if rules.arrange is None else rules.arrange(considered.names)
    if given is None and not rules.align:
        return _Order(tuple(fitting), 0, NO_PATH)
    match, riding = _cached_path(request, considered, index) if rules.align else (NO_PATH, None)
    if given is not None:
        if riding is None:
            return _Order(tuple(fitting[i] for i in given), 0, NO_PATH)
        places = (*match.order, *(i for i in given if i not in match.order))
    else:
        places, match = align(
            considered.elements,
            index,
            request.after,
            statistics=statistics if rules.tail else None,
            lengths=considered.lengths,
            groups=considered.groups,
            waiting=request.waiting,
            names=considered.names,
            path=match,
        )
    n_first = len(match.order)
    rest = tuple(fitting[i] for i in places[n_first:])
    if riding is None:
        return _Order((*(fitting[i] for i in match.order), *rest), n_first, match)
    on_path = {passage.block.id: passage for passage in (*fitting, *riding.riders)}
    path = tuple(on_path[id_] for id_ in riding.block_ids)
    return _Order((*path, *rest), len(path), match, riding.riders, riding.segments)


def _cached_path(
    request: PlanRequest, considered: Considered, index: ContextIndex
) -> tuple[PathMatch, Ride | None]:
    """The cached path to begin with: over these blocks alone, or with riders where that is worth more."""
    match = index.best_path(request.after, considered.elements)
    if not request.rules.ride or request.ridable is None:
        return match, None
    riding = ride(
        considered.elements,
        considered.lengths,
        request.after,
        index,
        request.ridable,
        names=considered.names,
        room=request.room,
        beat=match.weight,
    )
    if riding is None:
        return match, None
    places = {name: i for i, name in enumerate(considered.names)}
    path = [places[name] for id_ in riding.block_ids if (name := int(id_, 16)) in places]
    n_tokens = sum(considered.lengths[i] for i in path)
    begins = match.order == tuple(path[: len(match.order)])
    return PathMatch(tuple(path), n_tokens, riding.weight, 0 if begins else match.weight), riding


@dataclass(frozen=True, slots=True)
class _Part:
    """What is read of a passage."""

    block: Block
    text: str
    segment: Segment


def _over_time(
    left: TimeLeft | None,
    fitting: Sequence[Passage],
    segments_of: Mapping[str, Segment],
    cached: Sequence[Passage],
    *,
    needed: bool,
) -> tuple[frozenset[str], _Part | None]:
    """Ids of the fitting passages that are not read whole, in order to keep to a time, and a part of one.

    ``needed``: no earlier turn gave any passage of this question.
    """
    if left is None:
        return frozenset(), None
    free = {passage.block.id for passage in cached}
    parts: list[_Part] = []

    def part_of(index: int, room: int) -> int:
        made = left.excerpt_of(fitting[index], room)
        if made is None:
            return 0
        parts.append(_Part(fitting[index].block, *made))
        return len(made[1].tokens)

    taken = within_time(
        [len(segments_of[passage.block.id].tokens) for passage in fitting],
        [passage.block.id in free for passage in fitting],
        left.room(sum(len(segments_of[id_].tokens) for id_ in free)),
        part_of,
        needed=needed,
    )
    ids = frozenset(passage.block.id for passage in fitting) - {fitting[i].block.id for i in taken}
    return ids, parts[0] if parts else None


def _followed(
    request: PlanRequest, around: Surroundings, segments_of: Mapping[str, Segment], order: _Order
) -> tuple[tuple[Passage, ...], int] | None:
    """The order with those blocks next to the cached ones that are cached there in a shorter form.

    And how many are cached then. None where no text stands twice.
    """
    first, rest = order.standing[: order.n_cached], order.standing[order.n_cached :]
    following = cached_next(
        [passage.block for passage in first],
        [passage.block for passage in rest],
        segments_of,
        around,
        request.after,
    )
    if following is None:
        return None
    others = [passage for i, passage in enumerate(rest) if i not in following]
    return (*first, *(rest[i] for i in following), *others), order.n_cached + len(following)


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
        riders=(),
        annotation=annotation_of_whole(
            scope,
            found if request.rules.rank and not request.context.is_opening else (),
            sources=request.rules.sources,
            phrases=request.phrases,
        ),
        match=NO_PATH,
        excerpt="",
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
