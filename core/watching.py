"""Keeps the library like the watched folders: what changed is read, what moved stays, what is gone leaves.

On two threads of its own: one is told that something changed (``core.ingest.watch``), one looks what it
was. Reading and removing are the service's, on the threads that do them anyway.
"""

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import KnownError, SlipstreamError
from core.store.database import Database
from core.store.documents import DocumentStore
from core.store.folders import FolderRecord, FolderStore, KnownFile, below
from core.types import Event, Notice, WatchedFolder, WatchedFoldersChanged
from core.worker import Worker

if TYPE_CHECKING:
    from core.ingest.folder_scan import FileState, FolderState
    from core.ingest.watch import Watcher

_CLOSE_S = 5.0
_LATE = "Changes are found within a minute."


@dataclass(frozen=True, slots=True)
class Hands:
    """What the service does for it. Each returns at once."""

    read: Callable[[Sequence[Path]], None]
    """Read files; ``Watching.reading_ended`` is called afterwards."""
    stop: Callable[[], None]
    """Stop that reading after the file in hand."""
    remove: Callable[[Sequence[KnownFile], bool], None]
    """Remove documents; with True only those of which ``is_still_there`` does not say otherwise."""
    move: Callable[[Sequence[int], int], None]
    """Put documents into a collection."""
    listed: Callable[[], None]
    """Tell the list of documents: some have other paths now."""


