"""Everything that answering needs, in one place: owned by the engine thread."""

import logging
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from core.engine.chat_format import PLAIN, chat_format
from core.engine.prefix_cache import PrefixCache, root_key
from core.engine.protocol import Engine
from core.engine.rates import Rates
from core.engine.ssd_tier import SsdTier
from core.errors import StoreError
from core.index import ContextIndex, OrderStatistics
from core.plan import EVERYTHING, Form, Plan, Rules
from core.prompt import PromptWriter
from core.store.collections import CollectionStore
from core.store.conversations import ConversationStore
from core.store.database import Database
from core.store.documents import DocumentStore
from core.store.learned import ORDER, LearnedStore
from core.store.metrics import MetricsStore
from core.store.token_cache import TokenCache
from core.types import Block, CachePlace, CollectionInfo, Scope, Segment, Tokens

_log = logging.getLogger(__name__)
_NO_TEMPLATE = (
    "The chat template in this model's file cannot be used: questions reach it as plain text, and answers "
    "may be poor."
)
_EVICTION, _RATES = "eviction", "rates:"
_NOTHING = Scope()
_MOST_SHORTENED = 512
"""Forms of blocks whose tokens are remembered."""
_MOST_SEGMENTS = 1024
"""The same of whole blocks, 2 KB each: what is asked again is not read from the database again."""
_QUESTIONS_PER_SAVE = 20
"""What was learned can be 3 MB: writing it after every question would wear the disk."""


