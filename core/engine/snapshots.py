"""Snapshots of prefilled chunks on the SSD: one file a chunk, which the next start finds again.

A file is a header (whose, where, checksums) and the payload as it came. The headers are the one truth about
what is on disk. Files are written under a temporary name and renamed, without fsync: what does not verify is
deleted and prefilled again. A chunk is of use only behind its parent, so the files form
trees; a file that has lost its parent is deleted. Deleting unlinks before the call returns, parents first:
killed half way, the rest are orphans, which the next start deletes.
"""

import errno
import fcntl
import heapq
import json
import mmap
import os
import re
import stat
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np
import xxhash
from numpy.typing import NDArray

from core.errors import BugError

FORMAT_VERSION = 1

_MAGIC = b"SLIPKV\r\n"
_FIELDS = struct.Struct("<8sIQ" + "16s16s16sI?16sIQ16sQ" + "59x")
"""Magic, version, xxh3_64 of the payload; then SnapshotInfo's fields in their order, without ``used_at``.
Behind it stands the xxh3_64 of these bytes, padding included."""
_DIGEST = struct.Struct("<Q")
HEADER_BYTES = _FIELDS.size + _DIGEST.size
"""192: the payload of a mapped file begins at a multiple of 64."""

_SUFFIX, _TEMPORARY = ".kv", ".tmp"
_LOCK_FILE, _DAY_FILE = ".lock", "written.json"
_BLOCK_ID = re.compile(r"(?:[0-9a-f]{16})?")


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """What the header says of one chunk. Keys are 16 bytes long."""

    key: bytes
    """The chunk's key under its path."""
    parent: bytes
    """Key of the chunk before it, or the root key."""
    root: bytes
    """Root key (maker and namespace) of the path."""
    n_tokens: int
    ends_segment: bool
    segment_parent: bytes
    """Key of the last chunk of the segment before this chunk's segment, or the root key."""
    segment_tokens: int
    """Tokens of the whole segment."""
    element: int
    """``Segment.element``, 64 bits."""
    block_id: str
    """16 hexadecimal digits, or empty."""
    n_bytes: int = 0
    """Length of the payload. ``SnapshotStore.write`` sets it, and ``used_at``."""
    used_at: float = 0.0
    """Unix time in seconds of the last use: the file's modification time."""

    @property
    def file_bytes(self) -> int:
        return HEADER_BYTES + self.n_bytes


@dataclass(frozen=True, slots=True, eq=False)
class _Writing:
    """A file that is being written, outside the lock. Who removes it unlinks it at once."""

    info: SnapshotInfo
    temporary: Path
    fd: int


