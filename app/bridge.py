"""Core events become Qt signals here, and nowhere else.

The core calls `ServiceBridge.post` on whatever thread made an event. Events wait in one ordered queue;
a piece of answer text joins the piece before it, and a newer progress replaces the older one, so a
flood costs the window one redraw per `FLUSH_MS`. The window reads them on the GUI thread, in order.
"""

import threading
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot

from core.config import Settings
from core.errors import SlipstreamError
from core.types import (
    AnswerText,
    CollectionInfo,
    Event,
    IngestProgress,
    Notice,
    PrefillProgress,
    Question,
)

if TYPE_CHECKING:
    from core.service import Service

FLUSH_MS: Final = 33
"""Time between two deliveries while events keep coming."""
BUDGET_S: Final = 0.02
"""Longest time one delivery may take before the event loop gets its turn."""

Factory = Callable[[Path, Settings, Callable[[Event], None]], "Service"]


def import_and_build(data_dir: Path, settings: Settings, on_event: Callable[[Event], None]) -> "Service":
    """The real service. Its import takes seconds, so it happens on the start-up thread."""
    from core.service import Service

    return Service(data_dir, settings, on_event, take_up=True)


def merged(older: Event, newer: Event) -> Event | None:
    """One event that says what two neighbours said, or None where both must be delivered."""
    if isinstance(older, AnswerText) and isinstance(newer, AnswerText) and older.ticket == newer.ticket:
        return replace(newer, text=older.text + newer.text)
    if isinstance(older, PrefillProgress) and isinstance(newer, PrefillProgress):
        return newer if older.ticket == newer.ticket else None
    if isinstance(older, IngestProgress) and isinstance(newer, IngestProgress) and older.running:
        return newer if older.request == newer.request else None
    return None


