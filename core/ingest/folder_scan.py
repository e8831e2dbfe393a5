"""Watched folders against the library: what moved, what is to be read, what is gone.

Nothing is changed here. A folder that is not there, or cannot be opened, says nothing about its documents.
"""

import os
import stat
import time
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import xxhash

from core.ingest.readers import MAX_FILE_BYTES
from core.ingest.walk import find_files
from core.store.documents import storable_time
from core.store.folders import FolderRecord, FolderStore, KnownFile, below

_PIECE_BYTES = 1 << 20
_LOCK = "~$"
"""So begin the names of files that Office keeps beside a document while it is open."""
_NOT_THERE = "It is not there now. Its documents stay; what changed is read when it is back."


@dataclass(frozen=True, slots=True)
class FolderState:
    """What can be told of a folder itself."""

    is_there: bool
    note: str = ""
    """What the user should know; empty if nothing."""
    seen_as: str = ""
    """Device and inode, of one that is there with something in it."""


@dataclass(frozen=True, slots=True)
class FileState:
    """A file as it is on disk now."""

    path: Path
    n_bytes: int
    mtime_ns: int
    ctime_ns: int
    """Changes with permissions and names as well: what failed may go better then."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What sets the library right, all folders together."""

    folders: Mapping[str, FolderState]
    moved: tuple[tuple[int, FileState], ...] = ()
    """Documents whose bytes are at another path now."""
    unread: tuple[FileState, ...] = ()
    """New files and changed ones, in the order of the folders."""
    fresh: tuple[FileState, ...] = ()
    """The same, written to just now: to be read a little later."""
    gone: tuple[KnownFile, ...] = ()
    """Documents that came by watching and whose file is no more."""


@dataclass(slots=True)
class _Seen:
    """What was met in the folders that are there."""

    new: list[FileState] = field(default_factory=list)
    changed: list[FileState] = field(default_factory=list)
    missing: list[KnownFile] = field(default_factory=list)


