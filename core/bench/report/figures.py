"""The JSON of `slipstream bench run`, read with forgiveness: what is missing or makes no sense is None.

Nothing here is computed except sums that are exact (means); whether a figure is one of those, it says.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

TIERS = ("live", "ram", "ssd")
MAIN = "slipstream"
_BASELINES = ("last-prompt", "none", "prefix", "offload", "contextpilot")
_N_QUANTILES = 21
_LARGEST, _SMALLEST = 1e15, 1e-12


@dataclass(frozen=True, slots=True)
class Spread:
    """Over questions, in the unit that the field's name says."""

    mean: float | None = None
    p50: float | None = None
    p99: float | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """Tokens are means a question. ``read_s`` is prefill + restore; where ``read_is_sum``, its quantiles are
    sums of quantiles: not exact. ``tiers`` are shares of the prompt's tokens; ``ttft_quantiles_s`` are 21, in
    steps of 5 %, or none.
    """

    name: str
    prefill_s: Spread
    restore_s: Spread
    read_s: Spread
    read_is_sum: bool
    ttft_s: Spread
    wall_s: Spread
    ttft_quantiles_s: tuple[float, ...]
    hit_ratio: float | None
    hit_ratio_token_level: float | None
    tiers: Mapping[str, float]
    prompt_tokens: float | None
    prompt_tokens_before_dedup: float | None
    annotation_tokens: float | None
    rider_tokens: float | None
    plan_ms: Spread
    gold_logprob_per_token: float | None
    f1: float | None
    exact_match: float | None
    evidence_kept: float | None
    kl: float | None
    index_bytes: float | None
    ram_bytes: float | None
    ssd_bytes: float | None
    reopen_s: float | None
    harness_s: float | None
    energy_j: float | None
    approximate: bool


@dataclass(frozen=True, slots=True)
class Pair:
    """``policy`` against ``baseline`` on the same questions, 95 % intervals; differences in nats a token."""

    policy: str
    baseline: str
    ratio: float | None
    low: float | None
    high: float | None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    questions: int | None = None
    quality_questions: int | None = None
    ttft_ratio: float | None = None
    ttft_low: float | None = None
    ttft_high: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """One run. ``settings`` are what it was run with, as (name, value) to be shown in that order."""

    workload: str
    model: str
    questions: int | None
    k: int | None
    harness: Mapping[str, Any]
    same_tokens: Mapping[str, Any]
    command: str
    settings: tuple[tuple[str, str], ...]
    policies: tuple[Policy, ...]
    pairs: tuple[Pair, ...]
    bounds: tuple[tuple[str, Any], ...]
    order_sensitivity: tuple[tuple[str, Any], ...]
    annotations: Mapping[str, Any]
    references: Mapping[str, Any]
    notes: tuple[str, ...]
    peers_missing: tuple[str, ...]

    @property
    def quick(self) -> bool:
        return self.harness.get("quick") is True

    @property
    def counted(self) -> bool:
        """Nothing was computed: tokens are exact, seconds are not measured."""
        return self.harness.get("counted") is True

    def policy(self, name: str) -> Policy | None:
        return next((policy for policy in self.policies if policy.name == name), None)

    def pair(self, policy: str, baseline: str) -> Pair | None:
        """The pair as it was measured; without intervals, from the means, where it was not."""
        for pair in self.pairs:
            if (pair.policy, pair.baseline) == (policy, baseline):
                return pair
        first, second = self.policy(policy), self.policy(baseline)
        if first and second and first.read_s.mean is not None and second.read_s.mean:
            return Pair(policy, baseline, first.read_s.mean / second.read_s.mean, None, None)
        return None

    def approximate(self, pair: Pair) -> bool:
        """Whether one of the two does not compute what reading the whole prompt computes."""
        sides = (self.policy(pair.policy), self.policy(pair.baseline))
        return any(side is not None and side.approximate for side in sides)

    def headline_pair(self) -> Pair | None:
        """What the first sentence is about: the product against what a machine does without it."""
        order = ("none", *_BASELINES) if self.workload.startswith("restart") else _BASELINES
        for baseline in order:
            pair = self.pair(MAIN, baseline)
            if pair and pair.ratio is not None:
                return pair
        return next((pair for pair in self.pairs if pair.ratio is not None), None)

    def quality_pair(self, policy: str) -> Pair | None:
        """``policy`` against relevance order, under whichever policy that was measured."""
        measured = [pair for pair in self.pairs if pair.policy == policy and pair.difference is not None]
        order = ("prefix", "none", "last-prompt", "offload")
        measured.sort(key=lambda pair: order.index(pair.baseline) if pair.baseline in order else len(order))
        return measured[0] if measured else None


