"""Reading a folder into a new library, against reading and hashing the same bytes and doing nothing else."""

import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import xxhash

from core.ingest.library import ingest
from core.store.database import open_database

_PAIRS = 3


def measure(paths: Sequence[str]) -> dict[str, float | int | str]:
    """Medians of three pairs, taken in turn so that a drifting machine hits both alike."""
    chosen = [Path(path) for path in paths]
    files = [
        file for path in chosen for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()
    ]
    plain_s, ingest_s = [], []
    n_blocks = n_files = n_bytes = 0
    for _ in range(_PAIRS):
        started = time.perf_counter()
        n_bytes = sum(_hash(file) for file in files)
        plain_s.append(time.perf_counter() - started)
        with tempfile.TemporaryDirectory() as folder, open_database(Path(folder)) as db:
            started = time.perf_counter()
            summary = ingest(chosen, db, cancel=threading.Event(), progress=lambda _: None)
            ingest_s.append(time.perf_counter() - started)
            n_blocks, n_files = summary.n_blocks, summary.n_added
    spent = statistics.median(ingest_s)
    return {
        "files": n_files,
        "megabytes": n_bytes / 1e6,
        "blocks": n_blocks,
        "ingest_s": spent,
        "read_and_hash_s": statistics.median(plain_s),
        "ratio": statistics.median(a / b for a, b in zip(ingest_s, plain_s, strict=True)),
        "blocks_per_s": n_blocks / spent,
        "mb_per_s": n_bytes / 1e6 / spent,
    }


def _hash(file: Path) -> int:
    data = file.read_bytes()
    xxhash.xxh3_128_digest(data)
    return len(data)
