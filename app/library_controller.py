"""Connects the library page with the service: files and collections down, lists and warmth up."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QObject

from app.bridge import ServiceBridge
from app.chat_page import ChatPage
from app.library_page import LibraryPage
from app.password_dialog import PasswordDialog
from app.theme import Theme
from core.types import (
    CollectionsChanged,
    DocumentInfo,
    EmbeddingProgress,
    Event,
    IngestProgress,
    LibraryChanged,
    Notice,
    WarmthChanged,
    WatchedFoldersChanged,
)

_LISTS = 2
"""After reading has ended so many lists are looked through: the first may have been made before."""


@dataclass(slots=True)
class _Added:
    """Paths that were added in one go, and the collection for what is found under them."""

    paths: tuple[Path, ...]
    collection_id: int | None
    lists_left: int = _LISTS
    seen: set[int] = field(default_factory=set)

    def new(self, documents: Sequence[DocumentInfo]) -> list[int]:
        """Documents under the paths that are in no collection. Each is named once, however it was read."""
        under = [one for one in documents if any(Path(one.path).is_relative_to(path) for path in self.paths)]
        found = [one.id for one in under if one.collection_id is None and one.id not in self.seen]
        self.seen.update(one.id for one in under)
        return found


class LibraryController(QObject):
    """What is added while a collection is shown goes into it as soon as all of it is read."""

    def __init__(
        self, theme: Theme, bridge: ServiceBridge, page: LibraryPage, chat: ChatPage, samples: Path | None
    ) -> None:
        super().__init__()
        self._theme = theme
        self._bridge = bridge
        self._page = page
        self._chat = chat
        self._samples = samples
        self._reading: dict[int, _Added] = {}
        """By the number of the request."""
        self._read: list[_Added] = []
        self._tries: set[int] = set()
        """Numbers of the requests that try a password of the dialog's document."""
        self.dialog: PasswordDialog | None = None
        page.removed.connect(bridge.remove_document)
        page.cancelled.connect(bridge.cancel_ingest)
        page.moved.connect(bridge.move_to_collection)
        page.kept_warm.connect(self._keep_warm)
        page.watched.connect(self._watch)
        page.folders.unwatched.connect(self._unwatch)
        page.strip.paused.connect(self._pause)
        page.detail.unlock_wanted.connect(self._ask_password)
        page.detail.recognition_wanted.connect(self._recognize)
        page.bar.created.connect(bridge.create_collection)
        page.bar.changed.connect(bridge.change_collection)
        page.bar.deleted.connect(bridge.delete_collection)

    def add(self, paths: Sequence[Path]) -> None:
        """Have files and folders read, for the collection that the user looks at."""
        collection = self._page.collection if self._page.isVisible() else None
        if collection is None:
            self._page.bar.choose(None)  # so that they are seen
        self._add(_Added(tuple(paths), None if collection is None else collection.id))

    def _add(self, added: _Added) -> None:
        number = self._bridge.add_paths(added.paths)
        if number is not None:
            self._reading[number] = added

    def take(self, event: Event) -> None:
        match event:
            case IngestProgress():
                self._take_progress(event)
            case LibraryChanged():
                if not self._add_samples(empty=not event.documents):
                    self._page.set_documents(event.documents)
                    self._chat.set_documents(event.documents)
                    self._file(event.documents)
                    self._tell_dialog(event.documents)
            case WatchedFoldersChanged():
                self._page.set_folders(event.folders)
            case CollectionsChanged():
                self._page.set_collections(event.collections)
                self._chat.input.scope.set_collections(event.collections)
            case EmbeddingProgress():
                self._page.set_embedding(event)
            case WarmthChanged():
                self._page.set_warmth(event.documents)
            case _:
                pass

    def take_notice(self, notice: Notice) -> bool:
        """Whether it is said where a password is being asked for."""
        dialog = self.dialog
        if dialog is None or notice.request not in self._tries:
            return False
        if dialog.trying:  # else it was said already
            dialog.refuse(f"{notice.message} {notice.hint}".strip())
        return not notice.is_bug

    def _take_progress(self, progress: IngestProgress) -> None:
        self._chat.set_reading(progress)
        if not progress.running and (added := self._reading.pop(progress.request, None)):
            self._read.append(added)
        dialog = self.dialog
        if dialog is not None and progress.request in self._tries:
            reasons = [reason for _path, reason in progress.problems]
            if progress.cancelled:
                reasons.append("Reading was stopped.")
            if reasons and dialog.trying:
                dialog.refuse(reasons[0])
            return  # what is done with the password is said in its dialog
        self._page.strip.show_progress(progress)

    def _ask_password(self, document: DocumentInfo) -> None:
        self.dialog = PasswordDialog(self._theme, document, self._page)
        self.dialog.entered.connect(self._unlock)
        self.dialog.finished.connect(self._end_dialog)
        self.dialog.open()

    def _unlock(self, document_id: int, password: str) -> None:
        number = self._bridge.unlock(document_id, password)
        if number is not None:
            self._tries.add(number)

    def _tell_dialog(self, documents: Sequence[DocumentInfo]) -> None:
        if self.dialog is not None:
            wanted = self.dialog.document.id
            self.dialog.take(next((one for one in documents if one.id == wanted), None))

    def _end_dialog(self) -> None:
        if self.dialog is not None:
            self.dialog.edit.clear()
            self.dialog.deleteLater()
            self.dialog = None
            self._tries.clear()

    def _recognize(self, document_ids: Sequence[int]) -> None:
        self._bridge.recognize_text(document_ids)

    def _pause(self, wanted: bool) -> None:
        if wanted:
            self._bridge.pause_ingest()
        else:
            self._bridge.resume_ingest()

    def _watch(self, folder: Path) -> None:
        """Keep a folder up to date, in the collection that the user looks at."""
        collection = self._page.collection
        self._bridge.watch_folder(folder, None if collection is None else collection.id)

    def _unwatch(self, path: str, remove_documents: bool) -> None:
        self._bridge.unwatch_folder(path, remove_documents=remove_documents)

    def _file(self, documents: Sequence[DocumentInfo]) -> None:
        """Move what was read into the collection that it was added to, if that is still there."""
        there = {info.id for info in self._page.bar.collections}
        for added in self._read:
            added.lists_left -= 1
            if added.collection_id in there and (ids := added.new(documents)):
                self._bridge.move_to_collection(ids, added.collection_id)
        self._read = [added for added in self._read if added.lists_left > 0]

    def _keep_warm(self, document_id: int, wanted: bool) -> None:
        self._bridge.keep_warm(document_id, wanted=wanted)

    def _add_samples(self, *, empty: bool) -> bool:
        """Put the sample documents into a library that is empty when the program starts."""
        samples, self._samples = self._samples, None
        if samples is None or not empty:
            return False
        self._add(_Added((samples,), None))
        return True
