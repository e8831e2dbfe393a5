"""The bytes of a file as one number: what is there twice, and what was only renamed, is known by it."""

from collections.abc import Callable
from pathlib import Path

import xxhash

from core.errors import Cancelled

_PIECE_BYTES = 1 << 20


def hash_of(path: Path, stop: Callable[[], bool] = lambda: False) -> str:
    """xxh3_128, hexadecimal, as ``documents.content_hash``; in constant memory.

    Raises OSError, and Cancelled as soon as ``stop`` says so.
    """
    digest = xxhash.xxh3_128()
    with path.open("rb", buffering=0) as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
            if stop():
                raise Cancelled
    return digest.hexdigest()
