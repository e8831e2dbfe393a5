"""Tells when files in some folders changed and have come to rest. What changed is found by looking.

The system's events say only that it is time to look: they can be lost, doubled, or never come (network
drives, behind links). So every folder is looked at now and then all the same.
"""

import contextlib
import errno
import logging
import os
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers.api import BaseObserver, ObservedWatch

QUIET_S: Final = 2.0
"""A file is read when nothing was written to it for so long."""
PATIENCE_S: Final = 10.0
"""While something always changes, what is at rest is read all the same after so long."""
_CHECK_S = 5.0
"""How often it is looked whether a folder came or went as a whole."""
_LOOK_S = 600.0
"""How often folders are looked at without an event."""
_LOOK_UNWATCHED_S = 60.0
"""The same, where the system tells of no events."""
_CLOSE_S = 5.0
_READING_EVENTS = frozenset(("opened", "closed_no_write"))
_log = logging.getLogger(__name__)


class Quiet:
    """Gathers changes until they have come to rest. Times are seconds of one clock."""

    def __init__(self, quiet_s: float, patience_s: float) -> None:
        self._quiet_s = quiet_s
        self._patience_s = patience_s
        self._last: dict[str, float] = {}
        self._newest = 0.0
        """The greatest of those times: a storm of events must not search for it at every event."""
        self._since = 0.0
        """When the oldest change came that nobody was told of."""

    def note(self, path: str, now: float) -> None:
        if not self._last:
            self._since = self._newest = now
        self._last[path] = now
        self._newest = max(self._newest, now)

    @property
    def due_at(self) -> float | None:
        """When it is time to look; None while nothing changed."""
        if not self._last:
            return None
        return min(self._newest + self._quiet_s, self._since + self._patience_s)

    def take(self, now: float, *, at_once: bool = False) -> frozenset[str] | None:
        """None while it is not yet time to look; else the paths that are not at rest: not to be read yet."""
        due_at = self.due_at
        if not at_once and (due_at is None or now < due_at):
            return None
        busy = self.busy(now)
        self._last = {path: self._last[path] for path in busy}
        self._since = now
        return busy

    def busy(self, now: float) -> frozenset[str]:
        """The paths that changed just now."""
        return frozenset(path for path, at in self._last.items() if now < at + self._quiet_s)


