"""JSON and JSON lines as text: every value with the way to it, a flat record in one line."""

import json
from collections.abc import Iterator
from typing import Any

from core.ingest import plain
from core.ingest.extracted import Extracted, cleaned

MEDIA_TYPE = "application/json"


def read_json(data: bytes) -> Extracted:
    """What is no JSON is given as it is. Raises DocumentError for data that is no text."""
    text, note = plain.decode(data)
    try:
        lines = list(_lines("", json.loads(text)))
    except (ValueError, RecursionError):
        lines = _records(text)
    shown = "\n".join(lines)
    return Extracted(cleaned(shown or text), MEDIA_TYPE, note=note)


def _records(text: str) -> list[str]:
    """JSON lines; a line that is none stays as it is."""
    found: list[str] = []
    for number, line in enumerate(text.split("\n")):
        try:
            found += _lines(f"[{number}]", json.loads(line)) if line.strip() else [""]
        except (ValueError, RecursionError):
            found.append(line)
    return found


def _lines(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if value and path.endswith("]") and not any(isinstance(each, dict | list) for each in value.values()):
            yield " | ".join(f"{key}: {_shown(each)}" for key, each in value.items())
            return
        for key, each in value.items():
            yield from _lines(f"{path}.{key}" if path else str(key), each)
    elif isinstance(value, list):
        if value and not any(isinstance(each, dict | list) for each in value):
            yield (
                f"{path}: {', '.join(_shown(each) for each in value)}"
                if path
                else "\n".join(map(_shown, value))
            )
            return
        for number, each in enumerate(value):
            yield from _lines(f"{path}[{number}]", each)
    else:
        yield f"{path}: {_shown(value)}" if path else _shown(value)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value)
