"""Reading benchmark data: gzipped JSON lines."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from core.errors import KnownError


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file, one a line. Raises KnownError where it cannot be read."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                yield json.loads(line)
    except (OSError, EOFError, ValueError) as error:
        raise KnownError(f"{path} cannot be read.", details=str(error)) from error
