"""Files into the library, one transaction each: what is done stays done, whatever happens next."""

import os
import stat
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import xxhash

from core.cdc import pieces
from core.errors import Cancelled, DocumentError, KnownError, PasswordRequired
from core.ingest.readers import MAX_FILE_BYTES, extract
from core.ingest.walk import find_files
from core.store.database import Database
from core.store.documents import DocumentStore, NewBlock, NewDocument
from core.types import Block, DocumentStatus, IngestProgress

_PROGRESS_EVERY_S = 0.05
_READ = (DocumentStatus.READY, DocumentStatus.READY_WITH_NOTE)


@dataclass(frozen=True, slots=True)
class IngestSummary:
    """What became of the files."""

    n_files: int = 0
    n_added: int = 0
    """Read for the first time, or under a new name."""
    n_changed: int = 0
    """Read again because they had changed."""
    n_unchanged: int = 0
    """In the library already."""
    n_failed: int = 0
    """Could not be read; each one is in ``problems``."""
    n_skipped: int = 0
    """In folders, of a kind that is not read."""
    n_blocks: int = 0
    """Blocks of the files added and changed; shared ones count each time."""
    n_bytes: int = 0
    """Of the files added and changed."""
    seconds: float = 0.0
    cancelled: bool = False
    problems: tuple[tuple[str, str], ...] = ()
    """Path, and what is wrong with it and what to do."""


def ingest(
    paths: Iterable[Path],
    db: Database,
    *,
    cancel: threading.Event,
    progress: Callable[[IngestProgress], None],
) -> IngestSummary:
    """Read files and folders into the library and say what became of them.

    A file that is there with the same size and time, or the same bytes, is not read again. A file that
    cannot be read is stored as failed, with the reason, and stops nothing. ``cancel`` stops between
    files, and between the pages of a PDF; the file in hand is then left out. ``progress`` is called on
    this thread, at the start, at most 20 times a second, and at the end.

    Raises StoreError where the database fails; the files before are stored.
    """
    summary = _Run(DocumentStore(db), cancel, progress).read(paths)
    if summary.n_changed:
        db.forget_deleted()
    return summary


