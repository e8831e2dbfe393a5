"""The prefix cache: it alone says which chunks of a prompt are cached, and in which tier.

A chunk is *live* (in the model context), has a snapshot in *RAM*, one on *SSD*, or several of these; one
without any is forgotten. Two rules hold at all times: a chunk that has a tier follows one that has a tier, so
every cached chunk can be reached; and snapshots are made only of what was prefilled or restored on the
canonical grid, never of decoded tokens.

Every whole segment that becomes or stops being available is told as an event (``Committed``, ``Evicted``),
parents first when committing and deepest first when evicting: who follows them holds the same tree.
"""

import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import xxhash

from core.engine.eviction import LeafQueue
from core.engine.protocol import CancelFlag, KVMemory, Snapshot
from core.engine.ram_tier import RamTier
from core.engine.rates import Rate, Rates
from core.engine.snapshots import SnapshotInfo
from core.engine.ssd_tier import SsdTier
from core.engine.tree import Node, Tree
from core.errors import BugError, Cancelled, EngineError
from core.types import GRID_VERSION, CacheEvent, CachePlace, Chunk, Prompt, Tier

_SECOND_USE = 2


@dataclass(frozen=True, slots=True)
class PrefillStep:
    """One chunk became live."""

    chunk: int
    """Index into ``prompt.chunks``."""
    tier: Tier
    """RAM or SSD if a snapshot was restored, PREFILLED if it was computed."""
    seconds: float
    saved_s: float = 0.0
    """For a restored chunk: what computing it took, measured then or by this machine's rate."""


def _tier_of(node: Node) -> Tier:
    """Where its snapshot would be loaded from."""
    return Tier.RAM if node.ram is not None else Tier.SSD


def root_key(fingerprint: bytes, namespace: str = "") -> bytes:
    """Key that stands before the first chunk of every prompt: who made the KV, and for whom."""
    return xxhash.xxh3_128_digest(b"%s|%d|%s" % (fingerprint, GRID_VERSION, namespace.encode()))


