"""Reading a folder into a new library, against one plain loop over the same files: extract the text, hash
it, write it to SQLite. What is compared is all that makes a library of it: child process, blocks, full text.
"""

import contextlib
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import xxhash

from core.errors import DocumentError
from core.ingest.library import ingest
from core.ingest.readers import extract, is_supported
from core.store.database import open_database

_PAIRS = 3


def measure(paths: Sequence[str]) -> dict[str, float | int | str]:
    """Medians of three pairs, taken in turn so that a drifting machine hits both alike."""
    chosen = [Path(path) for path in paths]
    files = [
        file for path in chosen for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()
    ]
    chosen_files = [file for file in files if is_supported(file)]
    plain_s, ingest_s = [], []
    n_blocks = n_files = n_bytes = 0
    for _ in range(_PAIRS):
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            n_bytes = _plain_loop(chosen_files, Path(folder) / "plain.db")
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
        "plain_loop_s": statistics.median(plain_s),
        "ratio": statistics.median(a / b for a, b in zip(ingest_s, plain_s, strict=True)),
        "blocks_per_s": n_blocks / spent,
        "mb_per_s": n_bytes / 1e6 / spent,
    }


def _plain_loop(files: Sequence[Path], database: Path) -> int:
    """Bytes read; files that cannot be read are passed over."""
    n_bytes = 0
    with contextlib.closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE texts (path TEXT, hash TEXT, text TEXT)")
        for file in files:
            data = file.read_bytes()
            n_bytes += len(data)
            with contextlib.suppress(DocumentError):
                text = extract(file, data).text
                row = (str(file), xxhash.xxh3_128_hexdigest(data), text)
                connection.execute("INSERT INTO texts VALUES (?, ?, ?)", row)
    return n_bytes
