"""The five pictures of the page: one question each, and "" where nothing was measured."""

from collections.abc import Sequence

from core.bench.report import svg, units
from core.bench.report.figures import MAIN, TIERS, Pair, Policy, Result
from core.bench.report.policies import explained
from core.bench.report.targets import NOT_INFERIOR_NATS, ratio_targets

COLOURS = {"live": "#009E73", "ram": "#0072B2", "ssd": "#56B4E9", "prefilled": "#E69F00"}
"""Safe for colour-blind eyes; the same as in the window."""
_TIER_NAMES = {"live": "live", "ram": "RAM", "ssd": "SSD", "prefilled": "prefilled"}
_ROW = 40
_BAR = 16
_GREY = "#888888"
_FAINT = ".6"
"""So that the median stands out of its own strip."""
_RIGHT = svg.LEFT + svg.PLOT + 12
_HATCH = (
    '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse">'
    f'<rect width="6" height="6" fill="{_GREY}" fill-opacity=".25"/>'
    f'<path d="M-1 1L1 -1M0 6L6 0M5 7L7 5" stroke="{_GREY}" stroke-width="1.5"/></pattern></defs>'
)


def reading(result: Result) -> str:
    """Mean seconds a question, restored, prefilled and planned side by side in one bar a policy."""
    rows = [policy for policy in result.policies if policy.read_s.mean is not None]
    if not rows:
        return ""
    whole = [_seconds_of(policy) for policy in rows]
    scale = svg.linear(whole)
    top, bottom = 28.0, 28.0 + _ROW * len(rows)
    parts = svg.legend(
        12,
        [
            (COLOURS["ram"], "restored from RAM or SSD"),
            (COLOURS["prefilled"], "prefilled"),
            (_GREY, "planning"),
        ],
    )
    parts += svg.axis(scale, top, bottom, [_tick_seconds(tick) for tick in scale.ticks])
    for place, (policy, total) in enumerate(zip(rows, whole, strict=True)):
        y, x = top + _ROW * (place + 0.5), float(svg.LEFT)
        parts.append(_label(policy, y))
        for words, colour, seconds in _parts_of(policy):
            width = scale.x(seconds) - svg.LEFT
            parts.append(
                svg.rect(x, y - _BAR / 2, width, _BAR, colour, title=f"{words}: {units.seconds(seconds)}")
            )
            x += width
        planned = bool(policy.plan_ms.mean)
        parts.append(
            svg.text(_RIGHT, y - 1 if planned else y + 4, units.seconds(total), bold=policy.name == MAIN)
        )
        if planned:
            words = f"with {units.milliseconds(policy.plan_ms.mean)} planning"
            parts.append(svg.text(_RIGHT, y + 13, words, muted=True, size=11))
    return svg.picture(
        bottom + 24, parts, "Mean seconds a question by policy: restored, prefilled and planning"
    )


def ratios(result: Result) -> str:
    """Reading time of one policy as a ratio of another's, with 95 % intervals, and the targets."""
    rows = [pair for pair in _once(result.pairs) if pair.ratio is not None and pair.ratio > 0]
    if not rows:
        return ""
    wanted = {(MAIN, baseline): most for baseline, most in ratio_targets(result).items()}
    shown = [
        value for one in rows for value in (one.ratio, one.low, one.high) if value is not None and value > 0
    ]
    shown += [most for pair, most in wanted.items() if pair in {(one.policy, one.baseline) for one in rows}]
    scale = svg.logarithmic([*shown, 1.0])
    top, bottom = 28.0, 28.0 + _ROW * len(rows)
    parts = svg.axis(scale, top, bottom, [_round(tick) for tick in scale.ticks])
    parts += _marked_line(scale, 1.0, top, bottom, "equal")
    for place, one in enumerate(rows):
        y = top + _ROW * (place + 0.5)
        parts.append(
            svg.row_label(y, _marked(result, one), f"against {one.baseline}", strong=one.policy == MAIN)
        )
        target = wanted.get((one.policy, one.baseline))
        if target is not None:
            x = scale.x(target)
            parts += [
                svg.line(x, y - 11, x, y + 11, width=2, dash="3 2"),
                svg.text(x, y - 13, f"target {units.ratio(target)}", anchor="middle", muted=True, size=10),
            ]
        assert one.ratio is not None
        parts += _interval(scale, y, one.ratio, one.low, one.high, _colour(one))
        parts.append(
            svg.text(_RIGHT, y - 1 if one.low is not None else y + 4, units.ratio(one.ratio), bold=True)
        )
        if one.low is not None:
            parts.append(svg.text(_RIGHT, y + 13, units.interval(one.low, one.high), muted=True, size=11))
    return svg.picture(bottom + 24, parts, "Ratios of reading time between policies with 95 % intervals")


