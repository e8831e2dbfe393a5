"""What the context index costs with very many cached contexts: time per question, and memory.

The contexts are made up. A library of ``contexts`` / 5 documents of 12 blocks each; a question is about one
document, chosen Zipf-like (rank r with weight 1 / (r + 10)); its context holds blocks of that document and of
the two beside it, geometrically fewer of those further down in each, a fifth of it are blocks from anywhere,
Zipf-like as well, in random order. Every context is aligned, its prompt's path goes into the tree, nothing is
evicted until the end: the tree is larger than any cache that a machine could hold.
"""

import gc
import random
import statistics as stats
import time
import tracemalloc
from array import array
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import psutil
import xxhash

from core.engine.eviction import ROOT, LeafQueue
from core.errors import SettingsError
from core.index import ContextIndex, OrderStatistics
from core.plan.align import align
from core.plan.schedule import schedule
from core.types import CacheEvent, Committed, Evicted

_ROOT_KEY = bytes(16)
_TIMED = 5_000
"""The last so many contexts are timed, when the index is full."""
_BLOCKS_PER_DOCUMENT = 12
_FAR_SHARE = 0.2
_TOKENS = 256
_FOREIGN, _PRICE = 8 * _TOKENS, 0.3


def measure(contexts: int = 100_000, k: int = 15) -> dict[str, Any]:
    """Microseconds (medians and 99th percentiles), bytes per context, seconds.

    ``align_us``: cached path and order of the rest, from a list of 64-bit integers to an order.
    ``company_us``: the best path on which blocks may stand that were not asked for. ``insert_us``: events of
    one context's new nodes; ``learn_us``: remembering what was asked together.
    ``evict_us``: choosing a victim, removing it, and its event, every node being in the queue.
    ``bytes_per_context``: growth of the process's memory over ``contexts``, Python's dictionaries included;
    ``queue_bytes_per_node`` is apart, since the RAM tier fills that queue. ``offline``: scheduling all
    contexts as a batch that is known in advance.
    """
    if contexts < 1 or k < 1:
        raise SettingsError("The number of contexts and k must be at least 1.")
    generated = list(_contexts(contexts, k))
    gc.collect()
    gc.freeze()  # the made-up contexts are not what is measured: the collector need not walk them
    process = psutil.Process()
    before = process.memory_info().rss
    index, statistics = ContextIndex(_ROOT_KEY), OrderStatistics()
    company_us, align_us, insert_us, learn_us = [], [], [], []
    orders: list[array[int]] = []
    first_timed = max(0, contexts - _TIMED)
    for number, context in enumerate(generated):
        started = time.perf_counter()
        order, match = align(context, index, _ROOT_KEY, statistics=statistics)
        aligned = time.perf_counter()
        index.best_company(_ROOT_KEY, context, most_foreign=_FOREIGN, price=_PRICE)
        accompanied = time.perf_counter()
        path = [context[i] for i in order]
        events = _commits(path, len(match.order))
        fixed = path[: len(match.order)]
        committing = time.perf_counter()
        index.apply_all(events)
        committed = time.perf_counter()
        statistics.record(context, fixed=fixed)
        done = time.perf_counter()
        if number >= first_timed:
            company_us.append((accompanied - aligned) * 1e6)
            align_us.append((aligned - started) * 1e6)
            insert_us.append((committed - committing) * 1e6)
            learn_us.append((done - committed) * 1e6)
        orders.append(array("H", order))
    gc.collect()
    grown = process.memory_info().rss - before
    gc.unfreeze()
    n_nodes = len(index)
    paths = ([context[i] for i in order] for context, order in zip(generated, orders, strict=True))
    evict_us, queue_bytes = _evict(index, paths)
    offline_s, offline_peak_mb = _offline(generated)
    return {
        "contexts": contexts,
        "k": k,
        "nodes": n_nodes,
        "align_us_p50": stats.median(align_us),
        "align_us_p99": _percentile(align_us, 0.99),
        "company_us_p50": stats.median(company_us),
        "company_us_p99": _percentile(company_us, 0.99),
        "insert_us_p50": stats.median(insert_us),
        "insert_us_p99": _percentile(insert_us, 0.99),
        "learn_us_p50": stats.median(learn_us),
        "learn_us_p99": _percentile(learn_us, 0.99),
        "evict_us_p50": stats.median(evict_us),
        "evict_us_p99": _percentile(evict_us, 0.99),
        "bytes_per_context": grown / contexts,
        "queue_bytes_per_node": queue_bytes / n_nodes,
        "offline_s": offline_s,
        "offline_peak_mb": offline_peak_mb,
    }


def _contexts(n: int, k: int) -> Iterator[list[int]]:
    rng = random.Random(0)
    n_documents = max(n // 5, k)  # so many that a context can be filled
    weights = list(accumulate(1 / (rank + 10) for rank in range(n_documents)))

    def document() -> int:
        return bisect(weights, rng.random() * weights[-1]) % n_documents

    for _ in range(n):
        about = document()
        chosen: dict[int, None] = {}
        while len(chosen) < k:
            if rng.random() < _FAR_SHARE:
                where = document()
            else:
                where = (about + rng.choice((0, 0, 0, 1, 2))) % n_documents
            place = min(int(rng.expovariate(0.25)), _BLOCKS_PER_DOCUMENT - 1)
            chosen[where * _BLOCKS_PER_DOCUMENT + place] = None
        blocks = [xxhash.xxh3_64_intdigest(block.to_bytes(8, "little")) for block in chosen]
        rng.shuffle(blocks)
        yield blocks


def _key(parent: bytes, element: int) -> bytes:
    return xxhash.xxh3_128_digest(parent + element.to_bytes(8, "little"))


def _commits(path: Sequence[int], n_cached: int) -> list[CacheEvent]:
    """The events of a path whose first ``n_cached`` elements are there."""
    key = _ROOT_KEY
    events: list[CacheEvent] = []
    for depth, element in enumerate(path):
        below = _key(key, element)
        if depth >= n_cached:
            events.append(Committed(below, key, element, _TOKENS, f"{element:016x}"))
        key = below
    return events


def _evict(index: ContextIndex, paths: Iterable[Sequence[int]]) -> tuple[list[float], int]:
    """Microseconds of each eviction, every node of the index being in the queue, and the queue's bytes."""
    queue = LeafQueue()
    slot_of = {_ROOT_KEY: ROOT}
    key_of: dict[int, bytes] = {}
    for number, path in enumerate(paths):
        queue.next_request()
        key, slot = _ROOT_KEY, ROOT
        for element in path:
            key = _key(key, element)
            if key in slot_of:
                slot = slot_of[key]
                queue.use(slot)
            else:
                slot = queue.insert(slot, count=element % 7, seconds=1 + number % 5, n_bytes=1000)
                slot_of[key] = slot
                key_of[slot] = key
    spent = []
    for _ in range(min(_TIMED, len(queue))):
        started = time.perf_counter()
        victim = queue.victim()
        assert victim is not None
        queue.remove(victim)
        index.apply(Evicted(key_of[victim]))
        spent.append((time.perf_counter() - started) * 1e6)
    return spent, queue.n_bytes


def _offline(contexts: Sequence[Sequence[int]]) -> tuple[float, float]:
    """Seconds and peak megabytes (Python's own count, in a second run) of scheduling ``contexts``."""
    started = time.perf_counter()
    schedule(contexts, method="overlap")
    seconds = time.perf_counter() - started
    tracemalloc.start()
    schedule(contexts, method="overlap")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return seconds, peak / 1e6


def _percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