class _Run:
    """One call of ``ingest``: its counts."""

    def __init__(
        self, store: DocumentStore, cancel: threading.Event, progress: Callable[[IngestProgress], None]
    ) -> None:
        self.store = store
        self.cancel = cancel
        self.progress = progress
        self.started = time.monotonic()
        self.reported_s = 0.0
        self.counts = {"added": 0, "changed": 0, "unchanged": 0, "failed": 0}
        self.problems: list[tuple[str, str]] = []
        self.n_files = 0
        self.n_bytes = 0
        self.n_bytes_done = 0
        self.n_bytes_read = 0
        self.n_blocks = 0

    def read(self, paths: Iterable[Path]) -> IngestSummary:
        self._report("", now=True)
        found = find_files(paths)
        self.problems += [(_storable(str(path)), message) for path, message in found.problems]
        self.counts["failed"] = len(found.problems)
        sizes = [_size(path) for path in found.files]
        self.n_files = len(found.files) + len(found.problems)
        self.n_bytes = sum(sizes)
        cancelled = False
        for path, size in zip(found.files, sizes, strict=True):
            if self.cancel.is_set():
                cancelled = True
                break
            self._report(path.name)
            try:
                outcome = self._read_file(path)
            except Cancelled:
                cancelled = True
                break
            self.counts[outcome] += 1
            self.n_bytes_done += size
        self._report("", now=True, running=False, cancelled=cancelled)
        return IngestSummary(
            n_files=self.n_files,
            n_added=self.counts["added"],
            n_changed=self.counts["changed"],
            n_unchanged=self.counts["unchanged"],
            n_failed=self.counts["failed"],
            n_skipped=found.n_skipped,
            n_blocks=self.n_blocks,
            n_bytes=self.n_bytes_read,
            seconds=time.monotonic() - self.started,
            cancelled=cancelled,
            problems=tuple(self.problems),
        )

    def _read_file(self, path: Path) -> str:
        """Bring one file's row up to date. Under which count it goes."""
        name = _storable(str(path))
        title = _storable(path.name)
        record = self.store.find_by_path(name)
        if record is not None and record.info.status not in _READ:
            record = None  # it may go better this time
        try:
            status = path.stat()
            if record is not None and (record.info.n_bytes, record.mtime_ns) == (
                status.st_size,
                status.st_mtime_ns,
            ):
                return "unchanged"
            data = _bytes_of(path, status)
        except OSError as error:
            message = _why_unreadable(error)
            if record is None:  # else what was read before is still the best that is known
                self._save_failed(NewDocument(name, title), DocumentError(message))
            else:
                self.problems.append((name, message))
            return "failed"
        except DocumentError as error:
            self._save_failed(NewDocument(name, title, n_bytes=status.st_size), error)
            return "failed"
        content_hash = xxhash.xxh3_128_hexdigest(data)
        mtime_ns = status.st_mtime_ns
        if record is not None and record.content_hash == content_hash:
            self.store.relocate(record.info.id, name, title, mtime_ns)
            return "unchanged"
        twin = self.store.find_by_hash(content_hash)
        if twin is not None and Path(twin.info.path).suffix.lower() == path.suffix.lower():
            if record is None and not os.path.lexists(twin.info.path):  # moved or renamed
                info = self.store.relocate(twin.info.id, name, title, mtime_ns)
            else:
                info = self.store.copy(twin.info.id, name, title, mtime_ns)
        else:
            document = NewDocument(name, title, content_hash, n_bytes=len(data), mtime_ns=mtime_ns)
            try:
                document = self._read_bytes(path, data, document)
            except DocumentError as error:
                self._save_failed(document, error)
                return "failed"
            info = self.store.save(document)
        self.n_blocks += info.n_blocks
        self.n_bytes_read += info.n_bytes
        return "added" if record is None else "changed"

    def _read_bytes(self, path: Path, data: bytes, document: NewDocument) -> NewDocument:
        try:
            extracted = extract(path, data, self.cancel.is_set)
        except (KnownError, Cancelled):
            raise
        except Exception as error:  # a reader's fault must not cost the other files
            raise DocumentError(
                "Slipstream could not read this file; that is a fault in Slipstream.", details=repr(error)
            ) from error
        return replace(
            document,
            media_type=extracted.media_type,
            status=DocumentStatus.READY_WITH_NOTE if extracted.note else DocumentStatus.READY,
            note=extracted.note,
            text=extracted.text,
            blocks=blocks_of(extracted.text),
            page_starts=extracted.page_starts,
        )

    def _save_failed(self, document: NewDocument, error: DocumentError) -> None:
        needs_password = isinstance(error, PasswordRequired)
        status = DocumentStatus.NEEDS_PASSWORD if needs_password else DocumentStatus.FAILED
        self.store.save(replace(document, status=status, note=str(error)))
        self.problems.append((document.path, str(error)))

    def _report(
        self, current: str, *, now: bool = False, running: bool = True, cancelled: bool = False
    ) -> None:
        elapsed_s = time.monotonic() - self.started
        if not now and elapsed_s - self.reported_s < _PROGRESS_EVERY_S:
            return
        self.reported_s = elapsed_s
        self.progress(
            IngestProgress(
                running=running,
                n_files=self.n_files,
                n_done=sum(self.counts.values()),
                n_failed=self.counts["failed"],
                n_blocks=self.n_blocks,
                n_bytes_done=self.n_bytes_done,
                n_bytes=self.n_bytes,
                current=_storable(current),
                elapsed_s=elapsed_s,
                cancelled=cancelled,
                problems=() if running else tuple(self.problems),
            )
        )


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


def _bytes_of(path: Path, status: os.stat_result) -> bytes:
    if not stat.S_ISREG(status.st_mode):  # reading a pipe or a device could take for ever
        raise DocumentError("This is not a file that can be read.")
    if status.st_size > MAX_FILE_BYTES:
        raise DocumentError(
            f"This file is larger than {MAX_FILE_BYTES >> 20} MB.", hint="Split it and add the parts."
        )
    return path.read_bytes()


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


def _storable(name: str) -> str:
    """A path as text: bytes in it that are no UTF-8 become escapes, since SQLite stores UTF-8."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
