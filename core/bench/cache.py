"""What the tiers cost and save: restart, switching, restore and save rates, bookkeeping, an eviction storm.

The first four run on the real model; bookkeeping and storm on the real cache, tiers and index over a memory
that computes nothing, since they are about everything else.
"""

import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from core.config import Settings
from core.engine.llama import LlamaEngine
from core.engine.model_files import choose_model
from core.engine.prefix_cache import PrefixCache, root_key
from core.engine.protocol import CancelFlag, Engine, Snapshot
from core.engine.snapshots import SnapshotStore
from core.engine.ssd_tier import SsdTier
from core.errors import SlipstreamError
from core.index import ContextIndex, OrderStatistics
from core.plan import PlanRequest, make
from core.prompt import end_key, lay_out
from core.types import (
    Block,
    CacheEvent,
    Committed,
    Context,
    Evicted,
    Passage,
    Place,
    Prompt,
    Segment,
    SegmentKind,
    Tier,
    Tokens,
)

_GB = 1e9
_BLOCK, _HEAD, _ASK = 480, 60, 40
_PAIRS = 3


def measure(settings: Settings) -> dict[str, float | int | str]:
    """All figures; medians of pairs in one run. Ratios are against cold prefill unless they say otherwise."""
    engine = LlamaEngine(choose_model(settings.model), settings)
    try:
        return {
            "model": engine.info.name,
            **_restart(engine),
            **_switching(engine),
            **_rates(engine),
            **_saving(engine),
            **_bookkeeping(),
            **_storm(),
        }
    finally:
        engine.close()


# --- on the real model ------------------------------------------------------------------------------------


def _restart(engine: LlamaEngine) -> dict[str, float]:
    """The same question of 4,000 tokens cold, and in a new cache that finds the snapshots of the last one."""
    ratios, reading = [], []
    for pair in range(_PAIRS):
        with tempfile.TemporaryDirectory() as folder:
            prompt = _prompt(
                engine, [_random(_HEAD, 0), *(_random(_BLOCK, 10 * pair + i) for i in range(1, 9))], pair
            )
            ssd = _ssd(folder)
            cache = _cache(engine, ssd=ssd)
            cold_s = _run(cache, prompt)
            cache.retire()
            ssd.close()
            sequential_s = _read_files(folder)
            _drop_page_cache(folder)
            ssd = _ssd(folder)
            cache = _cache(engine, ssd=ssd)
            started = time.perf_counter()
            restore_s = sum(
                step.seconds for step in cache.prefill(prompt, CancelFlag()) if step.tier is Tier.SSD
            )
            ratios.append((time.perf_counter() - started) / cold_s)
            reading.append(sequential_s / restore_s)
            ssd.close()
    return {
        "restart_ratio": statistics.median(ratios),
        "ssd_restore_ratio_of_sequential": statistics.median(reading),
    }


def _switching(engine: LlamaEngine) -> dict[str, float]:
    """Eight conversations of 3,000 tokens in turn: our RAM tier against keeping the last prompt only."""
    conversations = [
        [_random(_HEAD, 0), *(_random(_BLOCK, 100 * c + i) for i in range(1, 7))] for c in range(8)
    ]
    cache = _cache(engine, ram=4 << 30)
    for number, segments in enumerate(conversations):
        _run(cache, _prompt(engine, segments, number))
    ours = [_run(cache, _prompt(engine, conversations[n % 8], 1000 + n)) for n in range(40)]
    last_prompt = _cache(engine)
    _run(last_prompt, _prompt(engine, conversations[-1], 1))
    # Each of theirs costs a whole prefill: four are enough for a mean.
    theirs = [
        _run(last_prompt, _prompt(engine, segments, 2000 + n)) for n, segments in enumerate(conversations[:4])
    ]
    return {"switch_ratio": statistics.mean(ours) / statistics.mean(theirs)}