def read(result: Mapping[str, Any]) -> Result:
    """Never fails: a result of another version or of a run cut short shows what it holds."""
    policies = tuple(
        _policy(str(name), _mapping(one)) for name, one in _mapping(result.get("policies")).items()
    )
    names = {policy.name for policy in policies}
    return Result(
        workload=_text(result.get("workload")) or "unnamed workload",
        model=_text(result.get("model")),
        questions=_whole(result.get("questions")),
        k=_whole(result.get("k")),
        harness=_mapping(result.get("harness")),
        same_tokens=_mapping(result.get("same_tokens")),
        command=_text(result.get("command")),
        settings=tuple(_settings(result)),
        policies=policies,
        pairs=tuple(
            _pair(str(key), _mapping(one), names) for key, one in _mapping(result.get("pairs")).items()
        ),
        bounds=tuple(_flat(result.get("bounds"))),
        order_sensitivity=tuple(_flat(result.get("order_sensitivity"), "order_sensitivity")),
        annotations=_mapping(result.get("annotations")),
        references=_mapping(result.get("references")),
        notes=(*_texts(result.get("note")), *_texts(result.get("notes"))),
        peers_missing=_texts(result.get("not_found")),
    )


def number(value: object) -> float | None:
    """A number that can be a measurement, or None: JSON may hold NaN, strings or nulls in its place.

    Beyond 10^15 of any unit here something else was written; below 10^-12 it is nothing.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not abs(value) <= _LARGEST:  # "not" for NaN, which compares with nothing
        return None
    return float(value) if abs(value) >= _SMALLEST else 0.0


def is_approximate(name: str) -> bool:
    """Policies that change what the model sees of the same tokens, by their name."""
    return name.startswith("blend")


def _policy(name: str, one: Mapping[str, Any]) -> Policy:
    prefill, restore, whole = (
        _spread(one.get("prefill_s")),
        _spread(one.get("restore_s")),
        _spread(one.get("prefill_restore_s")),
    )
    quantiles = [number(value) for value in _sequence(one.get("ttft_quantiles"))]
    known = [value for value in quantiles if value is not None]
    tiers = {tier: number(_mapping(one.get("hit_ratio_by_tier")).get(tier)) for tier in TIERS}
    read_s = whole if whole.mean is not None else _sum(prefill, restore)
    return Policy(
        name=name,
        prefill_s=prefill,
        restore_s=restore,
        read_s=read_s,
        read_is_sum=whole.mean is None and bool(restore.mean),
        ttft_s=_spread(one.get("ttft_s")),
        wall_s=_spread(one.get("wall_s")),
        ttft_quantiles_s=tuple(sorted(known)) if len(known) == len(quantiles) == _N_QUANTILES else (),
        hit_ratio=number(one.get("hit_ratio")),
        hit_ratio_token_level=number(one.get("hit_ratio_token_level")),
        tiers={tier: share for tier, share in tiers.items() if share is not None},
        prompt_tokens=number(one.get("prompt_tokens")),
        prompt_tokens_before_dedup=number(one.get("prompt_tokens_before_dedup")),
        annotation_tokens=_mean(one.get("annotation_tokens")),
        rider_tokens=_mean(one.get("rider_tokens")),
        plan_ms=_spread(one.get("plan_ms")),
        gold_logprob_per_token=number(one.get("gold_logprob_per_token")),
        f1=number(one.get("f1")),
        exact_match=number(one.get("exact_match")),
        evidence_kept=number(one.get("evidence_kept")),
        kl=_mean(one.get("kl")),
        index_bytes=number(one.get("index_bytes")),
        ram_bytes=number(one.get("ram_bytes")),
        ssd_bytes=number(one.get("ssd_bytes")),
        reopen_s=number(one.get("reopen_s")),
        harness_s=_mean(one.get("harness_s")),
        energy_j=_mean(one.get("energy_j")),
        approximate=one.get("approximate") is True or is_approximate(name),
    )


def _pair(key: str, one: Mapping[str, Any], names: set[str]) -> Pair:
    policy, baseline = _sides(key, names)
    return Pair(
        policy,
        baseline,
        ratio=number(one.get("prefill_ratio")),
        low=number(one.get("low")),
        high=number(one.get("high")),
        difference=number(one.get("logprob_difference")),
        difference_low=number(one.get("logprob_low")),
        difference_high=number(one.get("logprob_high")),
        questions=_whole(one.get("questions")),
        quality_questions=_whole(one.get("logprob_questions")),
        ttft_ratio=number(one.get("ttft_ratio")),
        ttft_low=number(one.get("ttft_low")),
        ttft_high=number(one.get("ttft_high")),
    )


def _sides(key: str, names: set[str]) -> tuple[str, str]:
    """Names of servers hold slashes too: the slash with a policy on both sides is the one that divides."""
    cuts = [place for place, letter in enumerate(key) if letter == "/"]
    for place in cuts:
        if key[:place] in names and key[place + 1 :] in names:
            return key[:place], key[place + 1 :]
    policy, _, baseline = key.partition("/")
    return policy, baseline


def _settings(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    trace, seed = _text(result.get("trace")), number(result.get("seed"))
    questions, k = number(result.get("questions")), number(result.get("k"))
    workload = (
        _text(result.get("workload")),
        f"trace {trace}" if trace else "",
        "" if questions is None else f"{questions:,.0f} questions",
        "" if k is None else f"k = {k:.0f} passages each",
        "" if seed is None else f"seed {seed:.0f}",
    )
    shown = [
        ("Workload", " · ".join(part for part in workload if part)),
        ("Model", _text(result.get("model"))),
    ]
    machine = result.get("machine")
    if isinstance(machine, Mapping):
        shown.append(("Machine", " · ".join(f"{name}: {value}" for name, value in machine.items())))
    else:
        shown.append(("Machine", _text(machine)))
    shown += [("Date", _text(result.get("date"))), ("Command", _text(result.get("command")))]
    return [(label, value) for label, value in shown if value]


def _spread(value: object) -> Spread:
    if not isinstance(value, Mapping):
        return Spread(mean=number(value))
    return Spread(*(number(value.get(name)) for name in ("mean", "p50", "p99")))


def _whole(value: object) -> int | None:
    known = number(value)
    return None if known is None else int(known)


def _mean(value: object) -> float | None:
    return _spread(value).mean


def _sum(first: Spread, second: Spread) -> Spread:
    """A policy that restores nothing may leave ``second`` out; without ``first`` there is no sum."""
    pairs = ((first.mean, second.mean), (first.p50, second.p50), (first.p99, second.p99))
    return Spread(*(None if one is None else one + (other or 0.0) for one, other in pairs))


def _flat(value: object, prefix: str = "") -> list[tuple[str, Any]]:
    """Nested names joined by a point; lists as they stand."""
    if not isinstance(value, Mapping):
        shown = number(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
        if isinstance(value, int) and shown is not None:
            shown = value  # a count stays one
        return [] if shown is None or not prefix else [(prefix, shown)]
    return [
        leaf
        for name, one in value.items()
        for leaf in _flat(one, f"{prefix} · {name}" if prefix else str(name))
    ]


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _sequence(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(one) for one in ([value] if isinstance(value, str) else _sequence(value)) if one)


def _text(value: object) -> str:
    return "" if value is None else str(value)