class ServiceBridge(QObject):
    """Starts the service on its own thread and passes calls down and events up."""

    arrived = Signal(object)
    """Carries one `core.types.Event`, on the GUI thread."""
    started = Signal()
    """The service exists: the library and the conversations can be asked for."""
    refused = Signal(object)
    """The service could not be made; carries a `SlipstreamError`."""
    _wake = Signal()

    def __init__(self, data_dir: Path, settings: Settings, factory: Factory = import_and_build) -> None:
        super().__init__()
        self._data_dir = data_dir
        self._settings = settings
        self._factory = factory
        self._service: Service | None = None
        self._lock = threading.Lock()
        self._queue: deque[Event | SlipstreamError | None] = deque()
        """None stands for "started", an error for "refused"."""
        self._waiting: dict[str, Callable[[Service], None]] = {}
        """What the service is told as soon as it is there; of each kind the newest."""
        self._awake = False
        self._closed = False
        self._thread: threading.Thread | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._deliver)
        self._wake.connect(self._on_wake, Qt.ConnectionType.QueuedConnection)

    @property
    def ready(self) -> bool:
        return self._service is not None

    def start(self) -> None:
        """Begin building the service; `started` or `refused` follows."""
        self._thread = threading.Thread(target=self._build, name="start-up", daemon=True)
        self._thread.start()

    def post(self, event: Event) -> None:
        """Take an event from any thread."""
        self._put(event)

    # --- calls to the service; each returns at once -----------------------------------------------

    def submit(self, question: Question) -> int | None:
        """The ticket of the queued question, or None if the service refused it (a Notice says why)."""
        return self._ask(lambda service: service.submit(question))

    def cancel(self, ticket: int) -> None:
        self._call(lambda service: service.cancel(ticket))

    def add_paths(self, paths: Sequence[Path]) -> int | None:
        """The number of the request in what is told of it, or None if the service refused it."""
        return self._ask(lambda service: service.add_paths(paths))

    def cancel_ingest(self) -> None:
        self._call(lambda service: service.cancel_ingest())

    def pause_ingest(self) -> None:
        self._call(lambda service: service.pause_ingest())

    def resume_ingest(self) -> None:
        self._call(lambda service: service.resume_ingest())

    def unlock(self, document_id: int, password: str) -> int | None:
        """As `add_paths`."""
        return self._ask(lambda service: service.unlock(document_id, password))

    def recognize_text(self, document_ids: Sequence[int]) -> int | None:
        """As `add_paths`."""
        return self._ask(lambda service: service.recognize_text(document_ids))

    def watch_folder(self, path: Path, collection_id: int | None) -> None:
        self._call(lambda service: service.watch_folder(path, collection_id))

    def unwatch_folder(self, path: str, *, remove_documents: bool) -> None:
        self._call(lambda service: service.unwatch_folder(path, remove_documents=remove_documents))

    def remove_document(self, document_id: int) -> None:
        self._call(lambda service: service.remove_document(document_id))

    def keep_warm(self, document_id: int, *, wanted: bool) -> None:
        self._call(lambda service: service.keep_warm(document_id, wanted=wanted))

    def create_collection(self, name: str, document_ids: Sequence[int] = ()) -> None:
        self._call(lambda service: service.create_collection(name, document_ids))

    def move_to_collection(self, document_ids: Sequence[int], collection_id: int | None) -> None:
        self._call(lambda service: service.move_to_collection(document_ids, collection_id))

    def change_collection(self, info: CollectionInfo) -> None:
        self._call(lambda service: service.change_collection(info))

    def delete_collection(self, collection_id: int) -> None:
        self._call(lambda service: service.delete_collection(collection_id))

    def request_library(self) -> None:
        self._call(lambda service: service.request_collections())
        self._call(lambda service: service.request_documents())
        self._call(lambda service: service.request_watched_folders())
        self._call(lambda service: service.request_conversations())

    def request_conversation(self, conversation_id: int) -> None:
        self._call(lambda service: service.request_conversation(conversation_id))

    def delete_conversation(self, conversation_id: int) -> None:
        self._call(lambda service: service.delete_conversation(conversation_id))

    def request_passage(self, document_id: int, block_id: str, quote: str) -> None:
        self._call(lambda service: service.request_passage(document_id, block_id, quote))

    def request_text(self, document_id: int, first: int, n_blocks: int) -> None:
        self._call(lambda service: service.request_text(document_id, first, n_blocks))

    def request_page(self, document_id: int, page: int, width_px: int, block_id: str, quote: str) -> None:
        self._call(lambda service: service.request_page(document_id, page, width_px, block_id, quote))

    def forget_everything(self) -> None:
        self._call(lambda service: service.forget_everything())

    def find_by_meaning(self, settings: Settings) -> None:
        """Also before the service is there: the newest settings reach it then."""
        self._call_when_there("meaning", lambda service: service.find_by_meaning(settings))

    def read_by(self, settings: Settings) -> None:
        """Also before the service is there: the newest settings reach it then."""
        self._call_when_there("reading", lambda service: service.read_by(settings))

    def use_model(self, path: Path) -> None:
        """Also before the service is there: the newest choice reaches it then."""
        self._call_when_there("model", lambda service: service.use_model(path))

    def close(self) -> None:
        """End the service. Waits, so the window should be hidden already."""
        with self._lock:
            self._closed = True
            self._queue.clear()
        self._timer.stop()
        if self._thread is not None:
            self._thread.join()
        if self._service is not None:
            self._service.close()
            self._service = None

    # --- the way up -------------------------------------------------------------------------------

    def _build(self) -> None:
        try:
            service = self._factory(self._data_dir, self._settings, self.post)
        except SlipstreamError as error:
            self._put(error)
        except Exception as error:  # noqa: BLE001 - the window must say it, whatever it is
            self._put(
                SlipstreamError(
                    "Slipstream could not start its engine.",
                    hint="This is a mistake in the program. The details help to mend it.",
                    details="".join(traceback.format_exception(error)),
                )
            )
        else:
            with self._lock:
                waiting = tuple(self._waiting.values())
                self._service = service
            for do in waiting:
                self._call(do)
            self._put(None)

    def _put(self, item: Event | SlipstreamError | None) -> None:
        with self._lock:
            if self._closed:
                return
            last = self._queue[-1] if self._queue else None
            joined = merged(last, item) if isinstance(last, Event) and isinstance(item, Event) else None
            if joined is None:
                self._queue.append(item)
            else:
                self._queue[-1] = joined
            if self._awake:
                return
            self._awake = True
        self._wake.emit()

    @Slot()
    def _on_wake(self) -> None:
        if not self._timer.isActive():
            self._deliver()

    @Slot()
    def _deliver(self) -> None:
        end = monotonic() + BUDGET_S
        delivered = False
        while monotonic() < end:
            with self._lock:
                if not self._queue:
                    self._awake = False
                    break
                item = self._queue.popleft()
            delivered = True
            if item is None:
                self.started.emit()
            elif isinstance(item, SlipstreamError):
                self.refused.emit(item)
            else:
                self.arrived.emit(item)
        if delivered:  # wait for company; what came meanwhile is delivered then
            self._timer.start(FLUSH_MS)

    def _ask(self, ask: Callable[["Service"], int]) -> int | None:
        numbers: list[int] = []
        self._call(lambda service: numbers.append(ask(service)))
        return numbers[0] if numbers else None

    def _call_when_there(self, kind: str, do: Callable[["Service"], None]) -> None:
        with self._lock:
            if self._service is None:
                self._waiting[kind] = do
                return
        self._call(do)

    def _call(self, do: Callable[["Service"], None]) -> None:
        if self._service is None:
            return
        try:
            do(self._service)
        except SlipstreamError as error:
            self._put(Notice(error.message, error.hint, error.details))
