"""What is asked to be read into the library: queued, paused, stopped, and taken up again after a crash.

Requests run on the ``ingest`` thread, one after another. What was asked for stands in the database from
the moment it is queued until it is done or the user stops it; passwords stay in memory.
"""

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from core import jit
from core.errors import Cancelled, DocumentError, StoreError
from core.ingest.extracted import ReadOptions
from core.ingest.walk import absolute
from core.store.documents import DocumentStore
from core.store.reading import ReadingStore
from core.types import DocumentInfo, Event, IngestProgress, Notice
from core.worker import Worker, as_slipstream_error, notice_of

if TYPE_CHECKING:
    from core.ingest.tally import IngestSummary

_log = logging.getLogger(__name__)
_LIST_EVERY_S = 1.0
"""While files are read, the list of documents is told at most so often."""
_ENDED = IngestProgress(False, 0, 0, 0, 0, 0, 0, "", 0.0, cancelled=True)
"""Of a request that came to no end of its own."""


@dataclass(slots=True)
class _Request:
    """One call; ``numbers`` are its rows in the database, by path."""

    id: int
    """In IngestProgress and Notice, and known to whoever asked."""
    paths: tuple[Path, ...] = ()
    options: Mapping[str, ReadOptions] = field(default_factory=dict)
    numbers: dict[Path, int] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)
    unwanted: bool = False
    """The user stopped it: it is not taken up again."""
    watched: bool = False
    """A watched folder changed: nobody is asked to wait for it, and the folder is looked at again anyway."""
    ended: bool = False
    """Its last IngestProgress was told."""


