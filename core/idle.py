"""What is done while nobody waits: settle the last answer, read ahead, warm up, keep documents warm.

Every function stops within a chunk when ``cancel`` is set (Cancelled) and keeps what it had finished.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from core.draft import n_on_disk, ride_room, whole_room
from core.engine.protocol import CancelFlag
from core.errors import Cancelled
from core.history import branch_of, n_tokens
from core.metrics import count
from core.prompt import lay_out
from core.types import CachePlace, DocumentWarmth, Prompt, Scope, Segment, SegmentKind, Warmth
from core.workbench import Workbench

_PINNED_SHARE = 0.5
"""Of the RAM tier's budget, so much may be documents that are kept warm."""
_READ_ON_BLOCKS = 32
"""At most so many blocks are read ahead after a question."""
_AHEAD_SHARE = 0.2
"""They take so much of the RAM tier's budget at most: what was asked for must not leave for them."""


def warm_up(bench: Workbench, cancel: CancelFlag) -> None:
    """Before the first question: bring what was used last from SSD into RAM, and read the instructions that
    every conversation begins with.
    """
    for _n_bytes in bench.cache.warm_up(bench.ram_budget // 2):
        if cancel.is_set():
            raise Cancelled
    if not bench.cache.n_live_tokens:
        apart = (CachePlace(str(info.id)) for info in bench.collections.list() if info.apart)
        for place in (*apart, CachePlace()):
            _read(bench, lay_out([bench.writer.head()], bench.root_of(place.namespace)), place, cancel)


def settle(bench: Workbench, conversation_id: int, cancel: CancelFlag) -> None:
    """Read the finished answer again as canonical chunks while the user reads it, and save what is unsaved.

    KV made token by token is not what prefilling gives, so the next turn cannot build on it. What is not
    settled when the next question comes is prefilled with it.
    """
    bench.keep_tokens()
    bench.keep_learned(now=False)
    segments, _ = branch_of(bench, conversation_id)
    held = [segment.block_id for segment in segments if segment.block_id]
    place = bench.place_of(bench.conversations.cache_place(conversation_id), held)
    prompt = lay_out(segments, bench.root_of(place.namespace))
    if prompt.n_tokens <= bench.engine.n_ctx:
        _read(bench, prompt, place, cancel)
    while not cancel.is_set() and bench.cache.tend():
        pass


def read_on(
    bench: Workbench, segments: Sequence[Segment], place: CachePlace, scope: Scope, cancel: CancelFlag
) -> int:
    """Read what else of the documents stands near the passages of a question, behind these. Tokens read.

    ``segments``: the prompt, of which the instructions and the first passages count. The next question about
    the same documents then finds its passages cached on one path (``core/plan/riders.py``). Only where
    documents were chosen: nobody knows what a question to a whole library is followed by. And not where
    passages are left as found: no later question would follow this path.
    """
    per_token = bench.cache.bytes_per_token
    if not per_token or not (scope.document_ids or scope.collection_id is not None):
        return 0
    first = list(takewhile(lambda one: one.kind in (SegmentKind.HEAD, SegmentKind.BLOCK), segments))
    held = [segment.block_id for segment in first if segment.block_id]
    near = bench.documents.near(held, scope, _READ_ON_BLOCKS)
    touched = bench.touched([*held, *(block.id for block in near)], scope)
    if place.touching(touched) != place or any(info.as_found for info in touched):
        return 0
    tokens = bench.segments_of(near)
    room = min(ride_room(bench) - n_tokens(*first), int(_AHEAD_SHARE * bench.ram_budget / per_token))
    ahead = []
    for block in near:
        room -= len(tokens[block.id].tokens)
        if room < 0:
            break
        ahead.append(tokens[block.id])
    if not held or not ahead:
        return 0
    prompt = lay_out([*first, *ahead], bench.root_of(place.namespace))
    n_before = sum(len(chunk.tokens) for chunk in prompt.chunks[: len(bench.cache.locate(prompt))])
    if n_before < prompt.n_tokens:
        _read(bench, prompt, place, cancel, ahead=True)
        _save(bench, cancel)
    bench.keep_tokens()
    return prompt.n_tokens - n_before


def keep_documents_warm(bench: Workbench, cancel: CancelFlag) -> list[str]:
    """Read what the user wants kept warm, as far as it is not; what was done, in words.

    It is pinned: on SSD all of it, in RAM up to a share of its budget, collections first, then documents, the
    latest first. What finds no room in any tier is not read at all, or not again.
    """
    if not bench.cache.keeps_snapshots:
        return []
    room = int(_PINNED_SHARE * bench.ram_budget)
    done: list[str] = []
    kept: list[Prompt] = []
    for scope in _kept_warm(bench):
        if cancel.is_set():
            raise Cancelled
        whole = None if scope in bench.unkeepable else _read_whole(bench, scope)
        if whole is None:
            continue
        located = len(bench.cache.locate(whole.prompt))
        fits = bench.cache.has_ssd(whole.place) or bench.cache.ram_needed([*kept, whole.prompt]) <= room
        if fits:
            # Until the pass ends, what was pinned before stays: a question may end the pass.
            bench.cache.pin([*_keys([*kept, whole.prompt]), *bench.cache.pinned], room)
            if located < len(whole.prompt.chunks):
                _read(bench, whole.prompt, whole.place, cancel)
            _save(bench, cancel)
        if not fits or not bench.cache.holds(whole.prompt):
            bench.unkeepable.add(scope)  # reading it again and again would keep nothing
            done.append(f"{whole.title} cannot be kept warm: the memory for it is too small.")
            continue
        kept.append(whole.prompt)
        if located < len(whole.prompt.chunks):
            n_read = sum(len(chunk.tokens) for chunk in whole.prompt.chunks[located:])
            done.append(f"{whole.title} is warm: {count(n_read, 'token')} read.")
    bench.cache.pin(_keys(kept), room)
    bench.keep_tokens()
    return done


def _keys(prompts: Sequence[Prompt]) -> list[bytes]:
    return list(dict.fromkeys(chunk.key for prompt in prompts for chunk in prompt.chunks))


def warmth(bench: Workbench, document_ids: Sequence[int]) -> tuple[DocumentWarmth, ...]:
    """How warm documents are, and what a first question would wait for."""
    found = []
    for document_id in document_ids:
        scope = _one(document_id)
        whole = _read_whole(bench, scope)
        if whole is None or scope in bench.unkeepable:
            state = Warmth.TOO_LONG if whole is None else Warmth.NO_ROOM
            found.append(DocumentWarmth(document_id, state, 0, 0, 0.0))
            continue
        chunks = whole.prompt.chunks
        n_cached = sum(
            len(chunk.tokens)
            for chunk, _tier in zip(chunks, bench.cache.locate(whole.prompt), strict=False)
            if chunk.segment > 0
        )
        total = whole.prompt.n_tokens - n_tokens(whole.prompt.segments[0])
        state = Warmth.WARM if n_cached == total else Warmth.PARTLY if n_cached else Warmth.COLD
        missing_s = bench.cache.rates.prefill_s(whole.prompt.n_tokens - total + n_cached, total - n_cached)
        found.append(DocumentWarmth(document_id, state, total, n_cached, missing_s))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Whole:
    title: str
    prompt: Prompt
    place: CachePlace


def _one(document_id: int) -> Scope:
    return Scope(frozenset({document_id}))


def _kept_warm(bench: Workbench) -> list[Scope]:
    """Collections kept warm as a whole, then documents by themselves: each is asked by itself, too."""
    collections = [Scope(collection_id=one.id) for one in bench.collections.list() if one.keep_warm]
    return [*collections, *(_one(document_id) for document_id in bench.documents.kept_warm())]


def _read_whole(bench: Workbench, scope: Scope) -> _Whole | None:
    """The prompt that ``scope`` read whole begins with; None where that does not fit or nothing is in it."""
    passages = bench.documents.whole(scope, whole_room(bench))
    if not passages:
        return None
    blocks = [passage.block for passage in passages]
    segments = bench.segments_of(blocks)
    place = bench.place_of(CachePlace(), list(segments), scope)
    if n_tokens(*segments.values()) > whole_room(bench):
        return None
    head = bench.writer.head()
    prompt = lay_out([head, *(segments[block.id] for block in blocks)], bench.root_of(place.namespace))
    titles = dict.fromkeys(passage.place.title for passage in passages)
    collection = None if scope.collection_id is None else bench.collections.find(scope.collection_id)
    title = f"{collection.name} as a whole" if collection and len(titles) > 1 else next(iter(titles))
    return _Whole(title, prompt, place)


def _read(
    bench: Workbench, prompt: Prompt, place: CachePlace, cancel: CancelFlag, *, ahead: bool = False
) -> None:
    limit = n_on_disk(bench, prompt, place)
    for _step in bench.cache.prefill(prompt, cancel, logits=False, ahead=ahead, n_on_disk=limit):
        pass


def _save(bench: Workbench, cancel: CancelFlag) -> None:
    """Save all that is live, a chunk at a time."""
    while bench.cache.tend():
        if cancel.is_set():
            raise Cancelled
