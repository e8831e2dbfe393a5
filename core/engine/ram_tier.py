"""Snapshots in memory, under a budget in bytes."""

from collections.abc import Callable, Collection

import psutil

from core.engine.eviction import ROOT, LeafQueue
from core.engine.protocol import Snapshot
from core.engine.tree import Node, Tree

_RESERVE = 0.08
"""Share of the machine's memory that snapshots leave free for everything else."""


class RamTier:
    """Who is in RAM, and who has to leave: only chunks without a child in RAM, the least valuable first.

    What a chunk is worth is learned (``core.engine.eviction``). Live and pinned chunks stay.
    """

    def __init__(
        self, tree: Tree, budget: int, popularity: Callable[[str], int], seconds: Callable[[Node], float]
    ) -> None:
        """``popularity``: in how many recent contexts a block was; ``seconds``: what computing takes."""
        self.budget = budget
        """Bytes; 0 switches the tier off."""
        self.queue = LeafQueue()
        self._tree = tree
        self._popularity = popularity
        self._seconds = seconds
        self._nodes: dict[int, Node] = {}
        self._pinned: frozenset[bytes] = frozenset()
        self._total = psutil.virtual_memory().total
        tree.on_ram = self._follow

    def pin(self, keys: Collection[bytes]) -> None:
        """Keys of chunks that stay, whatever they are worth."""
        changed = self._pinned.symmetric_difference(keys)
        self._pinned = frozenset(keys)
        for key in changed:
            if node := self._tree.get(key):
                self.refresh(node)

    def next_request(self) -> None:
        self.queue.next_request()

    def put(self, node: Node, snapshot: Snapshot) -> bool:
        """Keep a snapshot if room can be made without removing anything that is worth more."""
        if node.ram is not None:
            return True
        if node.parent is None or not (node.parent.parent is None or node.parent.has_snapshot):
            return False  # it could not be reached once the live sequence moves on
        budget = self._budget_now()
        if len(snapshot) > budget:
            self._make_room(budget, None)  # the machine may have become short of memory
            return False
        self._tree.set_ram(node, snapshot)
        return self._make_room(budget, node)

    def use(self, node: Node) -> None:
        """The current request uses this chunk."""
        if node.slot:
            self.queue.use(node.slot, count=self._popularity(node.block_id))

    def refresh(self, node: Node) -> None:
        """Note whether a chunk may leave: it became live or is no longer, or was pinned."""
        wanted = bool(node.slot) and (
            node.live or node.key in self._pinned or any(child.is_late for child in node.children)
        )
        if wanted and not node.is_held:
            self.queue.pin(node.slot)
        elif node.is_held and node.slot and not wanted:
            self.queue.unpin(node.slot)
        node.is_held = wanted

    def _follow(self, node: Node) -> None:
        """A snapshot came into RAM or went: the queue mirrors those in RAM."""
        if node.ram is not None and not node.slot:
            parent = node.parent
            below = parent.slot if parent is not None else ROOT
            node.slot = self.queue.insert(
                below,
                count=max(1, self._popularity(node.block_id)),
                seconds=self._seconds(node),
                n_bytes=len(node.ram),
            )
            self._nodes[node.slot] = node
            node.is_late = not below
            for child in node.children:  # those that were in RAM before it stand elsewhere in the queue
                child.is_late = bool(child.slot)
            self.refresh(node)
        elif node.ram is None and node.slot:
            self.queue.remove(node.slot)
            del self._nodes[node.slot]
            node.slot = ROOT
            node.is_late = node.is_held = False
        if node.parent is not None:
            self.refresh(node.parent)

    def _budget_now(self) -> int:
        if not self.budget:
            return 0
        spare = psutil.virtual_memory().available - int(_RESERVE * self._total)
        return max(0, min(self.budget, self._tree.ram_bytes + int(spare)))

    def _make_room(self, budget: int, newest: Node | None) -> bool:
        """Evict the least valuable leaves until the budget holds; False if ``newest`` had to go too."""
        while self._tree.ram_bytes > budget:
            slot = self.queue.victim()
            node = newest if slot is None else self._nodes[slot]
            if node is None:
                return False
            self._tree.set_ram(node, None)
            self._tree.tier_lost(node)
            if node is newest:
                return False
        return True
