"""Connects the library page with the service: files and collections down, lists and warmth up."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from PySide6.QtCore import QObject

from app.bridge import ServiceBridge
from app.chat_page import ChatPage
from app.library_page import LibraryPage
from core.types import (
    CollectionsChanged,
    DocumentInfo,
    Event,
    IngestProgress,
    LibraryChanged,
    WarmthChanged,
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
        self, bridge: ServiceBridge, page: LibraryPage, chat: ChatPage, samples: Path | None
    ) -> None:
        super().__init__()
        self._bridge = bridge
        self._page = page
        self._chat = chat
        self._samples = samples
        self._reading: list[_Added] = []
        """In the order in which the service reads them."""
        self._read: list[_Added] = []
        page.removed.connect(bridge.remove_document)
        page.cancelled.connect(bridge.cancel_ingest)
        page.moved.connect(bridge.move_to_collection)
        page.kept_warm.connect(self._keep_warm)
        page.bar.created.connect(bridge.create_collection)
        page.bar.changed.connect(bridge.change_collection)
        page.bar.deleted.connect(bridge.delete_collection)

    def add(self, paths: Sequence[Path]) -> None:
        """Have files and folders read, for the collection that the user looks at."""
        collection = self._page.collection if self._page.isVisible() else None
        if collection is None:
            self._page.bar.choose(None)  # so that they are seen
        self._reading.append(_Added(tuple(paths), None if collection is None else collection.id))
        self._bridge.add_paths(paths)

    def take(self, event: Event) -> None:
        match event:
            case IngestProgress():
                self._page.strip.show_progress(event)
                if not event.running and self._reading:
                    self._read.append(self._reading.pop(0))
            case LibraryChanged():
                if not self._add_samples(empty=not event.documents):
                    self._page.set_documents(event.documents)
                    self._chat.set_documents(event.documents)
                    self._file(event.documents)
            case CollectionsChanged():
                self._page.set_collections(event.collections)
                self._chat.input.scope.set_collections(event.collections)
            case WarmthChanged():
                self._page.set_warmth(event.documents)
            case _:
                pass

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
        self._reading.append(_Added((samples,), None))
        self._bridge.add_paths([samples])
        return True
