"""Files into the library, one transaction each: what is done stays done, whatever happens next.

Here a file is found, hashed and stored; its text is read in a child process (``child.py``), one file
ahead: while this thread stores one, the child reads the next.
"""

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.cdc import pieces
from core.errors import BugError, Cancelled, DocumentError, NotRead, PasswordRequired
from core.ingest.child import Call, ChildProcess
from core.ingest.content_hash import hash_of
from core.ingest.extracted import ReadOptions
from core.ingest.readers import MEMORY_BYTES, OCR_S, READ_S, FileText, being_written, check_file
from core.ingest.tally import IngestSummary, Tally
from core.ingest.walk import find_files, storable
from core.store.database import Database
from core.store.documents import DocumentRecord, DocumentStore, NewBlock, NewDocument
from core.types import Block, DocumentStatus, IngestProgress

_POLL_S = 0.05
_HEARTBEAT_S = 0.5
"""While one file takes long, it is named so often."""
_PAUSE_GRACE_S = 2.0
"""A file in hand that takes longer after a pause is left, and read again later."""
_READ = (DocumentStatus.READY, DocumentStatus.READY_WITH_NOTE)
_EXTRACT = "core.ingest.readers:extract_file"


def ingest(
    paths: Iterable[Path],
    db: Database,
    *,
    cancel: threading.Event,
    progress: Callable[[IngestProgress], None],
    paused: threading.Event | None = None,
    options: Mapping[str, ReadOptions] | None = None,
    passwords: Mapping[str, str] | None = None,
    finished: Callable[[Path], None] = lambda _: None,
) -> IngestSummary:
    """Read files and folders into the library and say what became of them.

    A file that is there with the same size and time, or the same bytes, is not read again. A file that
    cannot be read is stored as failed, with the reason, and stops nothing. ``cancel`` stops at once; the
    file in hand is then left out. While ``paused`` is set nothing is read. ``progress`` is called on
    this thread, at the start, at most 20 times a second, and at the end; ``finished`` after each file.

    ``options`` and ``passwords`` are by path, as the library names it. A file with options is read again
    though it is unchanged, and what is known of it stays where that fails; a password is there in case.

    Raises StoreError where the database fails; the files before are stored.
    """
    run = _Run(DocumentStore(db), Tally(progress, finished), cancel, paused or threading.Event())
    run.options = options or {}
    run.passwords = passwords or {}
    summary = run.read(paths)
    if summary.n_changed or run.n_emptied:
        db.forget_deleted()
    return summary


@dataclass(frozen=True, slots=True)
class _InHand:
    """A file whose text is being read."""

    path: Path
    size: int
    document: NewDocument
    """As far as it is known without its text."""
    known: DocumentRecord | None
    """What the library has of this path, whatever its status."""
    options: ReadOptions
    call: Call


