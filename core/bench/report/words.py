"""What a run showed, in sentences made from its figures; nothing is claimed that an interval leaves open."""

from core.bench.report import units
from core.bench.report.figures import MAIN, TIERS, Pair, Policy, Result, number
from core.bench.report.policies import in_a_sentence
from core.bench.report.targets import NOT_INFERIOR_NATS

_TIER_NAMES = {"live": "live", "ram": "RAM", "ssd": "SSD"}


def headline(result: Result) -> str:
    """Speed first, then what it did to the answers."""
    pair = result.headline_pair()
    if pair is None or pair.ratio is None:
        return "This run holds no comparison of reading times."
    if result.counted:
        return (
            f"Counted, not timed: {in_a_sentence(pair.policy)} computes {units.ratio(pair.ratio)} of the "
            f"prompt tokens that {in_a_sentence(pair.baseline)} computes."
        )
    return f"{_speed(result, pair)} {_answers(result.quality_pair(pair.policy))}"


def interval_note(result: Result) -> str:
    """The small print of the headline."""
    pair = result.headline_pair()
    if pair is None or pair.ratio is None:
        return ""
    if result.counted:
        return "Nothing was computed: seconds are those tokens at one measured rate, restoring left out."
    n = "" if result.questions is None else f" over {result.questions:,} questions"
    if pair.low is None or pair.high is None:
        return (
            f"Reading is prefill + restore, mean{n}. The ratio has no interval: it was not measured in pairs."
        )
    return (
        f"Reading is prefill + restore, mean{n}; {in_a_sentence(pair.policy)} against "
        f"{in_a_sentence(pair.baseline)}, 95 % interval of the ratio {units.interval(pair.low, pair.high)}."
    )


def facts(result: Result) -> list[tuple[str, str, str]]:
    """(label, figure, explanation): where the gain came from, what it cost, what it did to answers."""
    pair = result.headline_pair()
    policy = result.policy(pair.policy) if pair else result.policy(MAIN)
    if policy is None:
        return []
    found = [_where(policy), _first_token(result, policy, pair), _cost(policy), _quality(result, policy)]
    return [fact for fact in found if fact is not None]


def not_measured(result: Result) -> list[str]:
    """What a reader could miss and would not see missing."""
    found = [f"Peer not found, so not compared: {name}." for name in result.peers_missing]
    if not result.policies:
        return [*found, "No policy was measured."]
    for words, known in (
        (
            "Time to first token",
            [p.ttft_s.mean is not None or p.ttft_s.p50 is not None for p in result.policies],
        ),
        ("Hit ratio by tier", [bool(p.tiers) for p in result.policies]),
        (
            "Log-likelihood of the known answers",
            [p.gold_logprob_per_token is not None for p in result.policies],
        ),
        ("Token F1 of greedy answers", [p.f1 is not None for p in result.policies]),
        ("Evidence kept", [p.evidence_kept is not None for p in result.policies]),
        ("Memory of the index", [p.index_bytes is not None for p in result.policies]),
        ("RAM and SSD taken by the cache", [p.ram_bytes is not None for p in result.policies]),
        ("Energy", [p.energy_j is not None for p in result.policies]),
    ):
        if not any(known):
            found.append(f"{words}: not measured in this run.")
        elif not all(known):
            lacking = [p.name for p, one in zip(result.policies, known, strict=True) if not one]
            found.append(f"{words}: not measured for {', '.join(lacking)}.")
    if not result.bounds:
        found.append("Bounds: not computed in this run.")
    if not result.order_sensitivity:
        found.append("The model's own sensitivity to the passages' order: not measured in this run.")
    return found


def same_tokens(result: Result) -> str:
    """Whether policies that change nothing in the prompt changed nothing in the logits."""
    found = result.same_tokens
    prompts, logits, n = (
        number(found.get(name)) for name in ("differing_prompts", "differing_logits", "compared_logits")
    )
    if prompts is None or logits is None or n is None:
        return ""
    if prompts == logits == 0:
        return (
            "Exact: policies that change nothing in the prompt had the same tokens, and equal tokens gave "
            f"equal logits ({units.count(n)} compared, none different)."
        )
    return (
        f"Not exact: {units.count(prompts)} prompts that should be the same were not, and equal tokens gave "
        f"other logits for {units.count(logits)} prompts, of {units.count(n)} compared. Something is wrong."
    )


def harness(result: Result) -> list[str]:
    """What measuring cost; none of it is in any policy's figures."""
    shown = [
        ("elapsed_s", "in all"),
        ("measured_s", "measured"),
        ("quality_s", "spent on the answers' quality"),
        ("parking_s", "spent on changing from policy to policy"),
    ]
    times = [
        f"{units.seconds(value)} {words}"
        for name, words in shown
        if (value := number(result.harness.get(name))) is not None
    ]
    budgets = [
        f"{units.size(value)} {words}"
        for name, words in (("ram_budget_bytes", "RAM"), ("ssd_budget_bytes", "SSD"))
        if (value := number(result.harness.get(name))) is not None
    ]
    found = [f"Time: {', '.join(times)}."] if times else []
    if budgets:
        found.append(f"Every policy that has the tier may use {' and '.join(budgets)}.")
    unequal = number(result.harness.get("unequal_snapshots"))
    if unequal:
        found.append(
            f"{units.count(unequal)} parked states came back other than they were: distrust this run."
        )
    return found


