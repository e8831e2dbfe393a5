"""Which benchmark to run, and how its result is printed."""

import argparse
import json
from pathlib import Path

from core.bench import ask, cache, ingest, kv
from core.config import Settings


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    result: dict[str, float | int | str]
    if arguments.bench == "ingest":
        result = ingest.measure(arguments.paths)
    elif arguments.bench == "cache":
        result = cache.measure(settings)
    elif arguments.bench == "kv":
        result = kv.measure(Path(arguments.path), arguments.limit, settings)
    else:
        result = ask.measure(arguments.paths, arguments.questions, arguments.limit, settings)
    if arguments.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:<28} {value:,.4g}" if isinstance(value, float) else f"{name:<28} {value}")
    return 0
