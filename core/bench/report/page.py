"""The page: one HTML file that needs nothing else, for somebody who never saw it and has a minute.

No script, no network, no font of its own. Every text from the result is escaped; the policy forbids whatever
would slip through.
"""

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from core.bench.report import bounds, plots, units, words
from core.bench.report.columns import FIGURES
from core.bench.report.escape import escape, prose
from core.bench.report.figures import MAIN, Result, read
from core.bench.report.style import STYLE
from core.bench.report.targets import judge, paper
from core.errors import KnownError

_DATA_AT_MOST = 300_000
"""Characters of JSON that the page carries along; a longer result would only make it slow."""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def write_html(result: Mapping[str, Any], path: Path) -> None:
    """Write the page in one step: a reader sees the old file or the new one. Raises KnownError."""
    text = page(result)
    temporary = None
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        temporary = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.write(text)
        temporary.chmod(0o644)  # mkstemp makes private files; a report is made to be handed on
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise KnownError(
            f"The report could not be written to {path}.",
            hint="Name a file in a folder that exists and that you may write to.",
            details=str(error),
        ) from error


def page(result: Mapping[str, Any]) -> str:
    """The whole HTML document; parts of which nothing is known are left out or say so."""
    one = read(result)
    title = f"Slipstream benchmark: {one.workload}"
    sections = [
        _top(one, title),
        _plot(
            "Reading, per question",
            "Mean seconds until the prompt is read and the first token can be computed. Shorter is better.",
            plots.reading(one),
        ),
        _plot(
            "Compared in pairs",
            "Reading time as a ratio of the other policy's on the same questions, with 95 % intervals, on a "
            "logarithmic scale. Left of the line at 1 is faster.",
            plots.ratios(one),
        ),
        _plot(
            "Where prompt tokens came from",
            "Live, RAM and SSD were reused, amber was computed; in tokens a question, and in % of each "
            "policy's own prompt tokens.",
            plots.tiers(one),
        ),
        _plot(
            "Time to first token",
            "From the question to the first token, all questions, on a logarithmic scale. Left is better.",
            plots.first_token(one),
        ),
        _plot(
            "Answers",
            "Change of the known answer's log-likelihood, nats a token, against the other policy on the same "
            "questions, with 95 % intervals. An interval wholly right of the dashed line means: no worse. An "
            "arrow points to what lies off the scale.",
            plots.quality(one),
            words.same_tokens(one),
        ),
        _targets(one),
        _bounds(one),
        _figures(one),
        _limits(one),
        _data(result),
    ]
    body = "\n".join(section for section in sections if section)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{prose(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        "</body>\n</html>\n"
    )


def _top(result: Result, title: str) -> str:
    facts = "".join(
        f"<div><dt>{prose(label)}</dt><dd><strong>{prose(figure)}</strong>{prose(explanation)}</dd></div>"
        for label, figure, explanation in words.facts(result)
    )
    setting = "".join(
        f"<dt>{prose(label)}</dt><dd>{_code(value) if label == 'Command' else prose(value)}</dd>"
        for label, value in result.settings
    )
    quick = "<p class=note>A quick run: few questions, so intervals are wide.</p>" if result.quick else ""
    return (
        f"<header><h1>{prose(title)}</h1>\n<p class=headline>{prose(words.headline(result))}</p>\n"
        f"<p class=note>{prose(words.interval_note(result))}</p>{quick}\n"
        + (f"<dl class=facts>{facts}</dl>\n" if facts else "")
        + (f"<dl class=setting>{setting}</dl>" if setting else "")
        + "</header>"
    )


def _plot(title: str, caption: str, picture: str, below: str = "") -> str:
    """A run without the figures says so; ``below`` is a sentence under the picture."""
    said = caption if picture else "Not measured in this run."
    under = f"<p class=note>{prose(below)}</p>" if below else ""
    return f"<section><h2>{prose(title)}</h2><p class=note>{prose(said)}</p>{picture}{under}</section>"


def _targets(result: Result) -> str:
    found = judge(result)
    parts = []
    if found:
        body = "".join(
            f"<tr><td>{prose(one.what)}</td><td>{prose(one.wanted)}</td><td>{prose(one.measured)}</td>"
            f'<td class="{"met" if one.met else "missed"}">{prose(one.verdict)}</td></tr>'
            for one in found
        )
        parts.append(
            "<p class=note>Set for SmolLM2-135M on two CPU cores; another model or machine shifts them.</p>"
            f"<table class=words>{_header(('What', 'Wanted', 'Measured', 'Verdict'))}"
            f"<tbody>{body}</tbody></table>"
        )
    if told := paper(result):
        parts.append(
            f"<p class=note>The ContextPilot paper reports for this kind of work: {prose(told)}. Other "
            "machines and models, so only ratios can be set beside these.</p>"
        )
    return f"<section><h2>Targets</h2>{''.join(parts)}</section>" if parts else ""


def _bounds(result: Result) -> str:
    """What no policy can pass here, and how much the model minds the order of passages by itself."""
    parts = []
    for title, found in (
        ("Bounds", bounds.rows(result)),
        ("The model's own sensitivity to order", bounds.order_rows(result)),
        ("Kinds of annotation and passages", bounds.kind_rows(result)),
    ):
        if found:
            rows = "".join(f"<tr><td>{prose(label)}</td><td>{prose(text)}</td></tr>" for label, text in found)
            parts.append(
                f"<section><h2>{prose(title)}</h2><table class=words><tbody>{rows}</tbody></table></section>"
            )
    return "".join(parts)


def _figures(result: Result) -> str:
    """Every figure of every policy, in tables narrow enough for paper."""
    tables = []
    for title, columns in FIGURES:
        shown = [(head, [cell(policy) for policy in result.policies]) for head, cell in columns]
        shown = [(head, cells) for head, cells in shown if any(cell != units.MISSING for cell in cells)]
        if not shown:
            continue
        rows = "".join(
            f"<tr{' class=main' if policy.name == MAIN else ''}><th scope=row>"
            f"{'≈ ' if policy.approximate else ''}{prose(policy.name)}</th>"
            + "".join(f"<td>{prose(cells[place])}</td>" for _, cells in shown)
            + "</tr>"
            for place, policy in enumerate(result.policies)
        )
        head = _header((title, *(head for head, _ in shown)))
        tables.append(f"<div class=wide><table>{head}<tbody>{rows}</tbody></table></div>")
    if not tables:
        return ""
    summed = any(policy.read_is_sum and policy.read_s.p50 is not None for policy in result.policies)
    note = (
        "<p class=note>~ sum of the quantiles of prefill and restore: near, not exact.</p>" if summed else ""
    )
    return f"<section class=long><h2>All figures</h2>{note}{''.join(tables)}</section>"


def _limits(result: Result) -> str:
    """What the figures do not say."""
    parts = []
    for title, lines in (
        ("Approximate", words.approximate(result)),
        ("Not measured", words.not_measured(result)),
        ("The harness itself", words.harness(result)),
        ("Notes", result.notes),
    ):
        if lines:
            items = "".join(f"<li>{prose(line)}</li>" for line in lines)
            parts.append(f"<section><h2>{title}</h2><ul>{items}</ul></section>")
    return "".join(parts)


def _data(result: Mapping[str, Any]) -> str:
    """The data itself, so that a page that was handed on can be checked and compared."""
    text = json.dumps(result, indent=1, ensure_ascii=False, default=str)
    if len(text) > _DATA_AT_MOST:
        return (
            "<p class=note>The data is too long to be carried in this page; it stands in the JSON output.</p>"
        )
    return f"<details><summary>The data as JSON</summary><pre>{escape(text)}</pre></details>"


def _header(heads: Iterable[str]) -> str:
    return "<thead><tr>" + "".join(f"<th scope=col>{prose(head)}</th>" for head in heads) + "</tr></thead>"


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"