def approximate(result: Result) -> list[str]:
    """One line a policy whose answers may differ from those of the same prompt read whole."""
    return [
        f"≈ {policy.name} does not compute what reading the whole prompt computes"
        + (
            f"; its next token's distribution is {units.plain(policy.kl, 3)} nats (mean KL divergence) off."
            if policy.kl is not None
            else "; how far it is off was not measured."
        )
        for policy in result.policies
        if policy.approximate
    ]


def _speed(result: Result, pair: Pair) -> str:
    ours, theirs = result.policy(pair.policy), result.policy(pair.baseline)
    times = ""
    if ours and theirs and ours.read_s.mean is not None and theirs.read_s.mean is not None:
        times = (
            f": {units.seconds(ours.read_s.mean)} instead of {units.seconds(theirs.read_s.mean)} a question"
        )
    ratio, other = units.ratio(pair.ratio), in_a_sentence(pair.baseline)
    subject = "Reading" if pair.policy == MAIN else f"Reading with {in_a_sentence(pair.policy)}"
    assert pair.ratio is not None
    if pair.low is not None and pair.high is not None and pair.low <= 1 <= pair.high:
        interval = units.interval(pair.low, pair.high)
        return (
            f"{subject} was neither clearly faster nor slower than {other}{times} "
            f"(ratio {ratio}, 95 % interval {interval})."
        )
    if pair.ratio > 1:
        return f"{subject} took {ratio} times as long as {other}{times}."
    return f"{subject} took {ratio} of the time that {other} needed{times}."


def _answers(pair: Pair | None) -> str:
    if pair is None or pair.difference is None:
        return "What it does to the answers was not measured."
    measured = units.nats(pair.difference)
    moved = f"{measured} nats a token"
    if pair.difference_low is None or pair.difference_high is None:
        return f"The known answers' likelihood moved by {moved}, without an interval."
    if pair.difference_low >= NOT_INFERIOR_NATS:
        return (
            f"Answers are not worse by more than {abs(NOT_INFERIOR_NATS)} nats a token (measured {measured})."
        )
    if pair.difference_high < NOT_INFERIOR_NATS:
        return f"Answers are worse: the known ones' likelihood moved by {moved}."
    if pair.difference_high < 0:
        return f"Answers are less likely ({moved}); whether by more than {abs(NOT_INFERIOR_NATS)} is open."
    return f"Whether answers suffer is open: {moved}, and a loss of more than 0.02 is not excluded."


def _where(policy: Policy) -> tuple[str, str, str] | None:
    if policy.hit_ratio is None:
        return None
    base = (
        "prompt tokens"
        if policy.prompt_tokens is None
        else f"{units.count(policy.prompt_tokens)} prompt tokens a question"
    )
    parts = [
        f"{_TIER_NAMES[name]} {units.percent(policy.tiers[name])}" for name in TIERS if name in policy.tiers
    ]
    by_tier = f": {', '.join(parts)}" if parts else ""
    return ("Reused", units.percent(policy.hit_ratio), f"of {base}{by_tier}")


def _first_token(result: Result, policy: Policy, pair: Pair | None) -> tuple[str, str, str] | None:
    if policy.ttft_s.p50 is None:
        return None
    told = ["median"]
    if policy.ttft_s.p99 is not None:
        told.append(f"p99 {units.seconds(policy.ttft_s.p99)}")
    other = result.policy(pair.baseline) if pair else None
    if other and other.ttft_s.p50 is not None:
        told.append(f"{other.name}: {units.seconds(other.ttft_s.p50)} median")
    return ("First token after", units.seconds(policy.ttft_s.p50), ", ".join(told))


def _cost(policy: Policy) -> tuple[str, str, str] | None:
    costs = []
    if policy.plan_ms.p50 is not None:
        costs.append(f"{units.milliseconds(policy.plan_ms.p50)} planning a question (median)")
    for words, n_bytes in (
        ("RAM", policy.ram_bytes),
        ("SSD", policy.ssd_bytes),
        ("for the index", policy.index_bytes),
    ):
        if n_bytes:
            costs.append(f"{units.size(n_bytes)} {words}")
    if policy.annotation_tokens:
        costs.append(f"{units.count(policy.annotation_tokens)} tokens of annotation a question")
    if policy.rider_tokens:
        costs.append(f"{units.count(policy.rider_tokens)} tokens a question that were not asked for, cached")
    return ("Cost", costs[0].split(" planning")[0], "; ".join(_rest(costs))) if costs else None


def _rest(costs: list[str]) -> list[str]:
    """The first cost's figure stands large; its words begin the line below."""
    first, *others = costs
    if " planning" in first:
        return ["planning a question (median)", *others]
    return others


def _quality(result: Result, policy: Policy) -> tuple[str, str, str] | None:
    pair = result.quality_pair(policy.name)
    if pair is None:
        return None
    range_ = units.interval(pair.difference_low, pair.difference_high, signed=True)
    words = f"a token in the known answers' log-likelihood against {pair.baseline}; 95 % interval {range_}"
    if policy.evidence_kept is not None:
        words += f"; {units.percent(policy.evidence_kept)} of the known evidence kept"
    return ("Answers", f"{units.nats(pair.difference)} nats", words)
