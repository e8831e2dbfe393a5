"""How much of a trace of contexts a prefix cache of a given size would have had, block by block.

A trace is a (gzipped) file of JSON lines ``{"blocks": [id, …], …}``, best block first. The cache simulated
here is the product's own: ``ContextIndex`` and ``align`` choose the order, ``OrderStatistics`` learns, and
``LeafQueue`` evicts. One node is one block under its exact path, of one size and cost. ``hit_ratio`` is the
leading blocks of each context that were cached when it came, over all blocks.
"""

import gzip
import json
import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import xxhash

from core.engine.eviction import ROOT, LeafQueue, Policy
from core.errors import KnownError, SettingsError
from core.index import ContextIndex, OrderStatistics
from core.plan.align import align
from core.plan.schedule import schedule
from core.types import Committed, Evicted

Mode = Literal["online", "offline"]
Method = Literal["overlap", "contextpilot", "relevance"]

_ROOT_KEY = bytes(16)
_AHEAD_CONTEXTS = 512
"""Recent contexts that are compared with the last one in a pause."""
_AHEAD_TRIES = 24
"""How many of them are built for, those that share the most."""
_AHEAD_SHARED = 1
"""They must share more blocks than this."""


@dataclass(frozen=True, slots=True)
class TraceContext:
    """The blocks of one question, best first, without repeats."""

    ids: tuple[str, ...]
    elements: tuple[int, ...]
    """64 bits each."""
    groups: tuple[int, ...]
    """A number for each block's document, which its id begins with."""


@dataclass(slots=True)
class _Cache:
    """Prefix cache of at most ``capacity`` nodes (0: no limit), followed by the product's index."""

    capacity: int
    queue: LeafQueue
    index: ContextIndex = field(default_factory=lambda: ContextIndex(_ROOT_KEY))
    slots: dict[bytes, int] = field(default_factory=lambda: {_ROOT_KEY: ROOT})
    keys: dict[int, bytes] = field(default_factory=dict)
    n_evicted: int = 0

    def take(self, path: Sequence[int], counts: Sequence[int]) -> int:
        """Use a path, adding what is missing; returns how many leading elements were there."""
        key, slot, n_hits = _ROOT_KEY, ROOT, 0
        for element, count in zip(path, counts, strict=True):
            below = _key(key, element)
            if below not in self.slots:
                break
            key, slot = below, self.slots[below]
            self.queue.use(slot, count=count)
            n_hits += 1
        if slot != ROOT:
            self.queue.pin(slot)  # the path in use stays; what stands before this has a child
        for element, count in zip(path[n_hits:], counts[n_hits:], strict=True):
            if self.capacity and len(self.queue) >= self.capacity and not self._evict():
                break
            below = _key(key, element)
            new = self.queue.insert(slot, count=count)
            self.index.apply(Committed(below, key, element, 1))
            self.slots[below] = new
            self.keys[new] = below
            self.queue.pin(new)
            if slot != ROOT:
                self.queue.unpin(slot)
            key, slot = below, new
        if slot != ROOT:
            self.queue.unpin(slot)
        return n_hits

    def count_cached(self, path: Sequence[int]) -> int:
        """How many leading elements of a path are there."""
        key, n = _ROOT_KEY, 0
        for element in path:
            key = _key(key, element)
            if key not in self.slots:
                break
            n += 1
        return n

    def _evict(self) -> bool:
        victim = self.queue.victim()
        if victim is None:
            return False
        self.queue.remove(victim)
        key = self.keys.pop(victim)
        del self.slots[key]
        self.index.apply(Evicted(key))
        self.n_evicted += 1
        return True


def _key(parent: bytes, element: int) -> bytes:
    return xxhash.xxh3_128_digest(parent + element.to_bytes(8, "little"))