class ReadingQueue:
    def __init__(
        self,
        worker: Worker,
        notes: Worker,
        emit: Callable[[Event], None],
        *,
        changed: Callable[[], None],
        done: Callable[[bool, bool], None],
        closing: threading.Event,
    ) -> None:
        """``worker`` reads; ``notes`` is a thread that is free while it does, and writes down what is asked.

        ``changed`` is called now and then while documents come in, ``done`` after each request
        (whether it was of a watched folder, and whether it was stopped); both on the reading thread.
        """
        self._worker = worker
        self._notes = notes
        self._emit = emit
        self._changed = changed
        self._done = done
        self._closing = closing
        self._ids = itertools.count(1)
        self._requests: list[_Request] = []
        self._lock = threading.Lock()
        self._paused = threading.Event()
        self._passwords: dict[str, str] = {}
        """Of files that they opened, by path."""

    # --- from any thread --------------------------------------------------------------------------

    def add(self, paths: Sequence[Path]) -> int:
        """Read files and folders: IngestProgress … with the number that is returned."""

        def find(request: _Request) -> None:
            # As the walk names them: a relative path would mean another file in another folder.
            request.paths = tuple(map(absolute, paths))

        return self._ask(find)

    def read_watched(self, paths: Sequence[Path]) -> None:
        """Read files that changed in watched folders. Not written down: the next start finds them again."""
        request = self._new(paths, watched=True)

        def read() -> None:
            self._read(request)

        self._worker.put(read)

    def stop_watched(self) -> None:
        """Stop what ``read_watched`` began."""
        with self._lock:
            for request in self._requests:
                if request.watched:
                    request.stop.set()

    def take_up(self) -> None:
        """Go on with what was asked for and not finished when the program last ended."""

        def resume() -> None:
            left = ReadingStore(self._worker.db).list()
            if not left:
                return
            request = self._new(dict.fromkeys(one.path for one in left))
            request.options = {str(one.path): ReadOptions(ocr=True) for one in left if one.ocr}
            request.numbers = {one.path: one.id for one in left}

            def forget_doubles() -> None:
                doubles = {one.id for one in left} - set(request.numbers.values())
                ReadingStore(self._worker.db).remove(doubles)

            self._read(request, forget_doubles)

        self._worker.put(resume)

    def recognize_text(self, document_ids: Sequence[int]) -> int:
        """Read documents again with text recognition; what fails is told by a Notice as well."""
        chosen = tuple(document_ids)

        def find(request: _Request) -> None:
            infos = [info for number in chosen if (info := self._info(self._notes, number))]
            request.paths = tuple(Path(info.path) for info in infos)
            request.options = {
                info.path: ReadOptions(password=self._passwords.get(info.path, ""), ocr=True)
                for info in infos
            }

        return self._ask(find)

    def unlock(self, document_id: int, password: str) -> int:
        """Read a document with its password: LibraryChanged, or a Notice that says why not."""
        request = self._new()

        def find() -> None:
            info = self._info(self._worker, document_id)
            if info is None:
                raise DocumentError("This document is no longer in the library.")
            request.paths = (Path(info.path),)
            request.options = {info.path: ReadOptions(password=password)}

        def read() -> None:
            if self._read(request, find):
                self._passwords[str(request.paths[0])] = password

        self._worker.put(read)
        return request.id

    def password_of(self, path: str) -> str:
        """The one that opened a file since the program started, else none."""
        return self._passwords.get(path, "")

    def pause(self) -> None:
        """Nothing more is read until ``resume``; without anything to read it does nothing."""
        with self._lock:
            if self._requests:
                self._paused.set()

    def resume(self) -> None:
        self._paused.clear()

    def cancel(self) -> None:
        """Stop all reading, also what waits; finished files stay."""
        with self._lock:
            for request in self._requests:
                request.unwanted = True
                request.stop.set()

    def close(self) -> None:
        """Stop all reading until the next start of the program. ``closing`` is set by now."""
        with self._lock:
            for request in self._requests:
                request.stop.set()
        self._passwords.clear()

    # --- on the two threads -----------------------------------------------------------------------

    def _new(self, paths: Iterable[Path] = (), *, watched: bool = False) -> _Request:
        """A request that counts from now on: a cancel that comes before its turn stops it as well."""
        request = _Request(next(self._ids), tuple(paths), watched=watched)
        with self._lock:
            self._requests.append(request)
        return request

    def _ask(self, find: Callable[[_Request], None]) -> int:
        """Write a request down at once, on a thread that is free, and queue it; its number."""
        request = self._new()

        def note() -> None:
            try:
                find(request)
                ocr = any(option.ocr for option in request.options.values())
                numbers = ReadingStore(self._notes.db).add(request.paths, ocr=ocr)
                request.numbers = dict(zip(request.paths, numbers, strict=True))
            except StoreError:
                # It can be read all the same; if the database is really gone, reading will say so.
                _log.warning("what is to be read was not written down", exc_info=True)
            finally:
                self._worker.put(read)

        def read() -> None:
            self._read(request)

        self._notes.put(note)
        return request.id

    def _read(self, request: _Request, prepare: Callable[[], None] = lambda: None) -> bool:
        """On the reading thread. Whether everything was read; what ends it early is told by a Notice."""
        failed: tuple[tuple[str, str], ...] = ()
        finished = False
        try:
            prepare()
            summary = self._ingest(request)
            if summary is not None:
                failed = summary.problems
                finished = not summary.cancelled
        except Exception as error:  # noqa: BLE001  (whatever it is, whoever asked must know whose end it was)
            known = as_slipstream_error(error)
            if not isinstance(known, Cancelled):
                self._emit(notice_of(known, request=request.id))
        finally:
            if not request.ended:
                self._tell(request, _ENDED)
            with self._lock:
                self._requests.remove(request)
                if not self._requests:
                    self._paused.clear()  # what is added next is not kept waiting by an old pause
            self._done(request.watched, request.stop.is_set())
            if finished or request.unwanted or not self._closing.is_set():
                ReadingStore(self._worker.db).remove(request.numbers.values())
        if request.options:
            for path, reason in failed:
                self._emit(Notice(f"{Path(path).name}: {reason}", request=request.id))
        return finished and not failed

    def _ingest(self, request: _Request) -> "IngestSummary | None":
        jit.ensure_compiled(self._closing)
        if self._closing.is_set():
            return None  # before the kernels are imported: here that could mean compiling them
        from core.ingest.library import ingest

        last_list = time.monotonic()

        def progress(state: IngestProgress) -> None:
            nonlocal last_list
            self._tell(request, state)
            if state.running and time.monotonic() - last_list > _LIST_EVERY_S:
                last_list = time.monotonic()
                self._changed()

        def file_done(path: Path) -> None:
            # Recognizing text takes long: what is done is not done again.
            number = request.numbers.get(path) if str(path) in request.options else None
            if number is not None:
                ReadingStore(self._worker.db).remove([number])

        return ingest(
            request.paths,
            self._worker.db,
            cancel=request.stop,
            progress=progress,
            paused=self._paused,
            options=request.options,
            passwords=self._passwords,
            finished=file_done,
        )

    def _tell(self, request: _Request, state: IngestProgress) -> None:
        request.ended = not state.running
        self._emit(replace(state, watched=request.watched, request=request.id))

    @staticmethod
    def _info(worker: Worker, document_id: int) -> DocumentInfo | None:
        record = DocumentStore(worker.db).find_by_id(document_id)
        return record.info if record else None
