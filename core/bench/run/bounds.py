"""What no policy can beat on this trace, and what the machine allows."""

import json
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from core.bench import reuse
from core.bench.run.measured import Measured
from core.bench.run.questions import Workload
from core.bench.run.workloads import Source
from core.engine.protocol import CancelFlag, Engine

_PROBE_TOKENS = 256
_TRIES = 5
_MOST_SCHEDULED = 5000


def of(workload: Workload, rows: Mapping[str, Sequence[Measured]], source: Source) -> dict[str, Any]:
    """Shares of blocks: seen before (the bound of all reuse), and what exact prefixes reach in the simulator
    of ``bench reuse``, one by one and with all questions known. Of single questions, without conversations.
    """
    seen: set[str] = set()
    held: dict[str, set[str]] = {}
    n = n_seen = n_repeated = 0
    for asked in workload.questions:
        here = held.setdefault(asked.session, set())
        for passage in asked.passages:
            id_ = passage.block.id
            if asked.counted:
                n += 1
                n_seen += id_ in seen
                n_repeated += id_ in here
            seen.add(id_)
            here.add(id_)
    found: dict[str, Any] = {
        "blocks": n,
        "blocks_seen_before": n_seen / n if n else None,
        "blocks_in_conversation": n_repeated / n if n else None,
        "reuse_online": None,
        "reuse_offline": None,
        "reuse_relevance": None,
    }
    found["best_measured_hit_ratio"] = max((_hit_ratio(some) for some in rows.values() if some), default=None)
    contexts = [[p.block.id for p in asked.passages] for asked in workload.questions if asked.passages]
    if not contexts:
        return found
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.jsonl"
        trace.write_text(
            "".join(json.dumps({"blocks": blocks}) + "\n" for blocks in contexts), encoding="utf-8"
        )
        k = max(source.k, *map(len, contexts))
        found["reuse_online"] = reuse.measure(trace, k=k, documents=False)["hit_ratio"]
        found["reuse_relevance"] = reuse.measure(trace, k=k, method="relevance")["hit_ratio"]
        if len(contexts) <= _MOST_SCHEDULED:
            found["reuse_offline"] = reuse.measure(trace, k=k, mode="offline")["hit_ratio"]
    return found


def _hit_ratio(rows: Sequence[Measured]) -> float:
    total = sum(row.n_prompt - row.n_riding for row in rows)
    return 1 - sum(row.n_prefilled for row in rows) / total if total else 0.0


def machine(engine: Engine) -> tuple[dict[str, float | None], float]:
    """Restore bandwidth and what restoring costs against prefilling; bytes of KV a token.

    Empties the memory.
    """
    tokens = engine.tokenize("one two three four " * _PROBE_TOKENS, special=False)[:_PROBE_TOKENS]
    engine.clear()
    started = time.perf_counter()
    engine.prefill(tokens, 0, CancelFlag())
    prefill_s = time.perf_counter() - started
    snapshot = engine.save(0, len(tokens))
    if snapshot is None:
        engine.clear()
        return {"restore_gb_s": None, "prefill_token_ms": 1000 * prefill_s / len(tokens)}, 0.0
    took = []
    for _ in range(_TRIES):
        engine.clear()
        started = time.perf_counter()
        engine.load(snapshot, 0, len(tokens))
        took.append(time.perf_counter() - started)
    engine.clear()
    restore_s = statistics.median(took)
    return {
        "restore_gb_s": len(snapshot) / restore_s / 1e9,
        "restore_against_prefill": restore_s / prefill_s,
        "prefill_token_ms": 1000 * prefill_s / len(tokens),
    }, len(snapshot) / len(tokens)