def compare(
    folders: Sequence[FolderRecord],
    store: FolderStore,
    *,
    busy: Collection[str] = (),
    quiet_s: float = 0.0,
    outside: Path | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Changes:
    """Look through the folders. Files that are ``busy``, or were written in the last ``quiet_s`` seconds,
    may be half of what they will be: their turn comes later.

    What lies below ``outside`` (the program's own folder) is no document. ``stop`` ends it early, with
    nothing to do.
    """
    states: dict[str, FolderState] = {}
    seen = _Seen()
    own = "" if outside is None else below(str(outside))
    for folder in folders:
        if stop():
            return Changes(states)
        state = state_of(folder)
        if state.is_there:
            found = find_files([Path(folder.path)])
            if found.problems:
                n_closed = len(found.problems)
                which = "A folder" if n_closed == 1 else f"{n_closed:,} folders"
                state = FolderState(True, f"{which} in it cannot be opened.", state.seen_as)
            files = {
                storable(path): path
                for path in found.files
                if not path.name.startswith(_LOCK) and not (own and str(path).startswith(own))
            }
            sort_files(files, store.documents(folder.path), seen)
            wanted = store.without_left_out(folder.path, (storable(one.path) for one in seen.new))
            seen.new = [one for one in seen.new if storable(one.path) in wanted]
        states[folder.path] = state
    moved = _moves(seen.new, seen.missing, stop)
    at_home = {document_id for document_id, _file in moved}
    settled = {file.path for _document_id, file in moved}
    unread = [
        one for one in (*seen.new, *seen.changed) if one.path not in settled and str(one.path) not in busy
    ]
    now_ns = time.time_ns()
    # A time that lies far ahead is another machine's clock: such a file would never come to rest.
    fresh = {one for one in unread if abs(now_ns - one.mtime_ns) < quiet_s * 1e9}
    return Changes(
        states,
        moved,
        tuple(one for one in unread if one not in fresh),
        tuple(fresh),
        tuple(
            one
            for one in seen.missing
            if one.came_by_watching and one.document_id not in at_home and one.path not in busy
        ),
    )


def state_of(folder: FolderRecord) -> FolderState:
    """Whether a folder is there, and whether it is the one that was there before.

    Where a disk was mounted, an empty folder of the same name is left: it is not taken for the disk.
    """
    try:
        status = Path(folder.path).stat()
        if not stat.S_ISDIR(status.st_mode):
            return FolderState(False, _NOT_THERE)
        with os.scandir(folder.path) as entries:
            is_empty = next(entries, None) is None
    except PermissionError:
        return FolderState(False, "You have no permission to open it. Its documents stay.")
    except OSError:
        return FolderState(False, _NOT_THERE)
    seen_as = f"{status.st_dev}:{status.st_ino}"
    if is_empty and folder.seen_as not in ("", seen_as):
        return FolderState(False, _NOT_THERE)
    return FolderState(True, seen_as="" if is_empty else seen_as)


def sort_files(files: Mapping[str, Path], known: Iterable[KnownFile], seen: _Seen) -> None:
    """Add one folder's new, changed and missing files to ``seen``. ``files``: by the name that is stored."""
    documents = {one.path: one for one in known}
    # Some file systems know a name in either Unicode form: it may be stored in the other one.
    by_form = {_form(one): one for one in documents if one not in files}
    for name, path in files.items():
        state = file_state(path)
        if state is None:
            continue
        document = documents.get(name)
        if document is None and (other := by_form.get(_form(name))) and _is_same_file(other, path):
            document = documents[other]
        if document is None:
            seen.new.append(state)
        elif (document.n_bytes, document.mtime_ns) != (state.n_bytes, state.mtime_ns):
            seen.changed.append(state)
    seen.missing += [one for one in documents.values() if one.path not in files and is_gone(one.path)]


def file_state(path: Path) -> FileState | None:
    """None where there is no file any more, or it cannot be looked at."""
    try:
        status = path.stat()
    except OSError:
        return None
    return FileState(path, status.st_size, storable_time(status.st_mtime_ns), status.st_ctime_ns)


def is_gone(path: str) -> bool:
    """Whether there is certainly nothing at a path: not where a link in it leads nowhere, or may not be
    followed, since what it leads to may come back.
    """
    file = Path(path)
    try:
        file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        above = next(one for one in file.parents if os.path.lexists(one))
        try:
            return above.exists()
        except OSError:
            return False
    except OSError:
        return False
    return False


def storable(path: Path) -> str:
    """A path as the library stores it: bytes in it that are no UTF-8 become escapes."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _moves(
    new: Iterable[FileState], missing: Iterable[KnownFile], stop: Callable[[], bool]
) -> tuple[tuple[int, FileState], ...]:
    """Which missing documents are the new files. Only files of the same size and ending are looked into."""
    waiting: defaultdict[tuple[int, str], list[KnownFile]] = defaultdict(list)
    for one in missing:
        if one.content_hash:
            waiting[one.n_bytes, Path(one.path).suffix.lower()].append(one)
    moved = []
    for file in new:
        candidates = waiting.get((file.n_bytes, file.path.suffix.lower()))
        if not candidates or stop():
            continue
        content_hash = _hash_of(file.path)
        same = [one for one in candidates if one.content_hash == content_hash]
        if same:
            # A renamed file keeps its time: of two with the same bytes that tells which is which.
            document = min(same, key=lambda one: (one.mtime_ns != file.mtime_ns, one.document_id))
            candidates.remove(document)
            moved.append((document.document_id, file))
    return tuple(moved)


def _hash_of(path: Path) -> str:
    """As ``documents.content_hash``; empty for what cannot be read."""
    digest = xxhash.xxh3_128()
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
            return ""
        with path.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                digest.update(piece)
    except OSError:
        return ""
    return digest.hexdigest()


def _form(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _is_same_file(one: str, other: Path) -> bool:
    try:
        return other.samefile(one)
    except OSError:
        return False