class _Run:
    """One call of ``ingest``."""

    def __init__(
        self, store: DocumentStore, tally: Tally, cancel: threading.Event, paused: threading.Event
    ) -> None:
        self.store = store
        self.tally = tally
        self.cancel = cancel
        self.paused = paused
        self.options: Mapping[str, ReadOptions] = {}
        self.passwords: Mapping[str, str] = {}
        self.ahead: _InHand | None = None
        self.pause_seen_s: float | None = None
        self.n_emptied = 0
        """Documents that had a text and have none any more."""

    def read(self, paths: Iterable[Path]) -> IngestSummary:
        tally = self.tally
        tally.report_now()
        found = find_files(paths)
        for path, message in found.problems:
            tally.problem(str(path), message)
        sizes = [_size(path) for path in found.files]
        tally.expect(len(sizes), sum(sizes))
        cancelled = False
        try:
            self._read_files(found.files, sizes)
        except Cancelled:
            cancelled = True
        tally.report_now(running=False, cancelled=cancelled)
        return tally.summary(n_skipped=found.n_skipped, cancelled=cancelled)

    def _read_files(self, files: Sequence[Path], sizes: Sequence[int]) -> None:
        """Raises Cancelled."""
        with ChildProcess(name="reader") as self.child:
            for path, size in zip(files, sizes, strict=True):
                if self.paused.is_set():
                    self._store_ahead()
                self._wait_while_paused()
                if self.cancel.is_set():
                    raise Cancelled
                self._begin(path, size)
            self._store_ahead()

    def _begin(self, path: Path, size: int) -> None:
        """Bring one file's row up to date, or have its text read and store the one before meanwhile."""
        self.tally.report(path.name)
        name = storable(path)
        known = self.store.find_by_path(name)
        asked = self.options.get(name)
        document = NewDocument(name, storable(path.name))
        try:
            status = path.stat()
            record = known if known is not None and known.info.status in _READ and asked is None else None
            as_before = record is not None and (record.info.n_bytes, record.mtime_ns) == (
                status.st_size,
                status.st_mtime_ns,
            )
            if as_before:
                self.tally.unchanged(path, size)
                return
            document = replace(document, n_bytes=status.st_size, mtime_ns=status.st_mtime_ns)
            check_file(status)
            document = replace(document, content_hash=hash_of(path, self.cancel.is_set))
        except (OSError, DocumentError) as error:
            self._fail(error, path, size, document, known)
            return
        if self.ahead is not None and self.ahead.document.content_hash == document.content_hash:
            self._store_ahead()  # so that it is read once
        if asked is None and self._is_there(path, size, document, known):
            return
        options = asked or ReadOptions(password=self.passwords.get(name, ""))
        before, self.ahead = self.ahead, None
        found = self._awaited(before) if before is not None else None
        try:
            self.ahead = _InHand(path, size, document, known, options, self._reading(path, options))
        except DocumentError as error:
            self._fail(error, path, size, document, known)
        if before is not None and found is not None:
            self._store(before, found)  # while the child reads this one

    def _is_there(self, path: Path, size: int, document: NewDocument, known: DocumentRecord | None) -> bool:
        """Whether these bytes were read before, here or elsewhere; then the row is brought up to date."""
        record = known if known is not None and known.info.status in _READ else None
        place = (document.path, document.title, document.mtime_ns)
        if record is not None and record.content_hash == document.content_hash:
            self.store.relocate(record.info.id, *place)
            self.tally.unchanged(path, size)
            return True
        twin = self.store.find_by_hash(document.content_hash)
        if twin is None or Path(twin.info.path).suffix.lower() != path.suffix.lower():
            return False
        if record is None and not os.path.lexists(twin.info.path):  # moved or renamed
            info = self.store.relocate(twin.info.id, *place)
        else:
            info = self.store.copy(twin.info.id, *place)
        self.tally.was_read(path, size, info, again=record is not None)
        return True

    def _reading(self, path: Path, options: ReadOptions) -> Call:
        """The child's work on a file, begun. Raises NotRead where no child starts, and Cancelled."""
        while True:
            try:
                return self.child.begin(
                    _EXTRACT,
                    path,
                    options,
                    stop=self._should_stop,
                    seconds=OCR_S if options.ocr else READ_S,
                    memory_bytes=MEMORY_BYTES,
                )
            except Cancelled:  # while the child was starting, which a pause may stop as well
                if self.cancel.is_set():
                    raise
                self._wait_while_paused()

    def _should_stop(self) -> bool:
        """On the thread that watches the child."""
        if self.cancel.is_set():
            return True
        if not self.paused.is_set():
            self.pause_seen_s = None
            return False
        if self.pause_seen_s is None:
            self.pause_seen_s = time.monotonic()
        return time.monotonic() - self.pause_seen_s > _PAUSE_GRACE_S

    def _store_ahead(self) -> None:
        before, self.ahead = self.ahead, None
        if before is not None:
            self._store(before, self._awaited(before))

    def _awaited(self, in_hand: _InHand) -> FileText | OSError | DocumentError:
        """The text, read again after a pause that cut the reading short, or why there is none.

        Raises Cancelled.
        """
        call = in_hand.call
        while True:
            while not call.wait(_HEARTBEAT_S):
                self.tally.report_now(in_hand.path.name)
            try:
                found = call.result()
            except Cancelled:
                if self.cancel.is_set():
                    raise
                self._wait_while_paused()
                try:
                    call = self._reading(in_hand.path, in_hand.options)
                except DocumentError as error:
                    return error
            except (OSError, DocumentError) as error:
                return error
            except BugError as error:
                return _fault(error.details)
            else:
                return found if isinstance(found, FileText) else _fault("the answer is no text")

    def _store(self, in_hand: _InHand, found: FileText | OSError | DocumentError) -> None:
        """Store a text, or the reason why there is none."""
        if isinstance(found, FileText) and not _agrees(found, in_hand.document):
            found = being_written()
        if isinstance(found, FileText):
            extracted = found.extracted
            document = replace(
                in_hand.document,
                content_hash=found.content_hash,
                n_bytes=found.n_bytes,
                mtime_ns=found.mtime_ns,
                media_type=extracted.media_type,
                status=DocumentStatus.READY_WITH_NOTE if extracted.note else DocumentStatus.READY,
                note=extracted.note,
                text=extracted.text,
                blocks=blocks_of(extracted.text),
                page_starts=extracted.page_starts,
            )
            known = in_hand.known
            was_read = known is not None and known.info.status in _READ
            self.tally.was_read(in_hand.path, in_hand.size, self.store.save(document), again=was_read)
        else:
            self._fail(found, in_hand.path, in_hand.size, in_hand.document, in_hand.known)

    def _wait_while_paused(self) -> None:
        if not self.paused.is_set():
            return
        self.tally.report_now(paused=True)
        while self.paused.is_set() and not self.cancel.wait(_POLL_S):
            pass
        self.tally.report_now()

    def _fail(
        self,
        error: OSError | DocumentError,
        path: Path,
        size: int,
        document: NewDocument,
        known: DocumentRecord | None,
    ) -> None:
        message = _why_unreadable(error) if isinstance(error, OSError) else str(error)
        needs_password = isinstance(error, PasswordRequired)
        status = DocumentStatus.NEEDS_PASSWORD if needs_password else DocumentStatus.FAILED
        before = known.info.status if known is not None else None
        is_passing = isinstance(error, (OSError, NotRead))  # it says nothing about what the file holds
        if document.path in self.options:
            # What a person tried and did not get takes nothing away; what it showed is noted.
            keep = before in _READ or (before is not None and is_passing)
            keep = keep or (needs_password and before is status)
        else:
            keep = before in _READ and is_passing
        if not keep:
            self.n_emptied += before in _READ
            self.store.save(replace(document, status=status, note=storable(message)))
        self.tally.failed(path, size, message)


def blocks_of(text: str) -> tuple[NewBlock, ...]:
    """The blocks of a document's text, in order, white space at both ends removed."""
    blocks = []
    start = 0
    ends, n_tokens = pieces(text)
    for end, tokens in zip(ends.tolist(), n_tokens.tolist(), strict=True):
        block = Block.of(text[start:end])
        if block.text:
            begin = text.index(block.text[0], start)
            blocks.append(NewBlock(block, begin, begin + len(block.text), tokens))
        start = end
    return tuple(blocks)


def _agrees(found: FileText, document: NewDocument) -> bool:
    """Whether the child read what was hashed here, where the file says that it is as it was."""
    as_before = (found.n_bytes, found.mtime_ns) == (document.n_bytes, document.mtime_ns)
    return not as_before or found.content_hash == document.content_hash


def _fault(details: str) -> NotRead:
    return NotRead("Slipstream could not read this file; that is a fault in Slipstream.", details=details)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # it is met again, and reported, when it is its turn


def _why_unreadable(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "You have no permission to read this file. Change its permissions and add it again."
    if isinstance(error, FileNotFoundError):
        return "This file does not exist any more."
    return f"This file cannot be read: {error.strerror or error}."