def _rates(engine: LlamaEngine) -> dict[str, float]:
    """One chunk after the other from RAM, each against prefilling it."""
    prompt = _prompt(engine, [_random(_BLOCK, i) for i in range(8)], 0)
    engine.clear()
    computed, snapshots = [], []
    for chunk in prompt.chunks[:-1]:
        started = time.perf_counter()
        engine.prefill(chunk.tokens, chunk.start, CancelFlag())
        computed.append(time.perf_counter() - started)
    for chunk in prompt.chunks[:-1]:
        snapshot = engine.save(chunk.start, chunk.end)
        if snapshot is None:
            return {}
        snapshots.append(snapshot)
    loaded = []
    for _ in range(_PAIRS):
        engine.clear()
        for chunk, snapshot in zip(prompt.chunks, snapshots, strict=False):
            started = time.perf_counter()
            engine.load(snapshot, chunk.start, chunk.end)
            loaded.append(time.perf_counter() - started)
    sizes = itertools.cycle(len(snapshot) for snapshot in snapshots)
    return {
        "ram_restore_gb_s": statistics.median(size / s / _GB for size, s in zip(sizes, loaded, strict=False)),
        "ram_restore_ratio": statistics.median(loaded) / statistics.median(computed),
    }


class _TimedSaves:
    """Counts the seconds that an engine spends in ``save``."""

    def __init__(self, engine: Engine) -> None:
        self.seconds = 0.0
        self._engine = engine

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)

    def save(self, start: int, end: int) -> Snapshot | None:
        started = time.perf_counter()
        try:
            return self._engine.save(start, end)
        finally:
            self.seconds += time.perf_counter() - started


def _saving(engine: LlamaEngine) -> dict[str, float]:
    """Ten questions with answers of 24 tokens, each with other blocks: what saving added, and when."""
    timed = _TimedSaves(engine)
    cache = PrefixCache(timed, root_key(engine.fingerprint), lambda _: None, ram_budget=4 << 30)  # type: ignore[arg-type]
    prefill_s = before_s = 0.0
    for number in range(10):
        prompt = _prompt(
            engine, [_random(_HEAD, 0), *(_random(_BLOCK, 20 * number + i) for i in range(1, 4))], number
        )
        before = timed.seconds
        prefill_s += sum(s.seconds for s in cache.prefill(prompt, CancelFlag()) if s.tier is Tier.PREFILLED)
        if number:
            before_s += timed.seconds - before
        for token in range(24):
            cache.decode(500 + token, CancelFlag())
            cache.tend()
    return {
        "save_before_first_token_ratio": before_s / prefill_s,
        "save_total_ratio": timed.seconds / prefill_s,
    }


# --- without a model ----------------------------------------------------------------------------------------


class _NoMemory:
    """Satisfies KVMemory and computes nothing; a snapshot is 16 bytes a token."""

    n_ctx = 1 << 20
    can_cut = True

    def prefill(self, tokens: Tokens, start: int, cancel: CancelFlag) -> None: ...

    def decode(self, token: int, position: int, cancel: CancelFlag) -> None: ...

    def save(self, start: int, end: int) -> Snapshot | None:
        return np.zeros(16 * (end - start), np.uint8)

    def load(self, snapshot: Snapshot, start: int, end: int) -> bool:
        return len(snapshot) == 16 * (end - start)

    def cut(self, n: int) -> None: ...

    def clear(self) -> None: ...


def _bookkeeping() -> dict[str, float | int]:
    """Match, plan, prefill and tend of 500 questions with 8 of 300 blocks, once 5,000 chunks are cached."""
    root = root_key(b"bookkeeping")
    index, order = ContextIndex(), OrderStatistics()
    cache = PrefixCache(_NoMemory(), root, index.apply, ram_budget=1 << 30)
    head = Segment(SegmentKind.HEAD, _random(_HEAD, 0))
    passages, segments = _passages(300)
    random = np.random.default_rng(0)
    after = end_key([head], root)
    spent: list[float] = []
    while len(spent) < 500:
        chosen = tuple(passages[i] for i in random.choice(300, 8, replace=False))
        started = time.perf_counter()
        request = PlanRequest(Context(chosen, 8, 0.0), segments, frozenset(), after, 1 << 20)
        plan = make(request, index, order)
        planned = time.perf_counter() - started
        ask = Segment(SegmentKind.ASK, random.integers(0, 1000, _ASK, dtype=np.int32))
        prompt = lay_out([head, *plan.segments, ask], root)
        started = time.perf_counter()
        cache.locate(prompt)
        for _ in cache.prefill(prompt, CancelFlag()):
            pass
        seen = plan.considered
        fixed = [seen.names[i] for i in plan.match.order]
        order.record(seen.names, fixed=fixed, lengths=seen.lengths, groups=seen.groups)
        done = time.perf_counter() - started
        while cache.tend():
            pass
        if len(cache) >= 5000:
            spent.append(planned + done)
    return {
        "bookkeeping_ms_p50": statistics.median(spent) * 1000,
        "bookkeeping_ms_p99": statistics.quantiles(spent, n=100)[98] * 1000,
    }