def tiers(result: Result) -> str:
    """Where every policy's prompt tokens came from; tokens that were replaced by references are hatched."""
    rows = [policy for policy in result.policies if policy.hit_ratio is not None or policy.tiers]
    if not rows:
        return ""
    in_tokens = all(policy.prompt_tokens for policy in rows)
    sizes = [_tokens(policy) if in_tokens else 1.0 for policy in rows]
    removed = [_removed(policy) if in_tokens else 0.0 for policy in rows]
    longest = max(size + less for size, less in zip(sizes, removed, strict=True))
    scale = svg.linear([longest])
    top, height = 28.0, _ROW + 10
    bottom = top + height * len(rows)
    used = [name for name in TIERS if any(policy.tiers.get(name) for policy in rows)]
    entries = [(COLOURS[name], _TIER_NAMES[name]) for name in used]
    if any(not policy.tiers and policy.hit_ratio for policy in rows):
        entries.append((_GREY, "reused, tier not recorded"))
    entries.append((COLOURS["prefilled"], "prefilled"))
    if any(removed):
        entries.append(("url(#hatch)", "replaced by a reference"))
    parts = [_HATCH, *svg.legend(12, entries)]
    if in_tokens:
        parts += svg.axis(scale, top, bottom, [units.count(tick) for tick in scale.ticks])
    for place, (policy, size, less) in enumerate(zip(rows, sizes, removed, strict=True)):
        y, x = top + height * (place + 0.5), float(svg.LEFT)
        parts.append(_label(policy, y))
        shares = _shares(policy)
        for words, colour, share in shares:
            width = scale.x(size * share) - svg.LEFT
            parts.append(svg.rect(x, y - 14, width, _BAR, colour, title=f"{words}: {units.percent(share)}"))
            x += width
        if less:
            parts.append(svg.rect(x, y - 14, scale.x(less) - svg.LEFT, _BAR, "url(#hatch)"))
        told = " · ".join(f"{words} {units.percent(share)}" for words, _, share in shares if share >= 0.0005)
        parts.append(svg.text(svg.LEFT, y + 16, told, muted=True, size=11))
        if in_tokens:
            parts.append(svg.text(_RIGHT, y - 2, f"{units.count(size)} tokens", size=12))
            if less:
                parts.append(svg.text(_RIGHT, y + 12, f"{units.count(less)} replaced", muted=True, size=11))
    return svg.picture(bottom + (24 if in_tokens else 4), parts, "Where prompt tokens came from, by policy")


def first_token(result: Result) -> str:
    """TTFT by its quantiles, on a logarithmic scale: from the best to the worst question."""
    rows = [policy for policy in result.policies if len(_ttft(policy)) > 1 and min(_ttft(policy)) > 0]
    if not rows:
        return ""
    scale = svg.logarithmic([value for policy in rows for value in _ttft(policy)])
    whole = any(policy.ttft_quantiles_s for policy in rows)
    top, bottom = 28.0, 28.0 + _ROW * len(rows)
    words = (
        "upright: median · thick: middle half · thin: all questions"
        if whole
        else "upright: median · thin: to p99"
    )
    parts = [svg.text(svg.LEFT, 12, words, muted=True, size=12)]
    parts += svg.axis(scale, top, bottom, [_tick_seconds(tick) for tick in scale.ticks])
    for place, policy in enumerate(rows):
        y, strip = top + _ROW * (place + 0.5), policy.ttft_quantiles_s
        values = _ttft(policy)
        colour = "currentColor" if policy.name == MAIN else _GREY
        parts += [
            _label(policy, y),
            _strip(scale, y, min(values), max(values), 2, colour, _FAINT),
            _strip(scale, y, strip[5], strip[15], 10, colour, _FAINT) if strip else "",
        ]
        median = policy.ttft_s.p50 if policy.ttft_s.p50 is not None else strip[10]
        parts += [
            svg.rect(scale.x(median) - 1.5, y - 9, 3, 18, "currentColor"),
            svg.text(_RIGHT, y - 1, f"p50 {units.seconds(median)}", size=12),
        ]
        if policy.ttft_s.p99 is not None:
            parts.append(
                svg.text(_RIGHT, y + 13, f"p99 {units.seconds(policy.ttft_s.p99)}", muted=True, size=11)
            )
    return svg.picture(bottom + 24, parts, "Time to first token by policy, quantiles, logarithmic scale")


def quality(result: Result) -> str:
    """How the known answers' log-likelihood changed, in nats a token, and where it counts as no worse."""
    rows = [pair for policy in result.policies if (pair := result.quality_pair(policy.name)) is not None]
    if not rows:
        return ""
    # What is approximate may lie off the scale: it loses so much that all else would shrink to a point.
    exact = [pair for pair in rows if not result.approximate(pair)] or rows
    shown = [
        value
        for one in exact
        for value in (one.difference, one.difference_low, one.difference_high)
        if value is not None
    ]
    scale = svg.linear([*shown, NOT_INFERIOR_NATS * 1.5, -NOT_INFERIOR_NATS])
    top, bottom = 28.0, 28.0 + _ROW * len(rows)
    parts = svg.axis(scale, top, bottom, [_signed(tick) for tick in scale.ticks])
    parts += [svg.line(scale.x(0), top, scale.x(0), bottom, opacity=".6")]
    parts += _marked_line(
        scale,
        NOT_INFERIOR_NATS,
        top,
        bottom,
        f"no worse right of {units.plain(NOT_INFERIOR_NATS)}",
        dash="4 3",
    )
    for place, one in enumerate(rows):
        y = top + _ROW * (place + 0.5)
        parts.append(
            svg.row_label(y, _marked(result, one), f"against {one.baseline}", strong=one.policy == MAIN)
        )
        assert one.difference is not None
        if scale.low <= one.difference <= scale.high:
            parts += _interval(
                scale, y, one.difference, one.difference_low, one.difference_high, _colour(one)
            )
        else:
            left = one.difference < scale.low
            parts.append(svg.arrow(scale.x(one.difference), y, _colour(one), left=left))
        known = one.difference_low is not None
        parts.append(
            svg.text(_RIGHT, y - 1 if known else y + 4, f"{units.nats(one.difference)} nats", bold=True)
        )
        if known:
            words = units.interval(one.difference_low, one.difference_high, signed=True)
            parts.append(svg.text(_RIGHT, y + 13, words, muted=True, size=11))
    return svg.picture(bottom + 24, parts, "Change of the known answers' log-likelihood with 95 % intervals")