class PrefixCache:
    """Owns the live sequence and all snapshots. Used by the engine thread only; no locks."""

    def __init__(
        self,
        memory: KVMemory,
        root: bytes,
        on_event: Callable[[CacheEvent], None],
        *,
        ram_budget: int = 0,
        ssd: SsdTier | None = None,
        popularity: Callable[[str], int] = lambda _block_id: 1,
        rates: Rates | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """``root``: the namespace that ``self.root`` names. ``ram_budget`` in bytes, 0 for none.

        ``popularity``: in how many recent contexts a block was; it helps to tell what may go. ``rates``: what
        was measured before; it goes on learning. ``clock``: seconds, what durations are measured with.
        """
        self.rates = rates or Rates()
        self._clock = clock
        self._memory = memory
        self._tree = Tree(on_event)
        self._ram = RamTier(self._tree, ram_budget, popularity, self._cost_of)
        self._tree.worth = self._worth
        self._ssd = ssd
        self._live: list[Node] = []
        self._pinned: frozenset[bytes] = frozenset()
        self._n_decoded = 0
        self._n_requests = 0
        self._is_ahead = False
        self._bytes_per_token = 0.0
        memory.clear()
        self.root = self.add_root(root)

    def add_root(self, root: bytes) -> bytes:
        """Open a namespace, once: what the SSD holds for it is cached from now on. Returns ``root``."""
        if root not in self._tree.roots:
            self._tree.add_root(root)
            self._follow_ssd()
            for info in self._ssd.open(root) if self._ssd else ():
                self._add_from_disk(info)
        return root

    def __len__(self) -> int:
        """Chunks that have a tier."""
        return len(self._tree.nodes)

    @property
    def n_live_tokens(self) -> int:
        """Positions held by whole chunks; decoded tokens behind them are not counted."""
        return self._live[-1].end if self._live else 0

    @property
    def n_positions(self) -> int:
        """Positions in use, decoded tokens included."""
        return self.n_live_tokens + self._n_decoded

    @property
    def n_ram_bytes(self) -> int:
        return self._tree.ram_bytes

    @property
    def eviction(self) -> LeafQueue:
        """What decides who leaves RAM: it learns."""
        return self._ram.queue

    @property
    def bytes_per_token(self) -> float:
        """Of the last snapshot; 0 until there was one."""
        return self._bytes_per_token

    @property
    def keeps_snapshots(self) -> bool:
        """Whether anything outlives the live sequence."""
        return bool(self._ram.budget) or (self._ssd is not None and self._ssd.enabled)

    def is_of_another_model(self, block_id: str) -> bool:
        """Whether the SSD holds this block as another model or other settings made it."""
        if self._ssd is None or len(self._tree.roots) > 1:
            return False  # what is kept apart must not show, whichever model read it
        return self._ssd.has_other_maker(block_id, self._tree.roots.keys())

    def knows(self, keys: Iterable[bytes]) -> bool:
        """Whether every chunk of these keys is cached in some tier."""
        return all(self._tree.get(key) is not None for key in keys)

    def holds(self, prompt: Prompt) -> bool:
        """Whether every chunk has a snapshot."""
        nodes = [self._tree.get(chunk.key) for chunk in prompt.chunks]
        return all(node is not None and node.has_snapshot for node in nodes)

    def has_ssd(self, place: CachePlace) -> bool:
        """Whether what is cached there may go to SSD."""
        return place.on_disk and self._ssd is not None and self._ssd.enabled

    def ram_needed(self, prompts: Sequence[Prompt]) -> int:
        """Bytes that these prompts would take in RAM; what is on SSD needs none. As far as that is known."""
        chunks = {chunk.key: chunk for prompt in prompts for chunk in prompt.chunks}
        total = 0.0
        for key, chunk in chunks.items():
            node = self._tree.get(key)
            if node is None or not node.on_ssd:
                size = node.n_bytes if node is not None else 0
                total += size or len(chunk.tokens) * self._bytes_per_token
        return int(total)

    def block_ids(self) -> set[str]:
        """The blocks that any tier holds something of."""
        held = {node.block_id for node in self._tree.nodes.values() if node.block_id}
        return held | (self._ssd.block_ids() if self._ssd is not None else set())

    def forget_namespace(self, root: bytes) -> None:
        """Remove what the SSD holds of a namespace that nobody can ask any more."""
        if self._ssd is not None and root not in self._tree.roots:
            self._ssd.forget_root(root)

    # --- asking ----------------------------------------------------------------------------------------

    def locate(self, prompt: Prompt, n_chunks: int = sys.maxsize) -> list[Tier]:
        """Where each of the first ``n_chunks`` chunks would come from; as long as the cached prefix."""
        self._follow_ssd()
        path = self._cached_path(prompt, n_chunks)
        if not self._memory.can_cut:
            n_kept = self._n_keepable(prompt, n_chunks)
            whole = self._state_to_load(path, n_kept)
            return [_tier_of(path[whole - 1])] * whole if whole else [Tier.LIVE] * n_kept
        n_live = self._n_live(prompt)
        return [Tier.LIVE if n < n_live else _tier_of(node) for n, node in enumerate(path)]

    def _cached_path(self, prompt: Prompt, n_chunks: int) -> list[Node]:
        path: list[Node] = []
        for chunk in prompt.chunks[:n_chunks]:
            node = self._tree.get(chunk.key)
            if node is None:
                break
            path.append(node)
        return path

    def _state_to_load(self, path: Sequence[Node], n_kept: int) -> int:
        """How many chunks the whole state stands for that is worth loading; 0: none beyond ``n_kept``."""
        n = max((n for n, node in enumerate(path, 1) if node.has_snapshot), default=0)
        if n <= n_kept:
            return 0
        n_saved = path[n - 1].end - (path[n_kept - 1].end if n_kept else 0)
        pays = self.rates.loading_pays(self._rate_of(path[n - 1]), path[n - 1].n_bytes, n_saved)
        return n if pays else 0

    def _n_keepable(self, prompt: Prompt, n_chunks: int) -> int:
        """How many live chunks can stay for ``prompt``: for a model that cannot be cut, all or none."""
        n_live = min(self._n_live(prompt), n_chunks)
        if self._memory.can_cut or (n_live == len(self._live) and not self._n_decoded):
            return n_live
        return 0

    # --- making a prompt live ----------------------------------------------------------------------------

    def prefill(
        self,
        prompt: Prompt,
        cancel: CancelFlag,
        *,
        logits: bool = True,
        ahead: bool = False,
        n_on_disk: int = sys.maxsize,
    ) -> Iterator[PrefillStep]:
        """Make ``prompt`` live, chunk by chunk: keep what is, restore what was saved, compute the rest.

        ``n_on_disk``: only so many leading segments may be written to SSD from now on. ``ahead``: nobody
        asked for it; what is computed here goes to SSD only once a prompt uses it.

        With ``logits`` the last chunk is always computed, whole: its logits are those a cold run gives
        (recomputing one token of it gives others). Raises Cancelled with finished chunks kept, EngineError
        with the live sequence lost; snapshots stay in both cases.
        """
        chunks = prompt.chunks
        if not chunks or prompt.n_tokens > self._memory.n_ctx:
            raise BugError("A prompt does not fit the model context.", details=f"{prompt.n_tokens} tokens")
        self._n_requests += 1
        self._is_ahead = ahead
        self._ram.next_request()
        self._follow_ssd()
        if self._ssd is not None:
            self._ssd.protect({chunk.key for chunk in chunks} | self._pinned)
        n_reusable = len(chunks) - 1 if logits else len(chunks)
        kept = self._keep(self._n_keepable(prompt, n_reusable), prompt)
        for node in self._live:
            self._use(node)
        if not self._memory.can_cut:
            started = self._clock()
            tier = self._restore_state(prompt, kept, n_reusable)
            seconds = self._clock() - started
            kept = len(self._live)
            if tier is not None:
                for index, node in enumerate(self._live):
                    yield PrefillStep(index, tier, seconds / kept, self._cost_of(node))
        for node, chunk in zip(self._live, chunks, strict=False):
            node.off_disk |= chunk.segment >= n_on_disk
        for index in range(kept, len(chunks)):
            if cancel.is_set():
                raise Cancelled
            started = self._clock()
            may_restore = index < n_reusable and self._memory.can_cut
            tier = self._restore(chunks[index]) if may_restore else None
            if tier is None:
                self._compute(prompt, chunks[index], cancel, off_disk=chunks[index].segment >= n_on_disk)
            self._live[-1].off_disk |= chunks[index].segment >= n_on_disk
            if tier is None:
                yield PrefillStep(index, Tier.PREFILLED, self._clock() - started)
            else:
                yield PrefillStep(index, tier, self._clock() - started, self._cost_of(self._live[-1]))

    def live_costs(self, n_chunks: int) -> list[float]:
        """Seconds that each of the first ``n_chunks`` live chunks would have cost to compute."""
        return [self._cost_of(node) for node in self._live[:n_chunks]]

    def _cost_of(self, node: Node) -> float:
        return node.prefill_s or self.rates.prefill_s(node.end - node.n_tokens, node.n_tokens)

    def _worth(self, node: Node) -> float:
        if node.live:
            return 1.0
        return self.rates.saved_share(self._rate_of(node), node.n_bytes, node.n_tokens)

    def decode(self, token: int, cancel: CancelFlag) -> None:
        """Append one sampled token. It is no part of any path: the next ``prefill`` cuts it away."""
        position = self.n_positions
        if position >= self._memory.n_ctx:
            raise BugError("The model context is full.")
        self._call(partial(self._memory.decode, token, position, cancel))
        self._n_decoded += 1

    def _n_live(self, prompt: Prompt) -> int:
        n = 0
        for mine, theirs in zip(self._live, prompt.chunks, strict=False):
            if mine.key != theirs.key:
                break
            n += 1
        return n

    def _compute(self, prompt: Prompt, chunk: Chunk, cancel: CancelFlag, *, off_disk: bool) -> None:
        started = self._clock()
        self._call(partial(self._memory.prefill, chunk.tokens, chunk.start, cancel))
        seconds = self._clock() - started
        self.rates.learn_prefill(seconds, chunk.start, len(chunk.tokens))
        node = self._tree.get(chunk.key)
        if node is None:
            node = self._tree.add_chunk(chunk, prompt.segments[chunk.segment])
            node.ahead = self._is_ahead
        node.prefill_s = seconds
        node.off_disk |= off_disk
        self._append(node)
        if not self._memory.can_cut:
            self._save(node)  # its state is that of the whole sequence: the next chunk would change it

    def _restore(self, chunk: Chunk) -> Tier | None:
        """Make a chunk live from its snapshot if there is a sound one that is quicker than computing."""
        node = self._tree.get(chunk.key)
        if node is None:
            return None
        tier = _tier_of(node)
        if not self._load(node, chunk.start, node.n_tokens):
            return None
        self._append(node)
        return tier

    def _restore_state(self, prompt: Prompt, n_kept: int, n_chunks: int) -> Tier | None:
        """For a model that cannot be cut: load the longest whole state beyond what is live, if there is one.

        It goes into an empty memory, so what was live is dropped for it.
        """
        path = self._cached_path(prompt, n_chunks)
        while n := self._state_to_load(path, n_kept):
            node, tier = path[n - 1], _tier_of(path[n - 1])
            self._cut_live(0)
            n_kept = 0
            if self._load(node, 0, node.end):
                for each in path[:n]:
                    self._append(each)
                return tier
            path = self._cached_path(prompt, n - 1)
        return None

    def _rate_of(self, node: Node) -> Rate:
        return self.rates.ram_byte_s if node.ram is not None else self.rates.ssd_byte_s

    def _load(self, node: Node, start: int, n_saved: int) -> bool:
        """Put a snapshot behind ``start`` positions if that is quicker than computing ``n_saved`` tokens."""
        rate = self._rate_of(node)
        size = len(node.ram) if node.ram is not None else node.n_bytes
        if not self.rates.loading_pays(rate, size, n_saved):
            return False
        started = self._clock()
        snapshot = node.ram if node.ram is not None else self._read(node)
        if snapshot is None or not self._memory.load(snapshot, start, node.end):
            self._lose_snapshots(node)
            return False
        rate.learn(self._clock() - started, len(snapshot))
        return True

    def _read(self, node: Node) -> Snapshot | None:
        return self._ssd.read(node.key) if self._ssd is not None and node.on_ssd else None

    def _lose_snapshots(self, node: Node) -> None:
        """A snapshot is damaged or gone: so is all that was built on it."""
        if self._ssd is not None:
            self._ssd.forget([node.key])
        self._tree.remove(node)

    def _append(self, node: Node) -> None:
        node.live = True
        self._ram.refresh(node)
        self._tree.weigh(node)
        node.save_tried = False
        self._live.append(node)
        self._use(node)

    def _use(self, node: Node) -> None:
        node.ahead = node.ahead and self._is_ahead
        if node.used_at != self._n_requests:
            node.used_at = self._n_requests
            node.n_uses += 1
            self._ram.use(node)

    def _keep(self, n_chunks: int, prompt: Prompt) -> int:
        """Cut the live sequence after ``n_chunks`` chunks; returns how many really stay.

        What is cut is saved first; it belongs to a conversation that is being left, so it goes to SSD too.
        """
        if n_chunks == len(self._live) and self._n_decoded == 0:
            return n_chunks
        n_common = n_chunks if self._memory.can_cut else self._n_live(prompt)
        if n_common < len(self._live):
            for node in self._live:  # what stays live as well: a snapshot needs those it follows
                if not node.on_ssd:
                    self._save(node)
            self._submit(self._live)
        self._cut_live(n_chunks)
        return n_chunks

    def _cut_live(self, n_chunks: int) -> None:
        end = self._live[n_chunks - 1].end if n_chunks else 0
        if end and self._memory.can_cut:
            self._call(partial(self._memory.cut, end))
            self._drop_live(n_chunks)
        else:
            self._memory.clear()
            self._drop_live(0)

    def _drop_live(self, n_chunks: int) -> None:
        """Take every chunk from ``n_chunks`` on off the live path, deepest first."""
        self._n_decoded = 0
        while len(self._live) > n_chunks:
            node = self._live.pop()
            node.live = False
            self._ram.refresh(node)
            self._tree.tier_lost(node)
            self._tree.weigh(node)

    def _call(self, step: Callable[[], None]) -> None:
        """Run one call into the memory; what it lost by an error is dropped here too."""
        try:
            step()
        except Cancelled:
            if not self._memory.can_cut:
                self._memory.clear()  # how much of the chunk it holds is not known
                self._drop_live(0)
            raise
        except EngineError:
            self._drop_live(0)
            raise

    # --- saving ------------------------------------------------------------------------------------------

    def tend(self) -> bool:
        """Save one chunk of the live path, to be called while nobody waits; True if there is more to do."""
        self._follow_ssd()
        if self._save_next():
            return True
        self._submit([node for node in self._live if node.n_uses >= _SECOND_USE])
        return False

    def _save_next(self) -> bool:
        """Save the first live chunk that has no snapshot in RAM yet; what came from SSD gets one as well."""
        return any(self._save(node) for node in self._live)

    def _save(self, node: Node) -> bool:
        """Save a live chunk, once; True if that was still to be done and could be tried."""
        if node.ram is not None or node.save_tried:
            return False
        if not self._memory.can_cut and (node is not self._live[-1] or self._n_decoded):
            return False  # its state is gone
        node.save_tried = True
        if not self._ram.budget and (self._ssd is None or node.on_ssd):
            return True
        try:
            snapshot = self._memory.save(node.start if self._memory.can_cut else 0, node.end)
        except EngineError:
            self._memory.clear()
            self._drop_live(0)
            raise
        if snapshot is not None:
            node.n_bytes = len(snapshot)
            self._bytes_per_token = node.n_bytes / node.n_tokens
            if not self._ram.put(node, snapshot) and not self._ram.budget:
                self._submit_one(node, snapshot)
        return True

    def _submit(self, nodes: Collection[Node]) -> None:
        """Queue the snapshots of a path for the SSD, parents first, as far as they are without gaps."""
        for node in nodes:
            if not node.on_ssd:
                if node.ram is None or node.off_disk or node.ahead:
                    return
                self._submit_one(node, node.ram)

    def _submit_one(self, node: Node, snapshot: Snapshot) -> None:
        if self._ssd is None or node.parent is None or node.off_disk:
            return
        self._ssd.submit(
            SnapshotInfo(
                key=node.key,
                parent=node.parent.key,
                root=node.root,
                n_tokens=node.n_tokens,
                ends_segment=node.ends_segment,
                segment_parent=node.segment_parent,
                segment_tokens=node.segment_tokens,
                element=node.element,
                block_id=node.block_id,
                n_bytes=len(snapshot),
            ),
            snapshot,
        )

    def retire(self) -> None:
        """Before the program ends: what is live or was used twice goes to SSD. Does not wait for the disk."""
        if self._ssd is None:
            return
        while self._save_next():
            pass
        self._submit(self._live)
        worth = (
            node for node in self._tree.nodes.values() if node.n_uses >= _SECOND_USE and node.ram is not None
        )
        for node in sorted(worth, key=lambda node: node.depth):
            self._submit(node.path())

    def warm_up(self, n_bytes: int) -> Iterator[int]:
        """Bring what is on SSD into RAM, the latest used first, up to ``n_bytes``; yields bytes so far."""
        done = 0
        on_disk = [node for node in self._tree.nodes.values() if node.ram is None and node.on_ssd]
        for node in sorted(on_disk, key=lambda node: (-node.file_used_at, node.depth)):
            if done + node.n_bytes > n_bytes:
                return
            if self._tree.get(node.key) is not node:
                continue  # it went with a damaged one
            snapshot = self._read(node)
            if snapshot is None:
                self._lose_snapshots(node)
            elif not self._ram.put(node, snapshot.copy()):
                return  # no memory is left
            else:
                done += len(snapshot)
            yield done

    # --- forgetting --------------------------------------------------------------------------------------

    def forget(self, block_ids: Collection[str] = (), elements: Collection[int] = ()) -> None:
        """Remove every chunk of these blocks or elements from every tier, and all that was built on them."""
        doomed = [n for n in self._tree.nodes.values() if n.block_id in block_ids or n.element in elements]
        for node in sorted(doomed, key=lambda node: node.depth):
            if node.key not in self._tree.nodes:
                continue  # it went with one above it
            if node.live:
                self._cut_live(self._live.index(node))
            self._tree.remove(node)
        if self._ssd is not None:
            self._ssd.forget_blocks(block_ids, elements)

    def keep_off_disk(self, block_ids: Collection[str]) -> None:
        """Take these blocks, and all that was built on them, off the SSD for good; RAM keeps them."""
        for top in [node for node in self._tree.nodes.values() if node.block_id in block_ids]:
            for node in top.subtree():
                node.off_disk = True
                node.on_ssd = False
                self._tree.tier_lost(node)
        if self._ssd is not None:
            self._ssd.forget_blocks(block_ids, ())

    @property
    def pinned(self) -> frozenset[bytes]:
        return self._pinned

    def pin(self, keys: Collection[bytes], ram_bytes: int = sys.maxsize) -> None:
        """Chunks that stay when room is made, in place of those pinned before. Forgetting removes them.

        On SSD all of them stay, in RAM as many as take ``ram_bytes``, in the order given.
        """
        self._pinned = frozenset(keys)
        in_ram = []
        for key in keys:
            node = self._tree.get(key)
            ram_bytes -= len(node.ram) if node is not None and node.ram is not None else 0
            if ram_bytes < 0:
                break
            in_ram.append(key)
        self._ram.pin(in_ram)

    def forget_everything(self) -> None:
        """Empty every tier, of every model."""
        self._memory.clear()
        self._drop_live(0)
        for root in self._tree.roots.values():
            for node in list(root.children):
                self._tree.remove(node)
        if self._ssd is not None:
            self._ssd.clear()

    # --- following the disk ------------------------------------------------------------------------------

    def _follow_ssd(self) -> None:
        """Note which snapshots the writer thread has written or evicted since the last look."""
        if self._ssd is None:
            return
        for key, info in self._ssd.changes():
            node = self._tree.get(key)
            if info is None:
                if node is not None:
                    node.on_ssd = False
                    self._tree.tier_lost(node)
            elif info.root not in self._tree.roots:
                continue  # written for the model that was in use before
            elif node is None:
                self._add_from_disk(info)  # it had to leave RAM while it waited for the disk
            else:
                node.on_ssd = True

    def _add_from_disk(self, info: SnapshotInfo) -> None:
        parent = self._tree.before(info.parent)
        if parent is None:
            if self._ssd is not None:
                self._ssd.forget([info.key])
            return
        node = Node(
            key=info.key,
            parent=parent,
            root=info.root,
            start=parent.end,
            n_tokens=info.n_tokens,
            ends_segment=info.ends_segment,
            segment_parent=info.segment_parent,
            segment_tokens=info.segment_tokens,
            element=info.element,
            block_id=info.block_id,
            on_ssd=True,
            n_bytes=info.n_bytes,
            file_used_at=info.used_at,
        )
        self._tree.add(node)
