"""The page's tables of all figures: what stands in which column."""

from collections.abc import Callable, Iterable

from core.bench.report import units
from core.bench.report.figures import Policy, Spread

_Column = tuple[str, Callable[[Policy], str]]


def _spread(
    words: str, of: Callable[[Policy], Spread], show: Callable[[float | None], str]
) -> Iterable[_Column]:
    return (
        (f"{words} mean", lambda policy: show(of(policy).mean)),
        (f"{words} p50", lambda policy: show(of(policy).p50)),
        (f"{words} p99", lambda policy: show(of(policy).p99)),
    )


def _reading(words: str, of: Callable[[Spread], float | None]) -> _Column:
    def cell(policy: Policy) -> str:
        shown = units.seconds(of(policy.read_s))
        return f"~{shown}" if policy.read_is_sum and shown != units.MISSING else shown

    return (f"reading {words}", cell)


FIGURES: tuple[tuple[str, tuple[_Column, ...]], ...] = (
    (
        "Reading, a question",
        (
            ("reading mean", lambda policy: units.seconds(policy.read_s.mean)),
            _reading("p50", lambda spread: spread.p50),
            _reading("p99", lambda spread: spread.p99),
            *_spread("prefill", lambda policy: policy.prefill_s, units.seconds),
            *_spread("restore", lambda policy: policy.restore_s, units.seconds),
        ),
    ),
    (
        "Waiting, a question",
        (
            *_spread("first token", lambda policy: policy.ttft_s, units.seconds),
            *_spread("wall", lambda policy: policy.wall_s, units.seconds),
            *_spread("planning", lambda policy: policy.plan_ms, units.milliseconds),
            ("harness mean", lambda policy: units.seconds(policy.harness_s)),
            ("reopening", lambda policy: units.seconds(policy.reopen_s)),
        ),
    ),
    (
        "Tokens a question, and memory",
        (
            ("hit ratio (of prompt tokens)", lambda policy: units.plain(policy.hit_ratio, 3)),
            ("hit ratio if cut at any token", lambda policy: units.plain(policy.hit_ratio_token_level, 3)),
            ("prompt tokens before dedup", lambda policy: units.count(policy.prompt_tokens_before_dedup)),
            ("prompt tokens", lambda policy: units.count(policy.prompt_tokens)),
            ("annotation tokens", lambda policy: units.count(policy.annotation_tokens)),
            ("tokens riding along", lambda policy: units.count(policy.rider_tokens)),
            ("index", lambda policy: units.size(policy.index_bytes)),
            ("RAM", lambda policy: units.size(policy.ram_bytes)),
            ("SSD", lambda policy: units.size(policy.ssd_bytes)),
            ("energy, J a question", lambda policy: units.plain(policy.energy_j, 1)),
        ),
    ),
    (
        "Answers",
        (
            (
                "log-likelihood of known answers, nats a token",
                lambda p: units.plain(p.gold_logprob_per_token, 3),
            ),
            ("token F1 (0 to 1)", lambda policy: units.plain(policy.f1, 3)),
            ("exact match (0 to 1)", lambda policy: units.plain(policy.exact_match, 3)),
            ("evidence kept (0 to 1)", lambda policy: units.plain(policy.evidence_kept, 3)),
            ("KL from exact, nats", lambda policy: units.plain(policy.kl, 3)),
        ),
    ),
)
"""Titles and columns; a table is as wide as a page of paper allows."""