def measure(
    trace: Path,
    *,
    k: int = 10,
    capacity: int = 0,
    eviction: Policy = "learned",
    mode: Mode = "online",
    method: Method = "overlap",
    effort: float = 1.0,
    tail: bool = True,
    documents: bool = True,
    shuffle: int | None = None,
    limit: int = 0,
    idle: int = 0,
    window: int = 1,
    foresight: Path | None = None,
    emit: Path | None = None,
) -> dict[str, Any]:
    """Run a trace through a cache of ``capacity`` blocks (0: no limit).

    ``k``: blocks taken of each context, after repeats are dropped. ``shuffle``: seed of ``random.Random``
    that shuffles the contexts, before ``limit`` of them (0: all) are taken. ``mode``: *online* orders each
    context when it comes, *offline* knows all of them and schedules them (``effort``). ``tail``: order what
    is not cached by statistics, else by relevance; ``documents``: let them know each block's document.
    ``idle``: blocks prefilled between requests, per block asked for. ``window``: so many requests
    are known at a time, the one that is served included; they are served as they come, and what is not
    cached is ordered for those waiting. ``foresight``: a trace of made-up questions to learn from first.
    ``emit``: a file to write, one JSON list of block ids a line, in the order of execution.

    Raises KnownError for a trace that cannot be read, SettingsError for options that do not go together.
    """
    if k < 1 or window < 1 or min(capacity, limit, idle) < 0 or 0 < capacity < k:
        raise SettingsError(
            "Of k, window, capacity, limit and idle blocks, one makes no sense.",
            hint="A cache holds at least k blocks.",
        )
    contexts = read_trace(trace, k, shuffle, limit)
    cache = _Cache(capacity, LeafQueue(eviction))
    statistics = OrderStatistics()
    for made_up in read_trace(foresight, k, None, 0) if foresight else ():
        statistics.record(made_up.elements, asked=False)
    extra: dict[str, Any] = {}
    if mode == "offline":
        executed = _offline(contexts, method, effort)
    elif method == "contextpilot":
        raise SettingsError("ContextPilot's order is measured offline only.", hint="Add `--mode offline`.")
    else:
        run = _Online(cache, statistics, method == "overlap", tail, documents, idle)
        executed = ((context, run.order(context)) for context in run.arrivals(contexts, window))
        extra = run.extra
    hits = 0
    lines: list[str] = []
    for context, order in executed:
        cache.queue.next_request()
        path = [context.elements[i] for i in order]
        hits += cache.take(path, [statistics.count(element) + 1 for element in path])
        if emit is not None:
            lines.append(json.dumps([context.ids[i] for i in order], ensure_ascii=False))
        if mode == "online":
            run.done(context)
        else:
            statistics.record(context.elements, asked=False)
    if emit is not None:
        emit.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    n_blocks = sum(len(context.ids) for context in contexts)
    return {
        "hit_ratio": hits / n_blocks if n_blocks else 0.0,
        "contexts": len(contexts),
        "blocks": n_blocks,
        "hits": hits,
        "k": k,
        "capacity_blocks": capacity,
        "eviction": eviction,
        "mode": mode,
        "method": method,
        "window": window,
        "nodes": len(cache.queue),
        "evicted": cache.n_evicted,
        **extra,
    }


