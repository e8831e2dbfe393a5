"""Pages of PDFs for the window, drawn in a child process; of several requests the newest counts."""

import threading
from collections.abc import Callable
from pathlib import Path

from core.errors import DocumentError, SlipstreamError
from core.ingest.child import ChildProcess
from core.ingest.readers import MEMORY_BYTES
from core.store.passages import PassageStore
from core.types import PageLoaded
from core.worker import Worker, as_slipstream_error

_PAGE_S = 30.0
"""One page may take so long to draw."""
_END_S = 5.0
"""The end of the program waits so long for a page; a drive that does not answer must not hold it up."""


class Pages:
    def __init__(
        self,
        data_dir: Path,
        emit: Callable[[PageLoaded], None],
        report: Callable[[SlipstreamError], None],
        *,
        password_of: Callable[[str], str],
        closing: threading.Event,
    ) -> None:
        """``password_of`` knows what opened a file, by path; ``closing`` is set when the program ends."""
        self._emit = emit
        self._password_of = password_of
        self._closing = closing
        self._worker = Worker("pages", data_dir, report)
        self._child = ChildProcess(name="pages")
        self._wanted = 0
        """Number of the newest request."""

    def request(self, document_id: int, page: int, width_px: int, block_id: str, quote: str) -> None:
        """Answered by PageLoaded; one that waits while a newer one comes is dropped without an answer."""
        number = self._wanted = self._wanted + 1

        def draw() -> None:
            if number == self._wanted and not self._closing.is_set():
                self._emit(self._page(document_id, page, width_px, block_id, quote))

        self._worker.put(draw)

    def close(self) -> None:
        """Waits for the page in hand, but not for a drive that does not answer."""
        self._worker.stop()
        if self._worker.join(_END_S):
            self._child.close()  # else it ends with this process, or when its drive answers

    def _page(self, document_id: int, page: int, width_px: int, block_id: str, quote: str) -> PageLoaded:
        """On the thread of the worker."""
        image, message, hint = None, "", ""
        try:
            part = PassageStore(self._worker.db).page_part(document_id, page, block_id, quote)
            if part is None:
                raise DocumentError("This document is no longer in the library.")
            # In a process of its own: a damaged file must not take the window with it, nor may a drive that
            # does not answer hold up this thread for longer than a page may take.
            image = self._child.call(
                "core.ingest.page_image:render_unchanged",
                part.path,
                (part.n_bytes, part.mtime_ns, part.content_hash),
                self._password_of(part.path),
                page,
                width_px,
                part.wanted,
                part.around,
                stop=self._closing.is_set,
                seconds=_PAGE_S,
                memory_bytes=MEMORY_BYTES,
            )
        except Exception as error:  # noqa: BLE001  (whatever it is, the window must not wait for a page)
            known = as_slipstream_error(error)
            message, hint = known.message, known.hint
        return PageLoaded(document_id, page, image, message, hint, block_id, quote)