class Watching:
    def __init__(
        self,
        data_dir: Path,
        hands: Hands,
        emit: Callable[[Event], None],
        report: Callable[[SlipstreamError], None],
    ) -> None:
        """Nothing is watched before ``begin`` or ``watch``."""
        self._data_dir = data_dir.absolute()
        self._hands = hands
        self._emit = emit
        self._closing = threading.Event()
        self._states: dict[str, FolderState] = {}
        self._late: set[str] = set()
        """Folders whose events the system does not give."""
        self._is_reading = False
        self._tried: set[FileState] = set()
        """Files that were given to be read: what failed is tried again when it is another file."""
        self._unwanted: list[str] = []
        """Folders whose documents are to leave as soon as the running reading has stopped."""
        self._told: tuple[WatchedFolder, ...] = ()
        self._watcher: Watcher | None = None
        self._worker = Worker("folders", data_dir, report)

    # --- called from any thread -------------------------------------------------------------------

    def begin(self) -> None:
        """Look at the folders that are watched already, and keep them up to date from now on."""
        self._worker.put(self._begin)

    def watch(self, path: Path, collection_id: int | None) -> None:
        """Watch a folder from now on, and read what is in it. Answered by WatchedFoldersChanged."""
        self._worker.put(lambda: self._watch(path, collection_id))

    def unwatch(self, path: str, *, remove_documents: bool) -> None:
        """Watch a folder no longer; its documents leave or stay. Answered by WatchedFoldersChanged."""
        self._worker.put(lambda: self._unwatch(path, remove_documents=remove_documents))

    def request(self) -> None:
        """Answered by WatchedFoldersChanged."""
        self._worker.put(partial(self._tell, always=True))

    def reading_ended(self, *, watched: bool, cancelled: bool) -> None:
        """After every reading of files: what it read may belong to a folder."""
        self._worker.put(lambda: self._after_reading(watched=watched, cancelled=cancelled))

    def documents_changed(self) -> None:
        """After removals: the folders hold fewer documents."""
        self._worker.put(self._tell)

    def close(self) -> None:
        """Stop watching. Waits for what is being looked at, but not for a drive that does not answer."""
        self._closing.set()
        self._worker.put(self._close_watcher)
        self._worker.stop()
        self._worker.join(2 * _CLOSE_S)

    # --- on the thread of the worker --------------------------------------------------------------

    def _begin(self) -> None:
        if self._folders() and not self._closing.is_set():
            self._follow()
            self._look()

    def _watch(self, path: Path, collection_id: int | None) -> None:
        # Not resolved: a link keeps the name under which the user knows it.
        folder = os.path.abspath(path.expanduser())  # noqa: PTH100
        self._check(folder)
        FolderStore(self._worker.db).add(folder, collection_id)
        self._follow()
        self._tell()
        self._look()

    def _check(self, folder: str) -> None:
        """Raises KnownError for what cannot be watched."""
        from core.ingest.walk import storable

        if not Path(folder).is_dir():
            raise KnownError("This folder is not there.", hint="Choose a folder that can be opened.")
        if storable(Path(folder)) != folder:
            raise KnownError(
                "This folder's path holds bytes that are no text.",
                hint="Rename it, or add its files without watching it.",
            )
        if below(folder).startswith(below(str(self._data_dir))):
            raise KnownError("This folder is Slipstream's own.", hint="Choose another one.")
        for one in self._folders():
            if one.path != folder and below(folder).startswith(below(one.path)):
                raise KnownError(f"This folder is kept up to date already, as a part of “{one.path}”.")
            if one.path != folder and below(one.path).startswith(below(folder)):
                raise KnownError(
                    f"A part of this folder is kept up to date already: “{one.path}”.",
                    hint="Stop watching that one first.",
                )

    def _unwatch(self, path: str, *, remove_documents: bool) -> None:
        store = FolderStore(self._worker.db)
        store.mark_new(path)
        store.remove(path)
        self._late.discard(path)
        self._states.pop(path, None)
        self._follow()
        if remove_documents:
            self._unwanted.append(path)
        if self._is_reading:
            self._hands.stop()  # it may be reading this folder; what else there is to read is found again
        else:
            self._remove_unwanted()
        self._tell(always=True)

    def _remove_unwanted(self) -> None:
        store = FolderStore(self._worker.db)
        for path in self._unwanted:
            self._hands.remove(store.documents(path), False)
        self._unwanted.clear()

    def _follow(self) -> None:
        """Have the system tell of changes in the folders as they are listed now."""
        folders = [one.path for one in self._folders()]
        if self._watcher is None and folders:
            from core.ingest.watch import Watcher

            self._watcher = Watcher(
                lambda: self._worker.put(self._look),
                lambda folder, error: self._worker.put(lambda: self._find_late(folder, error)),
            )
        if self._watcher is not None:
            self._watcher.set_folders(folders)

    def _find_late(self, folder: str, error: OSError) -> None:
        from core.ingest.watch import is_limit

        if folder in self._late:
            return
        self._late.add(folder)
        if is_limit(error):
            message = (
                f"The system watches no more folders: in “{Path(folder).name}” changes are found"
                " within a minute instead of at once."
            )
            hint = "Nothing is lost. On Linux, a higher fs.inotify.max_user_watches lets it watch more."
        else:
            message = f"“{Path(folder).name}” cannot be watched: changes are found within a minute."
            hint = "Nothing is lost."
        self._emit(Notice(message, hint, repr(error), is_warning=True))
        self._tell()

    def _look(self) -> None:
        """Compare all folders with the library and set in motion what sets it right."""
        from core.ingest import watch
        from core.ingest.folder_scan import compare

        watcher = self._watcher
        if self._closing.is_set() or watcher is None:
            return
        db = self._worker.db
        store = FolderStore(db)
        folders = store.list()
        changes = compare(
            folders,
            store,
            busy=watcher.busy(),
            quiet_s=watch.QUIET_S,
            outside=self._data_dir,
            stop=self._closing.is_set,
        )
        if self._closing.is_set():
            return
        self._states = dict(changes.folders)
        for folder in folders:
            state = changes.folders[folder.path]
            if state.seen_as and (state.seen_as, state.mounts) != (folder.seen_as, folder.mounts):
                store.set_seen(folder.path, state.seen_as, state.mounts)
            if not state.is_there:
                watcher.lose(folder.path)
        for file in changes.fresh:
            watcher.note(str(file.path))
        self._settle()
        self._relocate(db, changes.moved)
        if not self._is_reading:
            self._read(changes.unread)
        if changes.gone:
            self._hands.remove(changes.gone, True)
        self._tell()

    def _read(self, unread: Sequence["FileState"]) -> None:
        self._tried.intersection_update(unread)
        files = [one for one in unread if one not in self._tried]
        if files:
            self._is_reading = True
            self._tried.update(files)
            self._hands.read([one.path for one in files])

    def _relocate(self, db: Database, moved: Sequence[tuple[int, "FileState"]]) -> None:
        from core.ingest.walk import storable

        documents = DocumentStore(db)
        for document_id, file in moved:
            title = storable(Path(file.path.name))
            documents.relocate(document_id, storable(file.path), title, file.mtime_ns)
        if moved:
            self._hands.listed()

    def _after_reading(self, *, watched: bool, cancelled: bool) -> None:
        self._settle()
        if not watched:
            self._tell()
            return
        self._is_reading = False
        was_for_this = bool(self._unwanted)
        self._remove_unwanted()
        if cancelled:
            self._tried.clear()
        if not cancelled or was_for_this:
            self._look()  # what changed meanwhile was left for now
        else:
            self._tell()  # what was not reached is read when something changes, or at the next start

    def _settle(self) -> None:
        """Note what came by watching, and put it into its folder's collection."""
        store = FolderStore(self._worker.db)
        for folder in self._folders():
            new = store.mark_new(folder.path)
            if new and folder.collection_id is not None:
                self._hands.move(new, folder.collection_id)

    def _folders(self) -> tuple[FolderRecord, ...]:
        return FolderStore(self._worker.db).list()

    def _tell(self, *, always: bool = False) -> None:
        store = FolderStore(self._worker.db)
        told = []
        for one in store.list():
            state = self._states.get(one.path)
            is_there = state.is_there if state is not None else Path(one.path).is_dir()
            late = _LATE if is_there and one.path in self._late else ""
            note = " ".join(words for words in (state.note if state else "", late) if words)
            told.append(WatchedFolder(one.path, one.collection_id, store.count(one.path), is_there, note))
        if always or tuple(told) != self._told:
            self._told = tuple(told)
            self._emit(WatchedFoldersChanged(self._told))

    def _close_watcher(self) -> None:
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None


def is_still_there(db: Database, file: KnownFile) -> bool:
    """Whether a document must stay after all: its file came back, or is known at another path by now, or
    the disk that it lies on is not there any more.
    """
    from core.ingest.folder_scan import is_gone
    from core.ingest.places import is_in_its_place

    record = DocumentStore(db).find_by_path(file.path)
    if record is None or record.info.id != file.document_id or not is_gone(file.path):
        return True
    return not is_in_its_place(file.path, FolderStore(db).list())
