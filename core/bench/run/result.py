"""From the measured rows to the JSON of a run. Pure but for the machine's name."""

import datetime as dt
import platform
import statistics as plain
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import psutil

from core import __version__
from core.bench.run.measured import Measured
from core.bench.run.questions import Workload
from core.bench.run.statistics import difference, ratio, spread
from core.bench.run.workloads import Source

_REFERENCE = "prefix"
"""Relevance order, exact: what quality is compared with where it was run; else one of the next."""
_SAME_PROMPTS = ("prefix", "offload", "last-prompt", "none")


def make(
    workload: Workload,
    rows: Mapping[str, Sequence[Measured]],
    memory: Mapping[str, Mapping[str, int | float]],
    *,
    model: str,
    source: Source,
) -> dict[str, Any]:
    """Everything but bounds and the harness's own figures. Only questions that count are looked at."""
    counted = {asked.qid: asked for asked in workload.questions if asked.counted}
    kept = {name: {row.qid: row for row in found if row.qid in counted} for name, found in rows.items()}
    sessions = {qid: asked.session for qid, asked in counted.items()}
    return {
        "workload": workload.name,
        "note": workload.note,
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "version": __version__,
        "model": model,
        "machine": machine(),
        "questions": len(counted),
        "asked": len(workload.questions),
        "sessions": len(set(sessions.values())),
        "k": source.k,
        "seed": source.seed,
        "policies": {
            name: _figures(list(found.values())) | dict(memory[name]) for name, found in kept.items()
        },
        "pairs": {
            f"{one}/{other}": _pair(kept[one], kept[other], sessions) for one, other in _pairs(list(kept))
        },
        "same_tokens": _same(kept),
    }


def machine() -> dict[str, Any]:
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": psutil.cpu_count(logical=False) or psutil.cpu_count() or 0,
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "python": platform.python_version(),
    }


def _figures(rows: Sequence[Measured]) -> dict[str, Any]:
    n_prompt = sum(row.n_prompt for row in rows)
    n_needed = n_prompt - sum(row.n_riding for row in rows)
    found, wanted = (sum(row.evidence[i] for row in rows) for i in range(2))
    anywhere = [row.n_token_level for row in rows if row.n_token_level is not None]
    exact = [row.exact for row in rows if row.exact is not None]
    energy = [row.energy_j for row in rows if row.energy_j is not None]
    return {
        "questions": len(rows),
        "prefill_s": spread([row.prefill_s for row in rows]),
        "restore_s": spread([row.restore_s for row in rows]),
        "prefill_restore_s": spread([row.prefill_s + row.restore_s for row in rows]),
        "ttft_s": spread([row.ttft_s for row in rows]),
        "ttft_quantiles": np.quantile([row.ttft_s for row in rows], np.linspace(0, 1, 21)).tolist()
        if rows
        else [],
        "wall_s": spread([row.wall_s for row in rows]),
        "idle_s": spread([row.idle_s for row in rows]),
        "hit_ratio": _share(n_needed - sum(row.n_prefilled for row in rows), n_needed),
        "hit_ratio_by_tier": {
            "live": _share(sum(row.n_live for row in rows), n_prompt),
            "ram": _share(sum(row.n_ram for row in rows), n_prompt),
            "ssd": _share(sum(row.n_ssd for row in rows), n_prompt),
        },
        "hit_ratio_token_level": _share(sum(anywhere), n_prompt) if anywhere else None,
        "prompt_tokens": _share(n_prompt, len(rows)),
        "prompt_tokens_before_dedup": _share(n_prompt + sum(row.n_deduplicated for row in rows), len(rows)),
        "prefilled_tokens": _share(sum(row.n_prefilled for row in rows), len(rows)),
        "rider_tokens": _share(n_prompt - n_needed, len(rows)),
        "annotation_tokens": _share(sum(row.n_annotation for row in rows), len(rows)),
        "moved": _share(sum(row.moved for row in rows), len(rows)),
        "plan_ms": spread([1000 * row.plan_s for row in rows]),
        "plan_steps_ms": {
            "prepare": spread([1000 * (row.plan_s - row.order_s - row.locate_s) for row in rows]),
            "order": spread([1000 * row.order_s for row in rows]),
            "locate": spread([1000 * row.locate_s for row in rows]),
        },
        "reopen_s": next((row.reopen_s for row in rows if row.reopen_s is not None), None),
        "gold_logprob_per_token": _mean([row.logprob for row in rows]),
        "f1": _mean([row.f1 for row in rows]),
        "exact_match": _share(sum(exact), len(exact)),
        "evidence_kept": _share(found, wanted),
        "kl": _mean([row.kl for row in rows]),
        "energy_j": plain.mean(energy) if energy else None,
    }


def _pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Everything against relevance order, and ours against everything."""
    ours = [name for name in names if name == "slipstream"]
    reference = [name for name in names if name == _REFERENCE]
    found = [(one, other) for one in ours for other in names if other != one]
    found += [(one, other) for other in reference for one in names if one not in (other, *ours)]
    parts = [name for name in names if name.startswith("slipstream-")]
    found += [(part, one) for one in ours for part in parts]
    if "contextpilot" in names and "contextpilot-schedule" in names:
        found.append(("contextpilot", "contextpilot-schedule"))
    return found


def _pair(
    one: Mapping[str, Measured], other: Mapping[str, Measured], sessions: Mapping[str, str]
) -> dict[str, float | int | None]:
    """The same questions under two policies."""
    qids = [qid for qid in one if qid in other]
    clusters = [sessions[qid] for qid in qids]
    value, low, high = ratio(
        [one[qid].prefill_s + one[qid].restore_s for qid in qids],
        [other[qid].prefill_s + other[qid].restore_s for qid in qids],
        clusters,
    )
    ttft, ttft_low, ttft_high = ratio(
        [one[qid].ttft_s for qid in qids], [other[qid].ttft_s for qid in qids], clusters
    )
    known = [
        (qid, mine - theirs)
        for qid in qids
        if (mine := one[qid].logprob) is not None and (theirs := other[qid].logprob) is not None
    ]
    change, change_low, change_high = difference(
        [delta for _, delta in known], [sessions[qid] for qid, _ in known]
    )
    return {
        "questions": len(qids),
        "prefill_ratio": value,
        "low": low,
        "high": high,
        "ttft_ratio": ttft,
        "ttft_low": ttft_low,
        "ttft_high": ttft_high,
        "logprob_questions": len(known),
        "logprob_difference": change,
        "logprob_low": change_low,
        "logprob_high": change_high,
    }


def _same(kept: Mapping[str, Mapping[str, Measured]]) -> dict[str, Any]:
    """Prompts of equal tokens under two policies, and whether the logits behind them were equal.

    ``differing_prompts``: questions for which policies that change nothing had other tokens. It must be 0, as
    must ``differing_logits``.
    """
    plain_ones = [name for name in _SAME_PROMPTS if name in kept]
    differing = sum(
        len({kept[name][qid].path for name in plain_ones if qid in kept[name]}) > 1
        for qid in {qid for name in plain_ones for qid in kept[name]}
    )
    behind: dict[str, set[str]] = {}
    n_equal = 0
    for found in kept.values():
        for row in found.values():
            if row.logits and row.kl is None:
                known = behind.setdefault(row.path, set())
                n_equal += bool(known)
                known.add(row.logits)
    return {
        "differing_prompts": differing,
        "compared_logits": n_equal,
        "differing_logits": sum(len(known) > 1 for known in behind.values()),
    }


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return plain.mean(known) if known else None
