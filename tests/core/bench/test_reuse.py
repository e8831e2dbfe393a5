"""The simulated cache against a dictionary of tuples that knows nothing of index, statistics or queue."""

import gzip
import json
import random

import pytest

from core.bench.reuse import _ROOT_KEY, _Cache, measure, read_trace
from core.engine.eviction import LeafQueue
from core.errors import KnownError, SettingsError
from core.index import OrderStatistics
from core.plan.align import align


@pytest.fixture
def trace(tmp_path):
    """Questions about 12 topics of 15 blocks, with an empty one and a repeated block among them."""
    rng = random.Random(5)
    path = tmp_path / "trace.jsonl.gz"
    with gzip.open(path, "wt") as file:
        for number in range(150):
            topic = int(rng.paretovariate(1)) % 12
            blocks = [f"t-{topic}#{int(rng.expovariate(0.3)):03d}" for _ in range(9)]
            file.write(json.dumps({"qid": number, "blocks": blocks if number % 40 else []}) + "\n")
    return path


def score(lines, capacity=0):
    """Hits of these orders in a cache of paths: leaves unused for longest leave first."""
    used, hits = {}, 0
    for now, blocks in enumerate(lines):
        paths = [tuple(blocks[:n]) for n in range(1, len(blocks) + 1)]
        n_hits = 0
        while n_hits < len(paths) and paths[n_hits] in used:
            n_hits += 1
        hits += n_hits
        for path in paths[:n_hits]:
            used[path] = now
        for path in paths[n_hits:]:
            if capacity and len(used) >= capacity:
                inner = {held[:-1] for held in used}
                leaves = [held for held in used if held not in inner and used[held] < now]
                del used[min(leaves, key=used.get)]
            used[path] = now
    return hits


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tail": False},
        {"documents": False},
        {"method": "relevance"},
        {"window": 4},
        {"eviction": "lru", "capacity": 60},
        {"eviction": "lru", "capacity": 20, "window": 3},
        {"shuffle": 3, "limit": 50, "k": 5},
    ],
)
def test_an_independent_simulator_counts_the_same(trace, tmp_path, options):
    emitted = tmp_path / "orders.jsonl"
    result = measure(trace, emit=emitted, **options)
    lines = [json.loads(line) for line in emitted.read_text().splitlines()]
    contexts = read_trace(trace, options.get("k", 10), options.get("shuffle"), options.get("limit", 0))
    assert [sorted(line) for line in lines] == [sorted(context.ids) for context in contexts]
    assert result["contexts"] == len(lines)
    assert result["blocks"] == sum(map(len, lines))
    assert result["hits"] == score(lines, options.get("capacity", 0))
    assert result["hit_ratio"] == result["hits"] / result["blocks"]
    again = tmp_path / "again.jsonl"
    assert measure(trace, emit=again, **options) == result
    assert again.read_text() == emitted.read_text()


def test_order_statistics_and_pauses_help(trace):
    relevance = measure(trace, method="relevance")["hits"]
    aligned = measure(trace)["hits"]
    idle = measure(trace, idle=1)
    assert relevance < aligned < idle["hits"]
    assert 0 < idle["idle_blocks"] <= idle["blocks"]
    assert measure(trace, window=4)["hits"] >= aligned


def test_a_small_cache_never_holds_more(trace):
    for eviction in ("learned", "lru"):
        result = measure(trace, capacity=30, eviction=eviction, idle=1)
        assert result["nodes"] == 30
        assert result["evicted"] > 0


def test_twenty_thousand_requests_in_a_cache_of_forty_blocks():
    rng = random.Random(6)
    cache, statistics = _Cache(40, LeafQueue()), OrderStatistics()
    for number in range(20_000):
        context = [int(rng.paretovariate(0.6)) * 2**33 % (2**64 - 59) for _ in range(4)]
        context = list(dict.fromkeys(context))
        order, match = align(context, cache.index, _ROOT_KEY, statistics=statistics)
        path = [context[i] for i in order]
        cache.queue.next_request()
        assert cache.take(path, [1] * len(path)) == len(match.order)
        statistics.record(context, fixed=path[: len(match.order)])
        if number == 500:
            size = cache.queue.n_bytes + cache.index.n_bytes
    assert len(cache.index) == len(cache.queue) == len(cache.keys) == 40
    assert cache.queue.n_bytes + cache.index.n_bytes == size
    assert cache.n_evicted > 10_000


def test_made_up_questions_are_learned_from(trace):
    assert measure(trace, foresight=trace)["contexts"] == measure(trace)["contexts"]


@pytest.mark.parametrize("method", ["overlap", "contextpilot", "relevance"])
def test_offline_orders_are_scored_as_they_are_emitted(trace, tmp_path, method):
    emitted = tmp_path / "orders.jsonl"
    result = measure(trace, mode="offline", method=method, emit=emitted)
    lines = [json.loads(line) for line in emitted.read_text().splitlines()]
    assert result["hits"] == score(lines)
    assert sorted(map(sorted, lines)) == sorted(
        sorted(context.ids) for context in read_trace(trace, 10, None, 0)
    )


def test_knowing_the_batch_helps(trace):
    offline = {m: measure(trace, mode="offline", method=m)["hits"] for m in ("overlap", "contextpilot")}
    assert offline["overlap"] >= offline["contextpilot"]
    assert offline["overlap"] >= measure(trace)["hits"]


def test_what_makes_no_sense_is_refused(trace, tmp_path):
    for options in ({"k": 0}, {"capacity": 3}, {"window": 0}, {"idle": -1}, {"method": "contextpilot"}):
        with pytest.raises(SettingsError):
            measure(trace, **options)
    for text in ("no json", "[1]", '{"blocks": 5}'):
        broken = tmp_path / "broken.jsonl"
        broken.write_text(text)
        with pytest.raises(KnownError):
            measure(broken)
    with pytest.raises(KnownError):
        measure(tmp_path / "missing")
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    assert measure(empty)["hit_ratio"] == 0.0
