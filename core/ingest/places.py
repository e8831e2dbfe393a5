"""Whether the folders that watched documents lie in are the ones that were there before.

Where a disk was, a folder of the same name can stand that has nothing to do with it: the mount point, or
another disk. What is missing there is not gone. A place is a watched folder, or a folder below it that is on
another device than its parent: a disk mounted there, or a link to one.
"""

import os
import stat
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from core.ingest.walk import storable
from core.store.folders import FolderRecord, below


@dataclass(frozen=True, slots=True)
class Mounts:
    """The places below one watched folder."""

    seen: Mapping[str, str] = field(default_factory=dict)
    """By path, which one it is (``identity``) when it was last there: to be remembered."""
    away: frozenset[str] = frozenset()
    """Those that are not there now: nothing is told of what lies in them."""
    unsure: frozenset[str] = frozenset()
    """Those, and the ones in whose place a plain folder is: what is missing there may come back."""


def identity(path: str | Path) -> str:
    """Device and inode of a folder, through links; empty where there is none, or it may not be looked at."""
    try:
        status = Path(path).stat()
    except OSError:
        return ""
    return f"{status.st_dev}:{status.st_ino}" if stat.S_ISDIR(status.st_mode) else ""


def look_at_mounts(folder: FolderRecord, files: Mapping[str, Path], documents: Collection[str]) -> Mounts:
    """The places below ``folder``. ``files``: what was found there, by the name that is stored;
    ``documents``: paths that the library has there.
    """
    now = _mounts_above(folder.path, files.values())
    seen = dict(now)
    away, unsure = set(), set()
    for path, before in folder.mounts.items():
        start = below(path)
        inside = [one for one in documents if one.startswith(start)]
        if not inside:
            continue  # nothing to lose: it is forgotten, or known anew by what is found there
        which = identity(path)
        is_met = any(one in files for one in inside)
        if which == before or (path in now and is_met):
            seen[path] = which
            continue
        seen[path] = before
        unsure.add(path)
        if not is_met:
            away.add(path)
    return Mounts(seen, frozenset(away), frozenset(unsure))


def lies_in(path: str, places: Iterable[str]) -> bool:
    return any(path.startswith(below(one)) for one in places)


def is_in_its_place(path: str, folders: Iterable[FolderRecord]) -> bool:
    """Whether all places that a path lies in are the ones that were there before."""
    return all(
        identity(place) == before
        for folder in folders
        for place, before in ((folder.path, folder.seen_as), *folder.mounts.items())
        if before and path.startswith(below(place))
    )


def _mounts_above(folder: str, files: Iterable[Path]) -> dict[str, str]:
    """Folders between ``folder`` and the files that are on another device than their parent."""
    devices: dict[str, int | None] = {}
    found = {}

    def device(path: str) -> int | None:
        if path not in devices:
            try:
                devices[path] = Path(path).stat().st_dev
            except OSError:
                devices[path] = None
        return devices[path]

    met = set()
    for current in {os.path.dirname(one) for one in files}:  # noqa: PTH120  (ten times as fast as Path.parent)
        while current not in met and current.startswith(below(folder)):
            met.add(current)
            above = os.path.dirname(current)  # noqa: PTH120
            if None not in (device(current), device(above)) and device(current) != device(above):
                found[storable(current)] = identity(current)
            current = above  # noqa: PLW2901
    return found
