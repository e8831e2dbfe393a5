"""``slipstream bench run``: its options, and where its result goes."""

import argparse
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.bench.run.choice import ALL
from core.bench.run.harness import Options, measure
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
        policies_of(arguments.policy),
        quick=arguments.quick,
        answers=arguments.answers,
        orders=arguments.orders,
        resume=Path(arguments.resume) if arguments.resume else None,
    )
    result = measure(options, settings)
    if arguments.html and (write_html := _reporter("write_html")) is not None:
        write_html(result, Path(arguments.html))
    table = _reporter("table")
    if arguments.json or table is None:
        print(json.dumps(result))
    else:
        print(table(result))
    return 0


def policies_of(text: str) -> tuple[str, ...]:
    """``none,prefix`` or ``all``."""
    if text == "all":
        return ALL
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _reporter(name: str) -> Callable[..., Any] | None:
    try:
        found: Callable[..., Any] = getattr(importlib.import_module("core.bench.report"), name)
    except ImportError:
        sys.stderr.write("This version cannot write reports.\n")
        return None
    return found
