"""Everything that answering needs, in one place: owned by the engine thread."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from core.engine.chat_format import PLAIN, chat_format
from core.engine.prefix_cache import PrefixCache, root_key
from core.engine.protocol import Engine
from core.engine.ssd_tier import SsdTier
from core.errors import StoreError
from core.index import ContextIndex
from core.prompt import PromptWriter
from core.store.collections import CollectionStore
from core.store.conversations import ConversationStore
from core.store.database import Database
from core.store.documents import DocumentStore
from core.store.metrics import MetricsStore
from core.store.token_cache import TokenCache
from core.types import Block, Scope, Segment, Tokens

_log = logging.getLogger(__name__)
_NO_TEMPLATE = (
    "The chat template in this model's file cannot be used: questions reach it as plain text, and answers "
    "may be poor."
)


class Workbench:
    """A model, its prefix cache and index, and the stores."""

    def __init__(
        self, engine: Engine, db: Database, *, ram_budget: int = 0, ssd: SsdTier | None = None
    ) -> None:
        """``ram_budget`` in bytes; without ``ssd`` nothing outlives the program."""
        self.engine = engine
        self.db = db
        self.ram_budget = ram_budget
        self.index = ContextIndex()
        self.cache = PrefixCache(
            engine, root_key(engine.fingerprint), self.index.apply, ram_budget=ram_budget, ssd=ssd
        )
        chat = chat_format(engine.chat_template, engine.token_text("bos"), engine.token_text("eos"))
        self.info = engine.info
        if engine.chat_template and chat is PLAIN:
            self.info = replace(engine.info, note=_NO_TEMPLATE)
        self.writer = PromptWriter(engine, chat)
        self.conversations = ConversationStore(db)
        self.collections = CollectionStore(db)
        self.documents = DocumentStore(db)
        self.metrics = MetricsStore(db)
        self.unkeepable: set[Scope] = set()
        """What proved too large to be kept warm in this run."""
        self._tokens = TokenCache(db)
        self._fresh_tokens: dict[str, Tokens] = {}
        for info in self.collections.list():
            if info.apart:  # what the disk holds of it is cached from the start
                self.root_of(str(info.id))

    def root_of(self, namespace: str) -> bytes:
        """The key that stands before the first chunk of every prompt of a namespace."""
        return self.cache.add_root(root_key(self.engine.fingerprint, namespace))

    def segments_of(self, blocks: Sequence[Block]) -> dict[str, Segment]:
        """Tokenized blocks by id; a block is tokenized once and then kept in the database."""
        wanted = {block.id: block for block in blocks}
        known = self._fresh_tokens | self._tokens.get(list(wanted), self.engine.tokenizer_id)
        for id_, block in wanted.items():
            if id_ not in known:
                known[id_] = self._fresh_tokens[id_] = self.writer.block_tokens(block)
        return {id_: self.writer.block(block, known[id_]) for id_, block in wanted.items()}

    def keep_tokens(self) -> None:
        """Store what was tokenized since the last call; nobody waits for it, and losing it costs little."""
        fresh, self._fresh_tokens = self._fresh_tokens, {}
        try:
            if fresh:
                self._tokens.put(fresh, self.engine.tokenizer_id)
        except StoreError:
            _log.warning("tokens were not stored", exc_info=True)
