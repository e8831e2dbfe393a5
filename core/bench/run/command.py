"""``slipstream bench run``: its options, and where its result goes."""

import argparse
import json
import shlex
import sys
from pathlib import Path

from core.bench.report import table, write_html
from core.bench.run.choice import ALL
from core.bench.run.harness import Options, measure
from core.bench.run.policies import KINDS
from core.bench.run.workloads import Source
from core.config import Settings


def main(arguments: argparse.Namespace, settings: Settings) -> int:
    options = Options(
        arguments.workload,
        Source(
            Path(arguments.data),
            arguments.trace,
            arguments.k,
            arguments.limit,
            arguments.seed,
            warm=arguments.warm,
        ),
        policies_of(arguments.policy, countable=arguments.count),
        quick=arguments.quick,
        answers=arguments.answers,
        count=arguments.count,
        orders=arguments.orders,
        annotations=arguments.annotations,
        references=arguments.references,
        resume=Path(arguments.resume) if arguments.resume else None,
    )
    result = measure(options, settings) | {
        "trace": Path(arguments.trace).name if arguments.trace else "",
        "command": shlex.join(["slipstream", *sys.argv[1:]]),
    }
    if arguments.html:
        write_html(result, Path(arguments.html))
    print(json.dumps(result) if arguments.json else table(result))
    return 0


def policies_of(text: str, *, countable: bool = False) -> tuple[str, ...]:
    """``none,prefix`` or ``all``; ``countable``: all those whose tokens can be counted."""
    if text == "all":
        return tuple(name for name in ALL if name in KINDS) if countable else ALL
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
