"""The result as text of at most 110 columns."""

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from core.bench.report import units
from core.bench.report.bounds import kind_rows, order_rows, rows
from core.bench.report.escape import one_line
from core.bench.report.figures import Pair, Policy, Result, read
from core.bench.report.targets import judge
from core.bench.report.words import same_tokens

WIDTH = 110
_NAME = 18
_PAIR = 44


@dataclass(frozen=True, slots=True)
class _Column:
    """``group`` stands above the first column of those that share it."""

    group: str
    head: str
    width: int
    cell: Callable[[Policy], str]


def _read(policy: Policy, value: float | None) -> str:
    """Quantiles that are sums of quantiles are marked: nearly, not exactly, those of the sum."""
    return f"~{_seconds(value)}" if policy.read_is_sum and value is not None else _seconds(value)


_COLUMNS = (
    _Column("prefill + restore, s", "mean", 8, lambda p: _seconds(p.read_s.mean)),
    _Column("", "p50", 8, lambda p: _read(p, p.read_s.p50)),
    _Column("", "p99", 8, lambda p: _read(p, p.read_s.p99)),
    _Column("TTFT, s", "p50", 8, lambda p: _seconds(p.ttft_s.p50)),
    _Column("", "p99", 8, lambda p: _seconds(p.ttft_s.p99)),
    _Column("hit", "ratio", 7, lambda p: units.plain(p.hit_ratio, 3)),
    _Column("tokens, mean", "before", 8, lambda p: units.count(p.prompt_tokens_before_dedup)),
    _Column("", "after", 8, lambda p: units.count(p.prompt_tokens)),
    _Column("plan, ms", "p50", 7, lambda p: _short(p.plan_ms.p50)),
    _Column("", "p99", 7, lambda p: _short(p.plan_ms.p99)),
    _Column("gold", "nats/tok", 9, lambda p: units.plain(p.gold_logprob_per_token, 3)),
    _Column("evid.", "kept", 6, lambda p: units.plain(p.evidence_kept, 2)),
)


def table(result: Mapping[str, Any]) -> str:
    """Policies as rows, then pairs, targets, bounds and what was not there; lines end without white space."""
    one = read(result)
    parts = [_head(one), _policies(one), _pairs(one.pairs), _targets(one), _bounds(one)]
    if told := same_tokens(one):
        parts.append(textwrap.wrap(told, WIDTH))
    if one.peers_missing:
        parts.append(
            [_cut(line) for line in ("Peers not found", *(f"  {name}" for name in one.peers_missing))]
        )
    if one.notes:
        parts.append([_cut(line) for line in ("Notes", *(f"  {note}" for note in one.notes))])
    return "\n\n".join("\n".join(line.rstrip() for line in part) for part in parts if part)


def _head(result: Result) -> list[str]:
    questions = "questions not stated" if result.questions is None else f"{result.questions:,} questions"
    return [_cut(" · ".join(part for part in (result.workload, questions, result.model) if part))]


def _policies(result: Result) -> list[str]:
    if not result.policies:
        return ["No policy was measured."]
    groups = " " * _NAME
    for place, column in enumerate(_COLUMNS):
        end = _NAME + sum(one.width for one in _COLUMNS[:place])
        if column.group:
            narrow = len(column.group) < column.width
            groups = groups.ljust(end) + (column.group.rjust(column.width) if narrow else f"  {column.group}")
    lines = [groups, "policy".ljust(_NAME) + "".join(one.head.rjust(one.width) for one in _COLUMNS)]
    for policy in result.policies:
        name = _cut(("≈ " if policy.approximate else "") + policy.name, _NAME - 1)
        lines.append(name.ljust(_NAME) + "".join(_fit(one.cell(policy), one.width) for one in _COLUMNS))
    if any(policy.approximate for policy in result.policies):
        lines.append("≈ approximate: not the logits that reading the whole prompt gives")
    if any(policy.read_is_sum and policy.read_s.p50 is not None for policy in result.policies):
        lines.append("~ sum of the quantiles of prefill and restore")
    return lines


def _pairs(pairs: tuple[Pair, ...]) -> list[str]:
    if not pairs:
        return []
    lines = [
        f"{'pair':<{_PAIR}}{'time ratio':>11}{'95 % interval':>17}{'gold nats/tok':>17}{'95 % interval':>20}",
    ]
    lines += [
        _cut(f"{one.policy} / {one.baseline}", _PAIR - 1).ljust(_PAIR)
        + _fit(units.ratio(one.ratio), 11)
        + _fit(units.interval(one.low, one.high), 17)
        + _fit(units.nats(one.difference), 17)
        + _fit(units.interval(one.difference_low, one.difference_high, signed=True), 20)
        for one in pairs
    ]
    return lines


def _targets(result: Result) -> list[str]:
    lines = []
    for one in judge(result):
        lines.append(_cut(f"  {one.what}"))
        lines.append(_cut(f"    wanted {one.wanted}; measured {one.measured}: {one.verdict}"))
    return ["Targets", *lines] if lines else []


def _bounds(result: Result) -> list[str]:
    found = [*rows(result), *order_rows(result)]
    lines = [f"  {_cut(label, 81):<82} {text}" for label, text in found]
    said = [f"  {_cut(label, 40):<41} {text}" for label, text in kind_rows(result)]
    parts = (["Bounds", *lines] if lines else []) + (["Annotations", *said] if said else [])
    return [_cut(line) for line in parts]


def _seconds(value: float | None) -> str:
    """At most six characters, so that a column keeps a gap; the unit stands in the head."""
    if value is None:
        return units.MISSING
    return f"{value:.4f}" if abs(value) < 0.01 else f"{value:.3f}" if abs(value) < 10 else _short(value)


def _short(value: float | None) -> str:
    if value is None:
        return units.MISSING
    if abs(value) >= 99_999.5:
        return f"{value:.0e}".replace("e+", "e")
    return f"{value:.2f}" if abs(value) < 100 else f"{value:.1f}" if abs(value) < 1000 else units.count(value)


def _fit(text: str, width: int) -> str:
    """A figure that makes no sense is too wide for its column: better cut in sight than out of line."""
    return _cut(text, width - 1).rjust(width)


def _cut(text: str, width: int = WIDTH) -> str:
    return one_line(text, width)