class Watcher:
    """A thread of its own that watches folders until it is closed.

    ``changed`` is called on that thread when it is time to look. ``troubled`` is told of a
    folder whose events the system does not give, and why; changes there are found within a minute.
    """

    def __init__(
        self,
        changed: Callable[[], None],
        troubled: Callable[[str, OSError], None],
        *,
        quiet: Quiet | None = None,
        observer: "Callable[[], BaseObserver] | None" = None,
    ) -> None:
        self._changed = changed
        self._troubled = troubled
        self._quiet = quiet or Quiet(QUIET_S, PATIENCE_S)
        self._new_observer = observer
        self._observer: BaseObserver | None = None
        self._watches: dict[str, tuple[tuple[int, int], ObservedWatch | None]] = {}
        """Of each folder that is there which one it is, and its watch if the system gave one."""
        self._folders: frozenset[str] = frozenset()
        self._wake = threading.Condition()
        self._is_closed = False
        self._stale = False
        """The folders are others than those that are watched."""
        self._lost: set[str] = set()
        """Folders that were not there when they were looked at, however short a time that was."""
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def set_folders(self, folders: Iterable[str]) -> None:
        """Watch these folders and no others. One that is not there is watched as soon as it is."""
        with self._wake:
            self._folders = frozenset(folders)
            self._stale = True
            self._wake.notify()

    def note(self, path: str) -> None:
        """A change that the system did not tell of, or not yet."""
        with self._wake:
            self._quiet.note(path, time.monotonic())
            self._wake.notify()

    def lose(self, folder: str) -> None:
        """It was not there just now: as soon as it is, watch it anew and say that it is time to look."""
        with self._wake:
            self._lost.add(folder)

    def busy(self) -> frozenset[str]:
        """The paths that are being written: what is read of them now may be half of it."""
        with self._wake:
            return self._quiet.busy(time.monotonic())

    def close(self) -> None:
        """Watch nothing any more. Waits for the thread, but not for a drive that does not answer."""
        with self._wake:
            self._is_closed = True
            self._wake.notify()
        self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        checked_at = looked_at = -_LOOK_S
        while True:
            with self._wake:
                now = time.monotonic()
                ends = [checked_at + _CHECK_S, *([] if self._quiet.due_at is None else [self._quiet.due_at])]
                if not self._is_closed and not self._stale:
                    self._wake.wait(max(0.0, min(ends) - now) if self._folders else None)
                if self._is_closed:
                    break
                now = time.monotonic()
                is_time = self._stale or (bool(self._folders) and now >= checked_at + _CHECK_S)
                self._stale = False
                folders = self._folders
            at_once = False
            if is_time:
                checked_at = now
                at_once = self._attend(folders)
                blind = any(watch is None for _which, watch in self._watches.values())
                at_once = at_once or now >= looked_at + (_LOOK_UNWATCHED_S if blind else _LOOK_S)
            with self._wake:
                busy = self._quiet.take(time.monotonic(), at_once=at_once)
            if busy is not None:
                looked_at = time.monotonic()
                self._changed()
        self._stop_observer()

    def _attend(self, folders: frozenset[str]) -> bool:
        """Begin and end watches as folders come and go; whether any came or went."""
        different = False
        with self._wake:
            lost, self._lost = self._lost, set()
        for folder in folders | self._watches.keys():
            which = _which(folder) if folder in folders else None
            old = self._watches.get(folder)
            if (old[0] if old else None) == which and not (which and folder in lost):
                continue
            different = True
            if old is not None:
                del self._watches[folder]
                if old[1] is not None and self._observer is not None:
                    with contextlib.suppress(KeyError, OSError):  # the system may have ended it already
                        self._observer.unschedule(old[1])
            if which is not None:
                self._watches[folder] = (which, self._watch(folder))
        return different

    def _watch(self, folder: str) -> "ObservedWatch | None":
        try:
            if self._observer is None:
                self._observer = self._start_observer()
            watch = self._observer.schedule(_handler(self._take), folder, recursive=True)
        except OSError as error:
            self._troubled(folder, error)
            return None
        try:
            self._try_one_more()
        except OSError as error:  # then some of the folders below have no watch either, which nobody tells
            self._troubled(folder, error)
            with contextlib.suppress(KeyError, OSError):
                self._observer.unschedule(watch)
            return None
        return watch

    def _try_one_more(self) -> None:
        """Raises OSError where the system gives no watch any more."""
        assert self._observer is not None
        with tempfile.TemporaryDirectory(prefix="slipstream-") as empty:
            watch = self._observer.schedule(_handler(lambda _event: None), empty)
            self._observer.unschedule(watch)

    def _start_observer(self) -> "BaseObserver":
        if self._new_observer is None:
            from watchdog.observers import Observer

            observer: BaseObserver = Observer()
        else:
            observer = self._new_observer()
        observer.start()
        return observer

    def _stop_observer(self) -> None:
        if self._observer is None:
            return
        try:
            self._observer.stop()
            self._observer.join(_CLOSE_S)
        except (OSError, RuntimeError):
            _log.debug("watching ended badly", exc_info=True)

    def _take(self, event: "FileSystemEvent") -> None:
        """On the system's thread."""
        if event.event_type in _READING_EVENTS or (event.is_directory and event.event_type == "modified"):
            return
        for path in (event.src_path, event.dest_path):
            if path:
                self.note(os.fsdecode(path))


def _handler(take: "Callable[[FileSystemEvent], None]") -> "FileSystemEventHandler":
    from watchdog.events import FileSystemEventHandler

    class Handler(FileSystemEventHandler):
        def on_any_event(self, event: "FileSystemEvent") -> None:
            take(event)

    return Handler()


def is_limit(error: OSError) -> bool:
    """Whether the system refuses to watch any more folders."""
    return error.errno in (errno.ENOSPC, errno.EMFILE, errno.ENFILE)


def _which(folder: str) -> tuple[int, int] | None:
    """Device and inode of a folder; None where there is none."""
    try:
        status = Path(folder).stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None
