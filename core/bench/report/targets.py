"""What the product set out to reach and what the paper reports, a workload at a time."""

from dataclasses import dataclass

from core.bench.report import units
from core.bench.report.figures import MAIN, Result, number

NOT_INFERIOR_NATS = -0.02
"""A lower bound of the log-likelihood's difference, nats a token, from which on answers count as no worse."""
_HARNESS_SHARE = 0.02
_QUICK_S = 600.0


@dataclass(frozen=True, slots=True)
class Target:
    """A figure that was wanted beside the one that was measured; both as text with their units."""

    what: str
    wanted: str
    measured: str
    verdict: str
    met: bool


@dataclass(frozen=True, slots=True)
class _Wanted:
    """``baseline`` → highest ratio of reading time, for runs that hold all ``words``."""

    words: tuple[str, ...]
    ratios: dict[str, float]
    k: int | None = None


_WANTED = (
    _Wanted(
        ("multi-session", "library_document"), {"last-prompt": 0.25, "prefix": 0.40, "contextpilot": 0.75}, 5
    ),
    _Wanted(("multi-session", "library_subset"), {"last-prompt": 0.78, "contextpilot": 0.90}, 5),
    _Wanted(("memory",), {"last-prompt": 0.50}, 10),
    _Wanted(("restart",), {"none": 0.05}),
)
_TTFT_TIMES_AGAINST_NONE = {"multi-turn": 4.0}

_PAPER = {
    "multi-session": "prefill throughput 1.3 to 3.1 times that of other caches; hit ratio 0.05 to "
    "0.33–0.67 of prompt tokens; llama.cpp with Llama-3.2-1B on MultihopRAG: 3.31 s to 1.38 s (MacBook M3)",
    "multi-turn": "time to first token 3.1 to 3.5 times shorter than LMCache's, up to 2.0 times shorter than "
    "RadixCache's (MT-RAG)",
    "hybrid": "2.65 to 3.4 times as fast as LMCache with 2 to 32 sessions",
    "memory": "time to first token 0.101 s to 0.055 s, 1.8 times shorter (Mem0 on LoCoMo)",
    "chain": "1.8 to 2.1 times as fast (Chain-of-Agents), answers 2 to 4 points better",
    "documents": "24 to 36 % of prompt tokens fewer, prefill 64 % and wall time 20 % shorter than without it",
    "batch": "hit ratio 0.085 of prompt tokens without it, 0.206 aligned, 0.340 also scheduled (Qwen3-32B)",
}


def ratio_targets(result: Result) -> dict[str, float]:
    """``baseline`` → the highest ratio of reading time that was wanted; empty where nothing was."""
    told = " ".join((result.workload, result.command, *(value for _, value in result.settings)))
    for wanted in _WANTED:
        fits = result.workload.startswith(wanted.words[0]) and all(word in told for word in wanted.words)
        if fits and (wanted.k is None or result.k in {None, wanted.k}):
            return wanted.ratios
    return {}


def paper(result: Result) -> str:
    return next((text for name, text in _PAPER.items() if result.workload.startswith(name)), "")


def judge(result: Result) -> list[Target]:
    """Only what this run can tell: a target whose policies were not run is left out.

    Nothing of a run that was counted: no second of it was measured.
    """
    if result.counted:
        return []
    return [*_ratios(result), *_ttft(result), *_quality(result), *_overhead(result), *_quick(result)]


def _ratios(result: Result) -> list[Target]:
    found = []
    for baseline, wanted in ratio_targets(result).items():
        pair = result.pair(MAIN, baseline)
        if pair is None or pair.ratio is None:
            continue
        met = pair.ratio <= wanted
        verdict = "met" if met else f"missed by {units.ratio(pair.ratio - wanted)}"
        if met and pair.high is not None and pair.high > wanted:
            verdict = f"met; the interval reaches {units.ratio(pair.high)}"
        measured = units.ratio(pair.ratio)
        if pair.low is not None and pair.high is not None:
            measured += f" (95 % interval {units.interval(pair.low, pair.high)})"
        what = f"Reading time of {MAIN} against {baseline}, as a ratio"
        found.append(Target(what, f"≤ {units.ratio(wanted)}", measured, verdict, met))
    return found


def _ttft(result: Result) -> list[Target]:
    """As times faster: the other way round than a ratio of times."""
    wanted = next(
        (n for name, n in _TTFT_TIMES_AGAINST_NONE.items() if result.workload.startswith(name)), None
    )
    ours, cold, pair = result.policy(MAIN), result.policy("none"), result.pair(MAIN, "none")
    if wanted is None or ours is None or cold is None:
        return []
    if pair is not None and pair.ttft_ratio:
        times = 1 / pair.ttft_ratio
    elif ours.ttft_s.mean and cold.ttft_s.mean is not None:
        times = cold.ttft_s.mean / ours.ttft_s.mean
    else:
        return []
    measured = f"{times:.1f} times"
    if pair is not None and pair.ttft_low and pair.ttft_high:
        measured += f" (95 % interval {1 / pair.ttft_high:.1f} to {1 / pair.ttft_low:.1f})"
    verdict = "met" if times >= wanted else f"missed by {wanted - times:.1f} times"
    what = f"Mean time to first token, none against {MAIN}"
    return [Target(what, f"≥ {wanted:.0f} times", measured, verdict, times >= wanted)]


def _quality(result: Result) -> list[Target]:
    pair = result.quality_pair(MAIN)
    if pair is None or pair.difference_low is None:
        return []
    met = pair.difference_low >= NOT_INFERIOR_NATS
    questions = pair.quality_questions if pair.quality_questions is not None else result.questions
    n = "n not stated" if questions is None else f"n = {questions:,} questions"
    return [
        Target(
            f"Known answers' log-likelihood, {MAIN} against {pair.baseline}: lower 95 % bound of its change",
            f"≥ {units.nats(NOT_INFERIOR_NATS)} nats a token",
            f"{units.nats(pair.difference_low)} nats a token ({n})",
            "met"
            if met
            else f"missed by {units.plain(NOT_INFERIOR_NATS - pair.difference_low, 3)} nats a token",
            met,
        )
    ]


def _overhead(result: Result) -> list[Target]:
    """Per question, against the whole time of the fastest policy."""
    spent = [one.harness_s for one in result.policies if one.harness_s is not None]
    own = number(result.harness.get("other_s_per_question"))
    harness_s = own if own is not None else max(spent, default=None)
    whole = [
        next((one for one in (policy.wall_s.mean, policy.ttft_s.mean, policy.read_s.mean) if one), None)
        for policy in result.policies
    ]
    fastest = min((one for one in whole if one is not None), default=None)
    if harness_s is None or fastest is None:
        return []
    share = harness_s / fastest
    met = share <= _HARNESS_SHARE
    measured = f"{units.seconds(harness_s)} of {units.seconds(fastest)}, {units.percent(share)} of it"
    verdict = "met" if met else f"missed by {units.seconds(harness_s - _HARNESS_SHARE * fastest)}"
    what = "The harness's own time a question, against the fastest policy's"
    return [Target(what, f"≤ {units.percent(_HARNESS_SHARE)} of it", measured, verdict, met)]


def _quick(result: Result) -> list[Target]:
    elapsed_s = number(result.harness.get("elapsed_s"))
    if not result.quick or elapsed_s is None:
        return []
    met = elapsed_s < _QUICK_S
    verdict = "met" if met else f"missed by {units.seconds(elapsed_s - _QUICK_S)}"
    return [Target("A quick run", f"< {units.seconds(_QUICK_S)}", units.seconds(elapsed_s), verdict, met)]
