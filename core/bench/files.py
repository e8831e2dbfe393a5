"""A folder of real documents with what must come out of each: its ``manifest.json`` says."""

import json
import re
import resource
import sys
import time
import unicodedata
from pathlib import Path
from typing import Any

from core.errors import DocumentError, LimitReached, NoText, PasswordRequired, ReaderCrashed
from core.ingest.child import ChildProcess
from core.ingest.extracted import ReadOptions
from core.ingest.readers import MEMORY_BYTES, extract_file

_LIMIT_S = 60.0
_SPACES = re.compile(r"\s+")
_OUTCOMES = {
    "text": ("text",),
    "no_text": ("no_text",),
    "password_required": ("password_required",),
    "reject": ("reject", "no_text"),
    "text_or_reject": ("text", "reject"),
}


def measure(folder: Path) -> dict[str, Any]:
    """Every file in a process of its own, so that what hangs, dies or eats memory is seen."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        entries = [(str(entry["file"]), dict(entry["expected"])) for entry in manifest["files"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DocumentError(
            f"The manifest cannot be read: {folder / 'manifest.json'}", details=repr(error)
        ) from error
    results = [_judged(folder / name, name, expected) for name, expected in entries]
    return {"files": results, "ok": sum(result["ok"] for result in results), "total": len(results)}


def _judged(path: Path, name: str, expected: dict[str, Any]) -> dict[str, Any]:
    limit_s = min(float(expected.get("max_seconds", _LIMIT_S)), _LIMIT_S)
    found = _in_child(path)
    why = difference(expected, found)
    if not why and found["seconds"] > limit_s:
        why = f"took longer than {limit_s:g} s"
    if not why and found["peak_mb"] > expected.get("max_memory_mb", float("inf")):
        why = f"took more than {expected['max_memory_mb']} MB"
    return {
        "file": name,
        "outcome": found["outcome"],
        "ok": not why,
        "why": why,
        "seconds": round(found["seconds"], 3),
        "peak_mb": round(found["peak_mb"], 1),
    }


def difference(expected: dict[str, Any], found: dict[str, Any]) -> str:
    """In what the outcome is not as expected, empty if in nothing."""
    outcome, text, message = found["outcome"], _alike(found["text"]), found["message"]
    if outcome not in _OUTCOMES.get(expected["outcome"], ()):
        return f"{expected['outcome']} was expected: {message}".strip()
    if outcome != "text":
        words = expected.get("message_must_mention", ())
        missing = [word for word in words if not _has(message.lower(), word.lower())]
        return f"the message does not mention {missing[0]}: {message}" if missing else ""
    if expected.get("ignore_whitespace"):
        text = text.replace(" ", "")
    for wanted in expected.get("must_contain", ()):
        if not _has(text, wanted):
            return f"lacks {wanted}"
    at = 0
    for wanted in expected.get("in_order", ()):
        places = [place for each in wanted.split("|") if (place := text.find(_alike(each), at)) >= 0]
        if not places:
            return f"lacks {wanted}, or has it too early"
        at = min(places)
    for unwanted in expected.get("must_not_contain", ()):
        if unwanted in found["text"]:
            return f"holds {unwanted!r}"
    lines = [_alike(line) for line in found["text"].split("\n")]
    for values in expected.get("values_same_row", ()):
        if not any(all(_has(line, value) for value in values) for line in lines):
            return f"not in one row: {', '.join(values)}"
    if found["n_pages"] and found["n_pages"] != expected.get("pages", found["n_pages"]):
        return f"{found['n_pages']} pages"
    return ""


def _alike(text: str) -> str:
    return _SPACES.sub(" ", unicodedata.normalize("NFKC", text))


def _has(text: str, wanted: str) -> bool:
    return any(_alike(each) in text for each in wanted.split("|"))


def _in_child(path: Path) -> dict[str, Any]:
    found = {"outcome": "died", "text": "", "message": "", "n_pages": 0, "seconds": 0.0, "peak_mb": 0.0}
    with ChildProcess(name="bench") as child:

        def call(function: str, *args: object) -> Any:
            return child.call(
                function, *args, stop=lambda: False, seconds=_LIMIT_S, memory_bytes=MEMORY_BYTES
            )

        # Starting the process and loading modules is not the file's time.
        call(f"{__name__}:read_file", None)
        try:
            found.update(call(f"{__name__}:read_file", path))
        except LimitReached as error:
            found.update(outcome="limit", message=str(error), seconds=_LIMIT_S)
        except ReaderCrashed as error:
            found.update(message=f"{error} {error.details}")
    return found


def read_file(path: Path | None) -> dict[str, Any]:
    """In the child: outcome, text and message, and what it took. Without a path nothing is read."""
    found: dict[str, Any] = {"outcome": "text", "text": "", "message": "", "n_pages": 0}
    if path is None:
        return found
    started = time.perf_counter()
    try:
        extracted = extract_file(path, ReadOptions()).extracted
        found.update(text=extracted.text, message=extracted.note, n_pages=len(extracted.page_starts))
    except PasswordRequired as error:
        found.update(outcome="password_required", message=str(error))
    except NoText as error:
        found.update(outcome="no_text", message=str(error))
    except (DocumentError, OSError) as error:
        found.update(outcome="reject", message=str(error))
    except Exception as error:  # noqa: BLE001 - a reader's fault is a result
        found.update(outcome="crash", message=repr(error))
    found["seconds"] = time.perf_counter() - started
    found["peak_mb"] = _peak_mb()
    return found


def _peak_mb() -> float:
    """Of this process. What ``ru_maxrss`` gives on Linux begins with its parent's."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024
    except (OSError, ValueError, IndexError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1 << 20) if sys.platform == "darwin" else peak / 1024