class _Online:
    """Orders contexts as they come; knows nothing of those that have not."""

    def __init__(
        self,
        cache: _Cache,
        statistics: OrderStatistics,
        aligned: bool,
        tail: bool,
        documents: bool,
        idle: int,
    ) -> None:
        self._cache = cache
        self._statistics = statistics
        self._aligned = aligned
        self._tail = tail
        self._documents = documents
        self._idle = idle
        self._budget = 0
        self._recent: deque[TraceContext] = deque(maxlen=_AHEAD_CONTEXTS)
        self._fixed: list[int] = []
        self._waiting: list[frozenset[int]] = []
        self.extra: dict[str, Any] = {"idle_blocks": 0, "expert": "relevance"}

    def arrivals(self, contexts: Sequence[TraceContext], window: int) -> Iterator[TraceContext]:
        """The contexts in the order they came: nobody waits for a later one. ``_waiting`` are the next."""
        sets = [frozenset(context.elements) for context in contexts] if window > 1 else []
        for index, context in enumerate(contexts):
            self._waiting = sets[index + 1 : index + window]
            yield context

    def order(self, context: TraceContext) -> tuple[int, ...]:
        if not self._aligned:
            return tuple(range(len(context.ids)))
        order, match = align(
            context.elements,
            self._cache.index,
            _ROOT_KEY,
            statistics=self._statistics if self._tail else None,
            groups=context.groups if self._documents else None,
            waiting=self._waiting,
        )
        self._fixed = [context.elements[i] for i in match.order]
        return order

    def done(self, context: TraceContext) -> None:
        """After the request: learn from it, and use the pause."""
        groups = context.groups if self._documents else None
        self._statistics.record(context.elements, fixed=self._fixed, groups=groups)
        self.extra["expert"] = self._statistics.expert.name
        if self._idle:
            self._budget += self._idle * len(context.ids)
            self._build_ahead(context)
            self._recent.append(context)

    def _build_ahead(self, context: TraceContext) -> None:
        """Prefill what this context shares with recent ones, as a path of its own, for the next to share."""
        mine = set(context.elements)
        shared = ((len(mine.intersection(other.elements)), i) for i, other in enumerate(self._recent))
        best = sorted((entry for entry in shared if entry[0] > _AHEAD_SHARED), reverse=True)
        for _, i in best[:_AHEAD_TRIES]:
            both = mine.intersection(self._recent[i].elements)
            places = [j for j, element in enumerate(context.elements) if element in both]
            elements = [context.elements[j] for j in places]
            groups = [context.groups[j] for j in places] if self._documents else None
            if len(self._cache.index.best_path(_ROOT_KEY, elements).order) == len(elements):
                continue
            order = self._statistics.tail((), elements, groups=groups)  # afresh: no old path decides here
            missing = len(order) - self._cache.count_cached([elements[j] for j in order])
            if missing > self._budget:
                continue
            self._budget -= missing
            self.extra["idle_blocks"] += missing
            path = [elements[j] for j in order]
            self._cache.take(path, [self._statistics.count(element) for element in path])


def _offline(
    contexts: Sequence[TraceContext], method: Method, effort: float
) -> Iterator[tuple[TraceContext, tuple[int, ...]]]:
    if method == "relevance":
        yield from ((context, tuple(range(len(context.ids)))) for context in contexts)
        return
    plan = schedule([context.elements for context in contexts], method=method, effort=effort)
    for index in plan.order:
        yield contexts[index], plan.blocks[index]


def read_trace(path: Path, k: int, shuffle: int | None, limit: int) -> list[TraceContext]:
    """The contexts of a trace file. Raises KnownError if it is none."""
    rows: list[list[str]] = []
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8") as file:
            for line in file:
                blocks = json.loads(line).get("blocks")
                if blocks:
                    rows.append(list(dict.fromkeys(map(str, blocks))))
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise KnownError(
            "The trace cannot be read.", hint="It holds one JSON object a line.", details=str(error)
        ) from error
    if shuffle is not None:
        random.Random(shuffle).shuffle(rows)
    numbers: dict[str, int] = {}
    contexts = []
    for row in rows[:limit] if limit else rows:
        ids = tuple(row[:k])
        elements = tuple(xxhash.xxh3_64_intdigest(name.encode()) for name in ids)
        groups = tuple(numbers.setdefault(_document(name), len(numbers)) for name in ids)
        contexts.append(TraceContext(ids, elements, groups))
    return contexts


def _document(block_id: str) -> str:
    """The part of a block's id that names its document: ``a#01``, ``a.1``, ``a_0-9``; else all of it."""
    for separator in "#.":
        if separator in block_id:
            return block_id.rpartition(separator)[0]
    return block_id.partition("_")[0]