class Workbench:
    """A model, its prefix cache and index, and the stores."""

    def __init__(
        self,
        engine: Engine,
        db: Database,
        *,
        ram_budget: int = 0,
        ssd: SsdTier | None = None,
        dedup: str = "content",
        first_word_s: float = 0.0,
        rules: Rules = EVERYTHING,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """``ram_budget`` in bytes; without ``ssd`` nothing outlives the program.

        ``dedup`` and ``first_word_s``: as in the settings. ``rules``: what plans may do; ``clock``: what the
        cache measures with.
        """
        self.engine = engine
        self.rules = rules
        self.db = db
        self.ram_budget = ram_budget
        self.index = ContextIndex()
        self._learned = LearnedStore(db)
        self._orders: dict[str, OrderStatistics] = {}
        self._n_unsaved = 0
        self.cache = PrefixCache(
            engine,
            root_key(engine.fingerprint),
            self.index.apply,
            ram_budget=ram_budget,
            ssd=ssd,
            popularity=self._popularity,
            rates=self._learned.load(_RATES + engine.fingerprint.hex(), Rates(engine.info.attention)),
            clock=clock,
        )
        self._learned.load(_EVICTION, self.cache.eviction)
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
        self._segments: dict[str, Segment] = {}
        self.dedup = dedup
        self.first_word_s = first_word_s
        self._shortened: dict[str, Segment] = {}
        used = {str(info.id) for info in self.collections.list() if info.apart}
        used |= self.conversations.namespaces()
        for namespace in self._learned.names(ORDER) - used - {""}:  # nobody can ask it any more
            self.cache.forget_namespace(root_key(engine.fingerprint, namespace))
            self._learned.delete(ORDER + namespace)
        for namespace in sorted(used):
            self.root_of(namespace)  # what the disk holds of it is cached from the start

    def place_of(self, before: CachePlace, block_ids: Sequence[str], scope: Scope = _NOTHING) -> CachePlace:
        """Where a prompt is cached that was at ``before``, holds these blocks, and is asked of ``scope``."""
        return before.touching(self.touched(block_ids, scope))

    def touched(self, block_ids: Sequence[str], scope: Scope = _NOTHING) -> tuple[CollectionInfo, ...]:
        """Every collection that a prompt with these blocks, asked of ``scope``, must heed, each once."""
        holding = (info for infos in self.collections.holding(block_ids).values() for info in infos)
        return tuple(dict.fromkeys((*holding, *self.collections.asked(scope))))

    def order_of(self, namespace: str) -> OrderStatistics:
        """What was asked for together in a namespace: each has its own, so that none tells of another."""
        if namespace not in self._orders:
            self._orders[namespace] = self._learned.load(ORDER + namespace, OrderStatistics())
        return self._orders[namespace]

    def learn_order(self, plan: Plan, namespace: str) -> None:
        """Remember what was asked for together, after its question."""
        seen = plan.considered
        if seen.names:
            fixed = [seen.names[i] for i in plan.match.order]
            order = self.order_of(namespace)
            self._n_unsaved += 1
            order.record(seen.names, fixed=fixed, lengths=seen.lengths, groups=seen.groups)

    def keep_learned(self, *, now: bool = True) -> None:
        """Store what was learned in use; without ``now`` only once in a while, to spare the disk.

        Nobody waits for it, and losing the last of it costs little.
        """
        if not now and self._n_unsaved < _QUESTIONS_PER_SAVE:
            return
        self._n_unsaved = 0
        try:
            for namespace, order in self._orders.items():
                self._learned.save(ORDER + namespace, order)
            self._learned.save(_EVICTION, self.cache.eviction)
            self._learned.save(_RATES + self.engine.fingerprint.hex(), self.cache.rates)
        except StoreError:
            _log.warning("what was learned was not stored", exc_info=True)

    def forget_blocks(self, block_ids: Collection[str]) -> None:
        """Take blocks that are gone out of the cache, all tiers, and out of what was learned."""
        self.cache.forget(block_ids=block_ids)
        self._shortened.clear()
        self._segments.clear()
        names = {int(block_id, 16) for block_id in block_ids}
        for namespace in {*self._orders, *self._learned.names(ORDER)}:
            self.order_of(namespace).forget(names)
        if block_ids:
            self.keep_learned()
            self.db.forget_deleted()

    def forget_everything(self) -> None:
        """Empty the cache in all tiers, of every model, and what was learned of what was asked."""
        self.cache.forget_everything()
        self._shortened.clear()
        self._segments.clear()
        self._orders.clear()
        self._learned.delete_all(ORDER)
        self.unkeepable.clear()

    def _popularity(self, block_id: str) -> int:
        name = int(block_id, 16) if block_id else 0
        return max((order.count(name) for order in self._orders.values()), default=0)

    def root_of(self, namespace: str) -> bytes:
        """The key that stands before the first chunk of every prompt of a namespace."""
        return self.cache.add_root(root_key(self.engine.fingerprint, namespace))

    def segments_of(self, blocks: Sequence[Block]) -> dict[str, Segment]:
        """Tokenized blocks by id; a block is tokenized once and then kept in the database."""
        wanted = {block.id: block for block in blocks}
        found = {id_: segment for id_ in wanted if (segment := self._segments.pop(id_, None))}
        unread = [id_ for id_ in wanted if id_ not in found]
        stored = self._tokens.get(unread, self.engine.tokenizer_id) if unread else {}
        for id_ in unread:
            tokens = stored.get(id_)
            if tokens is None:
                tokens = self._fresh_tokens[id_] = self.writer.block_tokens(wanted[id_])
            found[id_] = self.writer.block(wanted[id_], tokens)
        self._segments |= found  # those used last stand last
        while len(self._segments) > _MOST_SEGMENTS:
            del self._segments[next(iter(self._segments))]
        return {id_: found[id_] for id_ in wanted}

    def shortened(self, form: Form) -> Segment:
        """A block's segment with references in it. Kept in memory only: its text depends on other blocks."""
        text = form.rendered
        segment = self._shortened.get(text)
        if segment is None:
            if len(self._shortened) >= _MOST_SHORTENED:
                del self._shortened[next(iter(self._shortened))]
            segment = self._shortened[text] = self.writer.shortened(form.block_id, text)
        return segment

    def known_shortened(self, form: Form) -> Segment | None:
        """The same if it was tokenized before in this run, else None."""
        return self._shortened.get(form.rendered)

    def keep_tokens(self) -> None:
        """Store what was tokenized since the last call; nobody waits for it, and losing it costs little."""
        fresh, self._fresh_tokens = self._fresh_tokens, {}
        try:
            if fresh:
                self._tokens.put(fresh, self.engine.tokenizer_id)
        except StoreError:
            _log.warning("tokens were not stored", exc_info=True)
