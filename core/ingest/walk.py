"""Which files the given paths mean."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from core.ingest.readers import is_supported

_INSTALLED = frozenset(("node_modules", "site-packages", "__pycache__", "venv"))
"""Folders that programs fill with thousands of files that nobody wrote to be asked."""


@dataclass(frozen=True, slots=True)
class Found:
    """What lies under the given paths, every file once."""

    files: tuple[Path, ...]
    """Absolute, in a fixed order."""
    n_skipped: int
    """Files in folders whose kind is not read."""
    problems: tuple[tuple[Path, str], ...]
    """Paths that cannot be looked at, and why."""


def find_files(paths: Iterable[Path]) -> Found:
    """Files as they were named, folders with everything below them.

    In folders, hidden files, what programs install there, kinds that are not read, and what was met before by
    another way (links, loops of links) are left out; a file that was named is never left out.
    """
    files: dict[Path, None] = {}
    problems: list[tuple[Path, str]] = []
    n_skipped = 0
    folders: set[tuple[int, int]] = set()
    for path in paths:
        named = absolute(path)
        if not named.is_dir():
            if os.path.lexists(named):
                files[named] = None
            else:
                problems.append((named, "This file does not exist."))
            continue
        for entry in _walk(named, folders, problems):
            if is_supported(entry):
                files[entry] = None
            else:
                n_skipped += 1
    return Found(_without_links_to_others(files), n_skipped, tuple(problems))


def absolute(path: Path) -> Path:
    """Not resolved: a link keeps the name under which the user knows it."""
    return Path(os.path.abspath(os.path.expanduser(path)))  # noqa: PTH100, PTH111 - never raise, follow no link


def storable(name: str | Path) -> str:
    """A path, or words that hold one, as text: bytes in it that are no UTF-8 become escapes, since SQLite
    stores UTF-8.
    """
    try:
        return str(name).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # halves of surrogate pairs that stand for no byte
        return str(name).encode("utf-8", "backslashreplace").decode("utf-8")


def _walk(folder: Path, visited: set[tuple[int, int]], problems: list[tuple[Path, str]]) -> Iterator[Path]:
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        try:
            status = current.stat()
            if (status.st_dev, status.st_ino) in visited:
                continue
            visited.add((status.st_dev, status.st_ino))
            with os.scandir(current) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            problems.append((current, f"This folder cannot be opened: {error.strerror}."))
            continue
        below = []
        for entry in entries:
            if entry.name.startswith(".") or entry.name in _INSTALLED:
                continue
            try:
                if entry.is_dir():
                    below.append(current / entry.name)
                elif entry.is_file():
                    yield current / entry.name
            except OSError:  # a link that leads back to itself
                continue
        waiting += reversed(below)


def _without_links_to_others(files: dict[Path, None]) -> tuple[Path, ...]:
    """Without links to files that are there under their own name as well."""
    own_names = {path for path in files if not path.is_symlink()}
    return tuple(path for path in files if path in own_names or path.resolve() not in own_names)
