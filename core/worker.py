"""A thread with a queue and a database connection of its own."""

import logging
import queue
import threading
from collections.abc import Callable
from pathlib import Path

from core.errors import BugError, SlipstreamError
from core.store.database import Database, open_database
from core.types import Notice

_log = logging.getLogger(__name__)

Task = Callable[[], None]


class Worker:
    """A thread with a queue of tasks. What a task raises is reported, never lost and never fatal."""

    def __init__(self, name: str, data_dir: Path, report: Callable[[SlipstreamError], None]) -> None:
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self._data_dir = data_dir
        self._report = report
        self._db: Database | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def db(self) -> Database:
        """The connection of this thread; opened at first use. Only tasks of this worker may ask for it."""
        if self._db is None:
            self._db = open_database(self._data_dir)
        return self._db

    def put(self, task: Task) -> None:
        self._tasks.put(task)

    def stop(self) -> None:
        """End after the tasks already queued."""
        self._tasks.put(None)

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the end, ``timeout_s`` at most where a task may wait for a drive that does not answer;
        whether it came.
        """
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                task()
            except Exception as error:  # noqa: BLE001  (the last line of defence of this thread)
                self._report(as_slipstream_error(error))
        if self._db is not None:
            self._db.close()


def as_slipstream_error(error: Exception) -> SlipstreamError:
    """The error itself if it is one of ours; anything else is a bug, logged with its traceback."""
    if isinstance(error, SlipstreamError) and not isinstance(error, BugError):
        return error
    _log.error("bug", exc_info=error)
    if isinstance(error, BugError):
        return error
    return BugError(
        "Slipstream made a mistake. Nothing was lost.", details=f"{type(error).__name__}: {error}"
    )


def notice_of(error: SlipstreamError, *, request: int = 0) -> Notice:
    """What the user is told of an error; ``request``: of the reading that it ended."""
    return Notice(
        error.message, error.hint, error.details, is_bug=isinstance(error, BugError), request=request
    )