def _once(pairs: Sequence[Pair]) -> list[Pair]:
    """The product's own first; without those that are others turned round."""
    ordered = sorted(pairs, key=lambda pair: pair.policy != MAIN)
    found: dict[frozenset[str], Pair] = {}
    for pair in ordered:
        found.setdefault(frozenset((pair.policy, pair.baseline)), pair)
    return list(found.values())


def _label(policy: Policy, y: float) -> str:
    name = f"≈ {policy.name}" if policy.approximate else policy.name
    return svg.row_label(y, name, explained(policy.name), strong=policy.name == MAIN)


def _parts_of(policy: Policy) -> list[tuple[str, str, float]]:
    """What is known of the mean; what is not told as restored stands as prefilled."""
    read_s, restored = policy.read_s.mean or 0.0, policy.restore_s.mean or 0.0
    prefilled = policy.prefill_s.mean if policy.prefill_s.mean is not None else read_s - restored
    found = [("restored", COLOURS["ram"], restored), ("prefilled", COLOURS["prefilled"], prefilled)]
    if policy.plan_ms.mean is not None:
        found.append(("planning", _GREY, policy.plan_ms.mean / 1000))
    return [(words, colour, max(0.0, seconds)) for words, colour, seconds in found]


def _seconds_of(policy: Policy) -> float:
    return sum(seconds for _, _, seconds in _parts_of(policy))


def _shares(policy: Policy) -> list[tuple[str, str, float]]:
    if policy.tiers:
        found = [(_TIER_NAMES[name], COLOURS[name], policy.tiers.get(name, 0.0)) for name in TIERS]
    else:
        found = [("reused", _GREY, policy.hit_ratio or 0.0)]
    found = [(words, colour, min(max(share, 0.0), 1.0)) for words, colour, share in found]
    rest = max(0.0, 1.0 - sum(share for _, _, share in found))
    return [*found, ("prefilled", COLOURS["prefilled"], rest)]


def _tokens(policy: Policy) -> float:
    return policy.prompt_tokens or 0.0


def _removed(policy: Policy) -> float:
    before = policy.prompt_tokens_before_dedup
    return 0.0 if before is None else max(0.0, before - _tokens(policy))


def _ttft(policy: Policy) -> tuple[float, ...]:
    known = tuple(value for value in (policy.ttft_s.p50, policy.ttft_s.p99) if value is not None)
    return policy.ttft_quantiles_s or (known if policy.ttft_s.p50 is not None else ())


def _marked(result: Result, one: Pair) -> str:
    return f"≈ {one.policy}" if result.approximate(one) else one.policy


def _colour(one: Pair) -> str:
    return "currentColor" if one.policy == MAIN else _GREY


def _interval(
    scale: svg.Scale, y: float, middle: float, low: float | None, high: float | None, colour: str
) -> list[str]:
    parts = []
    if low is not None and high is not None:
        parts.append(_strip(scale, y, low, high, 4, colour))
        parts += [svg.rect(scale.x(end) - 1, y - 6, 2, 12, colour) for end in (low, high)]
    return [*parts, svg.dot(scale.x(middle), y, 4.5, colour)]


def _strip(
    scale: svg.Scale, y: float, low: float, high: float, thick: float, colour: str, opacity: str = ""
) -> str:
    start = scale.x(low)
    return svg.rect(start, y - thick / 2, max(scale.x(high) - start, 1.5), thick, colour, opacity=opacity)


def _marked_line(
    scale: svg.Scale, value: float, top: float, bottom: float, words: str, dash: str = ""
) -> Sequence[str]:
    x = scale.x(value)
    return [
        svg.line(x, top - 8, x, bottom, width=1.5, opacity=".6", dash=dash),
        svg.text(x, top - 14, words, anchor="middle", muted=True, size=11),
    ]


def _tick_seconds(value: float) -> str:
    return "0" if value == 0 else f"{value:g} s" if value >= 0.1 else f"{value * 1000:g} ms"


def _signed(value: float) -> str:
    return f"{round(value, 9):+g}".replace("-", "−") if value else "0"


def _round(value: float) -> str:
    return f"{value:g}"