class SnapshotStore:
    """The files of one folder, which belongs to one process at a time.

    Any thread may call anything; payloads are written and verified outside the lock. ``on_evict`` and
    ``notify`` are called without the lock, on whichever thread; ``protected`` with it: it must not wait.
    """

    def __init__(
        self, folder: Path, budget_bytes: int, daily_write_bytes: int, notify: Callable[[str], None]
    ) -> None:
        self.enabled = False
        """False for good where the folder is not ours to use: everything is empty and does nothing."""
        self.writable = False
        """False from the first failure of the disk on, until the next start."""
        self.roots: set[bytes] = set()
        """Root keys of the model in use: snapshots of other roots are evicted first."""
        self.on_evict: Callable[[bytes], None] = lambda _key: None
        self.protected: Callable[[bytes], bool] = lambda _key: False
        self._folder = folder
        self.budget_bytes = budget_bytes
        self._daily_write_bytes = daily_write_bytes
        self._notify = notify
        self._lock = threading.RLock()
        self._outbox: deque[Callable[[], None]] = deque()
        self._catalog: dict[bytes, SnapshotInfo] = {}
        self._children: dict[bytes, set[bytes]] = {}
        self._view: Mapping[bytes, SnapshotInfo] | None = None
        self._writing: dict[bytes, _Writing] = {}
        self._n_bytes = 0
        self._n_temporary = 0
        self._day = ("", 0)
        self._lock_fd = -1
        try:
            self._open()
        except OSError as error:
            self.close()
            taken = isinstance(error, BlockingIOError)
            why = "another Slipstream is using it" if taken else error.strerror
            notify(
                f"The folder of saved prompts {folder} cannot be used: {why}."
                " Questions go on; prompts that were read are not kept on disk this time."
            )

    def _open(self) -> None:
        with self._locked():
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._folder.chmod(0o700)
            self._lock_fd = os.open(self._folder / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.access(self._folder, os.W_OK | os.X_OK):
                raise OSError(errno.EROFS, os.strerror(errno.EROFS))
            self._load()
            self._day = _read_day(self._folder / _DAY_FILE)
            self.enabled = self.writable = True
            self._evict(self._victims(self._n_bytes - self.budget_bytes, set()) or [])

    def _load(self) -> None:
        """Read all headers into the catalog; delete every file that is not reached from its root."""
        files = self._files()
        found = {info.key: info for info in map(_read_header, files) if info}
        children: dict[bytes, list[SnapshotInfo]] = {}
        for info in found.values():
            children.setdefault(info.parent, []).append(info)
        queue = [info for info in found.values() if info.parent == info.root]
        while queue:
            info = queue.pop()
            if info.key not in self._catalog:
                self._add(info)
                queue += [child for child in children.get(info.key, ()) if child.root == info.root]
        kept = {self._path(key) for key in self._catalog}
        self._delete([path for path in files if path not in kept])

    # --- what is on disk --------------------------------------------------------------------------------

    @property
    def catalog(self) -> Mapping[bytes, SnapshotInfo]:
        """All snapshots as they are now; the mapping does not change afterwards."""
        with self._lock:
            if self._view is None:
                self._view = MappingProxyType(dict(self._catalog))
            return self._view

    def __contains__(self, key: bytes) -> bool:
        with self._lock:
            return key in self._catalog

    @property
    def n_bytes(self) -> int:
        """Bytes on disk, headers and unfinished files included."""
        with self._lock:
            return self._n_bytes + sum(writing.info.file_bytes for writing in self._writing.values())

    @property
    def bytes_written_today(self) -> int:
        with self._lock:
            return self._written_today()

    # --- write and read ---------------------------------------------------------------------------------

    def write(self, info: SnapshotInfo, payload: NDArray[np.uint8] | memoryview) -> bool:
        """Save one chunk. True when it is on disk, also when it already was.

        False when its parent is not there, when today's write budget is spent, when evicting cannot make
        room, when it was removed meanwhile, or when the disk fails: that is told once, and nothing is
        written afterwards. ``payload`` is one-dimensional, contiguous, and not changed meanwhile.
        """
        keys = (info.key, info.parent, info.root, info.segment_parent)
        if any(len(key) != 16 for key in keys) or not _BLOCK_ID.fullmatch(info.block_id):
            raise BugError("A snapshot is named wrongly.", details=repr(info))
        data = payload if isinstance(payload, memoryview) else payload.data
        info = replace(info, n_bytes=data.nbytes, used_at=time.time())
        begun: _Writing | None = None
        try:
            with self._locked():
                if info.key in self._catalog:
                    self._touch(info.key)
                    return True
                if not self._make_room(info):
                    return False
                self._count_day(info.file_bytes)
                begun = self._begin(info)
            _write_file(begun.fd, info, data)
            with self._locked():
                if self._writing.get(info.key) is not begun:
                    return False
                begun.temporary.replace(self._path(info.key))
                del self._writing[info.key]
                self._add(info)
                return True
        except OSError as error:
            if begun is None or self._writing.get(info.key) is begun:
                self._degrade(error)
            return False
        finally:
            if begun is not None:
                with self._lock, suppress(OSError):
                    if self._writing.get(info.key) is begun:
                        del self._writing[info.key]
                    begun.temporary.unlink()

    def read(self, key: bytes) -> NDArray[np.uint8] | None:
        """The payload, verified: a read-only view of the mapped file, good also when the file is removed.

        It holds a file descriptor as long as it lives. A file that does not verify, or is gone, is dropped
        together with all its descendants.
        """
        with self._lock:
            info = self._catalog.get(key)
        if info is None:
            return None
        payload = _map_verified(self._path(key), info)
        with self._locked():
            if payload is None:
                self._remove({key})
            elif key in self._catalog:
                self._touch(key)
                return payload
        return None

    # --- removing ---------------------------------------------------------------------------------------

    def remove(self, keys: Iterable[bytes]) -> set[bytes]:
        """Delete these and all their descendants; returns all keys that are gone."""
        with self._locked():
            return self._remove(set(keys))

    def remove_blocks(self, block_ids: Collection[str]) -> set[bytes]:
        """Delete every snapshot whose path holds one of these blocks, under any root."""
        wanted = set(block_ids) - {""}
        return self._remove_where(lambda info: info.block_id in wanted)

    def remove_elements(self, elements: Collection[int]) -> set[bytes]:
        """Delete every snapshot whose path holds one of these elements, under any root."""
        wanted = set(elements)
        return self._remove_where(lambda info: info.element in wanted)

    def remove_root(self, root: bytes) -> set[bytes]:
        """Delete every snapshot of a namespace."""
        return self._remove_where(lambda info: info.root == root)

    def clear(self) -> None:
        """Forget everything: no file with any content is left."""
        with self._locked():
            self._remove(self._catalog.keys() | self._writing.keys())
            if self.enabled:
                with suppress(FileNotFoundError):
                    self._delete(self._files())

    def close(self) -> None:
        """Give the folder back. A write that is under way is given up."""
        with self._locked():
            self._delete([writing.temporary for writing in self._writing.values()])
            self.enabled = self.writable = False
            self._writing.clear()
            self._catalog.clear()
            self._children.clear()
            self._view = None
            self._n_bytes = 0
            if self._lock_fd >= 0:
                os.close(self._lock_fd)
                self._lock_fd = -1

    # --- under the lock ---------------------------------------------------------------------------------

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock; afterwards, without it, tell what there is to tell."""
        with self._lock:
            yield
        with suppress(IndexError):
            while True:
                tell = self._outbox.popleft()
                tell()

    def _path(self, key: bytes) -> Path:
        return self._folder / (key.hex() + _SUFFIX)

    def _files(self) -> list[Path]:
        """All files that are ours by their names."""
        with os.scandir(self._folder) as entries:
            return [self._folder / e.name for e in entries if e.name.endswith((_SUFFIX, _TEMPORARY))]

    def _add(self, info: SnapshotInfo) -> None:
        self._catalog[info.key] = info
        self._children.setdefault(info.parent, set()).add(info.key)
        self._n_bytes += info.file_bytes
        self._view = None

    def _begin(self, info: SnapshotInfo) -> _Writing:
        self._n_temporary += 1
        temporary = self._folder / f"{info.key.hex()}.{self._n_temporary}{_TEMPORARY}"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        writing = self._writing[info.key] = _Writing(info, temporary, fd)
        return writing

    def _touch(self, key: bytes) -> None:
        now = time.time()
        self._catalog[key] = replace(self._catalog[key], used_at=now)
        self._view = None
        with suppress(OSError):
            os.utime(self._path(key), (now, now))

    def _remove_where(self, matches: Callable[[SnapshotInfo], bool]) -> set[bytes]:
        with self._locked():
            infos = [*self._catalog.values(), *(writing.info for writing in self._writing.values())]
            return self._remove({info.key for info in infos if matches(info)})

    def _remove(self, keys: set[bytes]) -> set[bytes]:
        """Delete these and all their descendants, also those that are being written; parents first."""
        doomed = [key for key in keys if key in self._catalog]
        seen = set(doomed)
        for key in doomed:  # grows while it is walked
            children = self._children.get(key, set()) - seen
            doomed += children
            seen |= children
        given_up = [w for w in self._writing.values() if w.info.key in keys or w.info.parent in seen]
        for writing in given_up:
            del self._writing[writing.info.key]
        self._drop(doomed)
        self._delete([writing.temporary for writing in given_up])
        return seen

    def _drop(self, keys: list[bytes]) -> None:
        for key in keys:
            info = self._catalog.pop(key)
            siblings = self._children[info.parent]
            siblings.discard(key)
            if not siblings:
                del self._children[info.parent]
            self._n_bytes -= info.file_bytes
        self._view = None
        self._delete([self._path(key) for key in keys])

    def _delete(self, paths: list[Path]) -> None:
        """Unlink. What cannot be unlinked is told every time: somebody may have wanted it gone."""
        failures: list[OSError] = []
        for path in paths:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                failures.append(error)
        if failures:
            self.writable = False
            text = f"{len(failures)} files of saved prompts in {self._folder} could not be deleted"
            self._outbox.append(
                partial(self._notify, f"{text} ({failures[0].strerror}). Delete them by hand.")
            )

    # --- budgets ----------------------------------------------------------------------------------------

    def _make_room(self, info: SnapshotInfo) -> bool:
        """Whether ``info`` may be written, after evicting what must go for it."""
        if not self.writable or info.key in self._writing or info.file_bytes > self.budget_bytes:
            return False
        parent = self._catalog.get(info.parent)
        if info.parent != info.root and (parent is None or parent.root != info.root):
            return False
        if self._written_today() + info.file_bytes > self._daily_write_bytes:
            return False
        needed = {info.parent, *(writing.info.parent for writing in self._writing.values())}
        victims = self._victims(self.n_bytes + info.file_bytes - self.budget_bytes, needed)
        if victims is None:
            return False
        self._evict(victims)
        return self.writable

    def _victims(self, excess_bytes: int, needed: set[bytes]) -> list[bytes] | None:
        """Leaves to evict, in this order, to gain so many bytes; None if there are not enough."""
        if excess_bytes <= 0:
            return []
        n_children = {key: len(children) for key, children in self._children.items()}
        heap: list[tuple[bool, float, bytes]] = []

        def offer(key: bytes) -> None:
            info = self._catalog.get(key)
            if info and not n_children.get(key) and key not in needed and not self.protected(key):
                heapq.heappush(heap, (info.root in self.roots, info.used_at, key))

        for key in self._catalog:
            offer(key)
        victims: list[bytes] = []
        while heap and excess_bytes > 0:
            info = self._catalog[heapq.heappop(heap)[2]]
            victims.append(info.key)
            excess_bytes -= info.file_bytes
            n_children[info.parent] -= 1
            offer(info.parent)
        return victims if excess_bytes <= 0 else None

    def _evict(self, victims: list[bytes]) -> None:
        self._drop(victims)
        self._outbox.extend(partial(self.on_evict, key) for key in victims)

    def _written_today(self) -> int:
        """A day that is not today, past or (clock set back) future, counts nothing."""
        if self._day[0] != _today():
            self._day = (_today(), 0)
        return self._day[1]

    def _count_day(self, n_bytes: int) -> None:
        """Count, on disk as well, what is about to be written: a crash never makes it less."""
        self._day = (_today(), self._written_today() + n_bytes)
        path = self._folder / _DAY_FILE
        temporary = path.with_suffix(_TEMPORARY)
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump({"date": self._day[0], "bytes": self._day[1]}, file)
        temporary.replace(path)

    def _degrade(self, error: OSError) -> None:
        with self._locked():
            if not self.writable:
                return
            self.writable = False
            why = f"Saving to {self._folder} failed ({error.strerror})."
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                why = "The disk is full."
            message = f"{why} Questions go on; no more prompts are kept on disk until the next start."
            self._outbox.append(partial(self._notify, message))


# --- one file ---------------------------------------------------------------------------------------------


def _today() -> str:
    return datetime.now().astimezone().date().isoformat()


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """A file descriptor to read from. Raises OSError also for a link, a pipe, a folder."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        yield fd
    finally:
        os.close(fd)


def _read_day(path: Path) -> tuple[str, int]:
    """Date and bytes written on it; today and 0 where the file does not say."""
    with suppress(OSError, ValueError, LookupError, TypeError), _opened(path) as fd:
        raw = json.loads(os.read(fd, 200))
        date, n_bytes = raw["date"], raw["bytes"]
        if type(date) is str and type(n_bytes) is int and n_bytes >= 0:
            return date, n_bytes
    return _today(), 0


def _unpack(raw: bytes) -> tuple[SnapshotInfo, int] | None:
    """The header and the payload's digest; None for what is short, foreign, damaged or of another version."""
    head, digest = raw[: _FIELDS.size], raw[_FIELDS.size :]
    if len(raw) != HEADER_BYTES or digest != _DIGEST.pack(xxhash.xxh3_64_intdigest(head)):
        return None
    magic, version, payload_digest, *fields = _FIELDS.unpack(head)
    fields[-2] = fields[-2].rstrip(b"\0").decode("latin-1")
    info = SnapshotInfo(*fields)
    if magic != _MAGIC or version != FORMAT_VERSION or not _BLOCK_ID.fullmatch(info.block_id):
        return None
    return info, payload_digest


def _read_header(path: Path) -> SnapshotInfo | None:
    """What the file says of itself, if its name and size agree. The payload is not looked at."""
    try:
        with _opened(path) as fd:
            found = _unpack(os.read(fd, HEADER_BYTES))
            status = os.fstat(fd)
    except OSError:
        return None
    if found is None or path.name != found[0].key.hex() + _SUFFIX or status.st_size != found[0].file_bytes:
        return None
    return replace(found[0], used_at=min(status.st_mtime, time.time()))


def _write_file(fd: int, info: SnapshotInfo, data: memoryview) -> None:
    *fields, block_id, n_bytes, used_at = astuple(info)
    with os.fdopen(fd, "wb") as file:
        digest = xxhash.xxh3_64_intdigest(data)
        head = _FIELDS.pack(_MAGIC, FORMAT_VERSION, digest, *fields, block_id.encode(), n_bytes)
        file.write(head + _DIGEST.pack(xxhash.xxh3_64_intdigest(head)))
        file.write(data)
        file.flush()
        os.utime(fd, (used_at, used_at))


def _map_verified(path: Path, info: SnapshotInfo) -> NDArray[np.uint8] | None:
    """The payload of the file, if it is what ``info`` says, to the last bit. Nothing is copied."""
    try:
        with _opened(path) as fd:
            if os.fstat(fd).st_size != info.file_bytes:
                return None
            mapped = mmap.mmap(fd, info.file_bytes, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None
    found = _unpack(mapped[:HEADER_BYTES])
    payload = np.frombuffer(mapped, np.uint8)[HEADER_BYTES:]
    if found is None or replace(found[0], used_at=info.used_at) != info:
        return None
    return payload if xxhash.xxh3_64_intdigest(payload.data) == found[1] else None
