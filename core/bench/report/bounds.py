"""What bounds a run, in words: figures that the harness is known to give, and what follows from them."""

from collections.abc import Mapping
from typing import Any

from core.bench.report import units
from core.bench.report.figures import Result, number

_WORDS = {
    "blocks": "Passages asked for, in all",
    "blocks_seen_before": "Passages asked for before, share of all: the bound of reusing passages",
    "blocks_in_conversation": "Passages asked for before in the same conversation, share of all",
    "reuse_relevance": "Leading passages already cached, by relevance, share of all",
    "reuse_online": "Leading passages already cached, ordered question by question, share of all",
    "reuse_offline": "Leading passages already cached, all questions known in advance, share of all",
    "best_measured_hit_ratio": "Best hit ratio of this run, share of prompt tokens",
    "restore_gb_s": "Restoring from RAM on this machine",
    "restore_against_prefill": "Restoring against prefilling the same tokens, as a ratio of times",
    "prefill_token_ms": "Prefilling one token on this machine",
}


def rows(result: Result) -> list[tuple[str, str]]:
    """(words, figure with its unit)."""
    found = [_named(name, value) for name, value in result.bounds]
    known = {name: number(value) for name, value in result.bounds}
    online, offline = known.get("reuse_online"), known.get("reuse_offline")
    if online is not None and offline is not None:
        found.append(
            (
                "What knowing all questions in advance would add, share of all",
                units.plain(offline - online, 3),
            )
        )
    return found


def order_rows(result: Result) -> list[tuple[str, str]]:
    return [_named(name, value) for name, value in result.order_sensitivity]


def kind_rows(result: Result) -> list[tuple[str, str]]:
    """A kind of annotation or of passages each: what it changes in the log-likelihood of known answers."""
    return [
        *_kinds("Annotation", result.annotations, "none"),
        *_kinds("Passages that share text", result.references, "whole ones"),
    ]


def _kinds(what: str, found: Mapping[str, Any], base: str) -> list[tuple[str, str]]:
    kinds = found.get("kinds")
    rows = []
    for name, kind in kinds.items() if isinstance(kinds, Mapping) else ():
        if isinstance(kind, Mapping):
            change, low, high = (number(kind.get(key)) for key in ("difference", "low", "high"))
            range_ = units.interval(low, high, signed=True)
            rows.append((f"{what}: {name}", f"{units.nats(change)} nats a token against {base} ({range_})"))
    return rows


def _named(name: str, value: object) -> tuple[str, str]:
    label, text = units.named(name, value)
    return _WORDS.get(name, label), text
