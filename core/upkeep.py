"""What must leave the caches when documents, conversations or collections change, before the call ends.

For the engine thread, between questions: no prompt is made of a document half removed.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.store.collections import CollectionStore
from core.store.conversations import ConversationStore
from core.store.database import Database
from core.store.documents import DocumentStore
from core.store.learned import ORDER, LearnedStore
from core.text import stem
from core.types import CachePlace, SegmentKind

if TYPE_CHECKING:  # at run time their kernels are compiled first, elsewhere
    from core.engine.ssd_tier import SsdTier
    from core.workbench import Workbench


@dataclass(frozen=True, slots=True)
class Upkeep:
    db: Database
    bench: "Workbench | None"
    """None while no model is loaded: what is on disk is reached all the same."""
    disk: "Callable[[], SsdTier | None]"
    """Opens the snapshots on disk, if there are any."""

    def remove_document(self, document_id: int) -> None:
        """Remove a document, its blocks and everything that was made of them, in every tier."""
        self.remove_documents([document_id])

    def remove_documents(self, document_ids: Sequence[int]) -> None:
        """The same for several, in one go."""
        self._forget(DocumentStore(self.db).remove_all(document_ids))
        stem.cache_clear()  # it remembers words

    def delete_conversation(self, conversation_id: int) -> None:
        """Delete a conversation and what the cache holds of it; its blocks may serve others and stay."""
        conversations = ConversationStore(self.db)
        own = {
            segment.element
            for _, ledger in conversations.ledger(conversation_id)
            for segment in ledger
            if segment.kind in (SegmentKind.ASK, SegmentKind.ANSWER, SegmentKind.EXCERPT)
        }
        conversations.delete(conversation_id)
        if self.bench is not None:
            self.bench.cache.forget(elements=own)
        elif disk := self.disk():
            disk.forget_blocks((), own)

    def rearrange(self, change: Callable[[], None], document_ids: Collection[int]) -> None:
        """Change collections of these documents, then forget what may no longer be where it is cached."""
        collections = CollectionStore(self.db)
        before = collections.restrictions(document_ids)
        change()
        after = collections.restrictions(document_ids)
        # A file may be read anew at this moment: a block that was not there before had no restriction.
        changed = [(block, before.get(block, CachePlace()), now) for block, now in after.items()]
        apart = {block for block, then, now in changed if now.namespace != then.namespace}
        private = {block for block, then, now in changed if not now.on_disk and then.on_disk}
        self._forget(apart)
        if self.bench is not None:
            self.bench.cache.keep_off_disk(private)
        elif private and (disk := self.disk()):
            disk.forget_blocks(private, ())

    def forget_missing(self) -> None:
        """Forget what documents do not hold any more since they were read anew."""
        if self.bench is not None:
            self._forget(DocumentStore(self.db).missing_blocks(self.bench.cache.block_ids()))

    def forget_everything(self) -> None:
        """Empty the cache in all tiers, of every model; the library and the conversations stay."""
        if self.bench is not None:
            self.bench.forget_everything()
        else:
            LearnedStore(self.db).delete_all(ORDER)
            if disk := self.disk():
                disk.clear()

    def _forget(self, block_ids: Collection[str]) -> None:
        if not block_ids:
            return
        if self.bench is not None:
            self.bench.forget_blocks(block_ids)
        else:
            LearnedStore(self.db).delete_all(ORDER)  # what was asked together is learned again soon
            if disk := self.disk():
                disk.forget_blocks(block_ids, ())
