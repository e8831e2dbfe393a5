"""Which benchmark to run, and how its result is printed."""

import argparse
import json
from pathlib import Path
from typing import Any

from core.config import Settings


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    if arguments.bench == "run":
        from core.bench.run.command import main

        return main(arguments, settings)
    result = _measure(arguments, settings)
    if arguments.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:<28} {value:,.4g}" if isinstance(value, float) else f"{name:<28} {value}")
    return 0


def _measure(arguments: argparse.Namespace, settings: Settings) -> dict[str, Any]:
    if arguments.bench == "ingest":
        from core.bench import ingest

        return ingest.measure(arguments.paths)
    if arguments.bench == "cache":
        from core.bench import cache

        return cache.measure(settings)
    if arguments.bench == "kv":
        from core.bench import kv

        return kv.measure(Path(arguments.path), arguments.limit, settings)
    if arguments.bench == "files":
        from core.bench import files

        return files.measure(Path(arguments.path))
    if arguments.bench == "retrieval":
        from core.bench import retrieval

        return retrieval.measure(
            Path(arguments.path),
            settings,
            questions=Path(arguments.questions) if arguments.questions else None,
            budget=arguments.budget_tokens,
            scope=arguments.scope,
            embeddings=not arguments.no_embeddings,
            limit=arguments.limit,
            n_blocks=arguments.blocks,
            keep=Path(arguments.keep) if arguments.keep else None,
            prefer_cached=arguments.prefer_cached,
            emit=Path(arguments.emit) if arguments.emit else None,
        )
    if arguments.bench == "dedup":
        from core.bench import dedup

        return dedup.measure(Path(arguments.data), settings)
    if arguments.bench == "index":
        from core.bench import index

        return index.measure(arguments.contexts, arguments.k)
    if arguments.bench == "reuse":
        from core.bench import reuse

        return reuse.measure(
            Path(arguments.trace),
            k=arguments.k,
            capacity=arguments.capacity_blocks,
            eviction=arguments.eviction,
            mode=arguments.mode,
            method=arguments.method,
            effort=arguments.effort,
            tail=not arguments.no_tail,
            documents=not arguments.no_documents,
            shuffle=arguments.shuffle,
            limit=arguments.limit,
            idle=arguments.idle_blocks,
            window=arguments.window,
            foresight=Path(arguments.foresight) if arguments.foresight else None,
            emit=Path(arguments.emit) if arguments.emit else None,
        )
    from core.bench import ask

    return ask.measure(arguments.paths, arguments.questions, arguments.limit, settings)