def _storm() -> dict[str, float | int]:
    """2,000 short questions over 400 blocks with budgets of a fifth of them, RAM and SSD."""
    root = root_key(b"storm")
    held: set[bytes] = set()
    index = ContextIndex()

    def follow(event: CacheEvent) -> None:
        index.apply(event)
        if isinstance(event, Committed):
            held.add(event.key)
        elif isinstance(event, Evicted):
            held.discard(event.key)

    _, segments = _passages(400)
    pool = list(segments.values())
    budget = sum(16 * len(segment.tokens) for segment in pool) // 5
    random = np.random.default_rng(0)
    errors = 0
    with tempfile.TemporaryDirectory() as folder:
        ssd = SsdTier(SnapshotStore(Path(folder), budget, 1 << 40, lambda _: None))
        cache = PrefixCache(_NoMemory(), root, follow, ram_budget=budget, ssd=ssd)
        for number in range(2000):
            chosen = [pool[i] for i in random.zipf(1.3, 3) % 400]
            ask = Segment(SegmentKind.ASK, np.array([number], np.int32))
            try:
                for _ in cache.prefill(lay_out([*dict.fromkeys(chosen), ask], root), CancelFlag()):
                    pass
                cache.tend()
            except SlipstreamError:
                errors += 1
            errors += cache.n_ram_bytes > budget or ssd.n_bytes > budget or len(index) != len(held)
        cache.retire()
        ssd.close()
    return {"storm_errors": errors}


# --- helpers ------------------------------------------------------------------------------------------------


def _random(n: int, seed: int) -> Tokens:
    return np.random.default_rng(seed).integers(300, 40_000, n, dtype=np.int32)


def _prompt(engine: Engine, blocks: Sequence[Tokens], question: int) -> Prompt:
    segments = [Segment(SegmentKind.BLOCK, tokens) for tokens in blocks]
    ask = Segment(SegmentKind.ASK, _random(_ASK, 10_000 + question))
    return lay_out([*segments, ask], root_key(engine.fingerprint))


def _cache(engine: Engine, *, ram: int = 0, ssd: SsdTier | None = None) -> PrefixCache:
    return PrefixCache(engine, root_key(engine.fingerprint), lambda _: None, ram_budget=ram, ssd=ssd)


def _ssd(folder: str) -> SsdTier:
    return SsdTier(SnapshotStore(Path(folder), 1 << 40, 1 << 40, print))


def _run(cache: PrefixCache, prompt: Prompt) -> float:
    started = time.perf_counter()
    for _ in cache.prefill(prompt, CancelFlag()):
        pass
    return time.perf_counter() - started


def _passages(n: int) -> tuple[list[Passage], dict[str, Segment]]:
    passages = [
        Passage(Block.of(f"block {i}"), (Place(1, "a.txt", "/a.txt", i, 0, 1, None),), 1.0, "", 0)
        for i in range(n)
    ]
    segments = {
        p.block.id: Segment(SegmentKind.BLOCK, _random(200 + i % 300, i), p.block.id)
        for i, p in enumerate(passages)
    }
    return passages, segments


def _read_files(folder: str) -> float:
    """Seconds for plain sequential reading of all files, the page cache dropped before."""
    _drop_page_cache(folder)
    started = time.perf_counter()
    for path in sorted(Path(folder).glob("*.kv")):
        path.read_bytes()
    return time.perf_counter() - started


def _drop_page_cache(folder: str) -> None:
    if not hasattr(os, "posix_fadvise"):
        return  # macOS: figures are those of a warm page cache
    os.sync()
    for path in Path(folder).iterdir():
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
