"""Watched folders against the library: what moved, what is to be read, what is gone.

Nothing is changed here. A folder that is not there, or cannot be opened, says nothing about its documents.
"""

import os
import stat
import time
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from core.ingest.content_hash import hash_of
from core.ingest.places import Mounts, identity, lies_in, look_at_mounts
from core.ingest.readers import MAX_FILE_BYTES
from core.ingest.walk import find_files, storable
from core.store.documents import storable_time
from core.store.folders import FolderRecord, FolderStore, KnownFile, below

_LOCK = "~$"
"""So begin the names of files that Office keeps beside a document while it is open."""
_NOT_THERE = "It is not there now. Its documents stay; what changed is read when it is back."
_ANOTHER = (
    "It is not there now: another folder is in its place, with none of its documents, which stay."
    " If that is the folder that you want, stop watching it and watch it again."
)
_DISK_AWAY = "A disk in it is not there now. Its documents stay."


@dataclass(frozen=True, slots=True)
class FolderState:
    """What can be told of a folder itself."""

    is_there: bool
    note: str = ""
    """What the user should know; empty if nothing."""
    seen_as: str = ""
    """Device and inode, of one that is there with something in it."""
    mounts: Mapping[str, str] = field(default_factory=dict)
    """The same of what is mounted below it, there now or not."""


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
    renamed: list[tuple[int, FileState]] = field(default_factory=list)
    """Documents whose file has another name now that the system takes for the same."""


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
            state = _look_into(folder, state, store, seen, own)
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
        (*seen.renamed, *moved),
        tuple(one for one in unread if one not in fresh),
        tuple(fresh),
        tuple(
            one
            for one in seen.missing
            if one.came_by_watching and one.document_id not in at_home and one.path not in busy
        ),
    )


def _look_into(
    folder: FolderRecord, state: FolderState, store: FolderStore, seen: _Seen, own: str
) -> FolderState:
    """Add what is in one folder to ``seen``; what there is to say of the folder then."""
    found = find_files([Path(folder.path)])
    files = {
        storable(path): path
        for path in found.files
        if not path.name.startswith(_LOCK) and not (own and str(path).startswith(own))
    }
    documents = store.documents(folder.path)
    which = identity(folder.path)  # after the walk: it may have gone meanwhile
    if folder.seen_as and which != folder.seen_as and not _is_any_met(documents, files):
        return FolderState(False, _ANOTHER if which else _NOT_THERE)
    mounts = look_at_mounts(folder, files, [one.path for one in documents])
    sort_files(
        {name: path for name, path in files.items() if not lies_in(name, mounts.away)},
        documents,
        seen,
        mounts,
    )
    wanted = store.without_left_out(folder.path, (storable(one.path) for one in seen.new))
    seen.new = [one for one in seen.new if storable(one.path) in wanted]
    notes = [_DISK_AWAY] if mounts.unsure else []
    if found.problems:
        n_closed = len(found.problems)
        which = "A folder" if n_closed == 1 else f"{n_closed:,} folders"
        notes.append(f"{which} in it cannot be opened.")
    return FolderState(True, " ".join(notes), state.seen_as, mounts.seen)


def _is_any_met(documents: Collection[KnownFile], files: Iterable[str]) -> bool:
    """True for a library that has nothing to lose there."""
    forms = {_form(one) for one in files}
    return not documents or any(_form(one.path) in forms for one in documents)


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


def sort_files(
    files: Mapping[str, Path], known: Iterable[KnownFile], seen: _Seen, mounts: Mounts | None = None
) -> None:
    """Add one folder's new, changed and missing files to ``seen``. ``files``: by the name that is stored."""
    unsure = mounts.unsure if mounts else ()
    documents = {one.path: one for one in known}
    # Some file systems know a name in either Unicode form, or in capitals and small letters alike.
    by_form = {_form(one): one for one in documents if one not in files}
    for name, path in files.items():
        state = file_state(path)
        if state is None:
            continue
        document = documents.get(name)
        if document is None and (other := by_form.get(_form(name))) and _is_same_file(other, path):
            document = documents[other]
            # With its old time: whether it was also changed is found by that.
            seen.renamed.append((document.document_id, replace(state, mtime_ns=document.mtime_ns)))
        if document is None:
            seen.new.append(state)
        elif (document.n_bytes, document.mtime_ns) != (state.n_bytes, state.mtime_ns):
            seen.changed.append(state)
    seen.missing += [
        one
        for one in documents.values()
        if one.path not in files and not lies_in(one.path, unsure) and is_gone(one.path)
    ]


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
        content_hash = _readable_hash(file.path)
        same = [one for one in candidates if one.content_hash == content_hash]
        if same:
            # A renamed file keeps its time: of two with the same bytes that tells which is which.
            document = min(same, key=lambda one: (one.mtime_ns != file.mtime_ns, one.document_id))
            candidates.remove(document)
            moved.append((document.document_id, file))
    return tuple(moved)


def _readable_hash(path: Path) -> str:
    """Empty for what cannot be read, or is not read."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_FILE_BYTES:
            return ""
        return hash_of(path)
    except OSError:
        return ""


def _form(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _is_same_file(one: str, other: Path) -> bool:
    try:
        return other.samefile(one)
    except OSError:
        return False
