"""Snapshots in memory, under a budget in bytes."""

import heapq
import itertools

import psutil

from core.engine.protocol import Snapshot
from core.engine.tree import Node, Tree

_RESERVE = 0.08
"""Share of the machine's memory that snapshots leave free for everything else."""
_DEPTH_WEIGHT = 10
"""A chunk one step deeper counts as so many requests older: the start of a prompt is shared by more."""


class RamTier:
    """Who is in RAM, and who has to leave. Only chunks without a child in RAM leave (leaves first)."""

    def __init__(self, tree: Tree, budget: int) -> None:
        self.budget = budget
        """Bytes; 0 switches the tier off."""
        self.pinned: frozenset[bytes] = frozenset()
        """Keys of chunks that stay, whatever they are worth."""
        self._tree = tree
        self._heap: list[tuple[int, int, Node]] = []
        self._tick = itertools.count()
        self._total = psutil.virtual_memory().total

    def put(self, node: Node, snapshot: Snapshot) -> bool:
        """Keep a snapshot if room can be made without removing anything that is worth more."""
        if node.ram is not None:
            return True
        if node.parent is None or not (node.parent.parent is None or _has_copy(node.parent)):
            return False  # it could not be reached once the live sequence moves on
        budget = self._budget_now()
        self._make_room(0, budget, None)  # the machine may have become short of memory
        if len(snapshot) > budget or not self._make_room(len(snapshot), budget, _priority(node)):
            return False
        self._tree.set_ram(node, snapshot)
        self.touch(node)
        return True

    def touch(self, node: Node) -> None:
        """Note that ``node.used_at`` has changed."""
        if node.ram is not None:
            heapq.heappush(self._heap, (_priority(node), next(self._tick), node))
            if len(self._heap) > 64 and len(self._heap) > 8 * len(self._tree.nodes):
                self._rebuild()

    def drop(self, node: Node) -> None:
        """Take a node's snapshot away; the tree is told by the caller."""
        if node.ram is not None:
            self._tree.set_ram(node, None)
            if node.parent is not None:
                self.touch(node.parent)

    def _budget_now(self) -> int:
        if not self.budget:
            return 0
        spare = psutil.virtual_memory().available - int(_RESERVE * self._total)
        return max(0, min(self.budget, self._tree.ram_bytes + int(spare)))

    def _make_room(self, n_bytes: int, budget: int, worth: int | None) -> bool:
        """Evict leaves, the least valuable first, none worth more than ``worth``; True if it fits then."""
        while self._tree.ram_bytes + n_bytes > budget:
            node = self._least_valuable()
            if node is None or (worth is not None and _priority(node) > worth):
                return False
            self.drop(node)
            self._tree.tier_lost(node)
        return True

    def _least_valuable(self) -> Node | None:
        kept: list[tuple[int, int, Node]] = []
        found = None
        while self._heap:
            entry = self._heap[0]
            node = entry[2]
            stale = node.ram is None or entry[0] != _priority(node)
            if stale or any(child.ram is not None for child in node.children):
                heapq.heappop(self._heap)  # its last child in RAM brings it back when it leaves
            elif node.live or node.key in self.pinned:
                kept.append(heapq.heappop(self._heap))  # the path in use stays
            else:
                found = node
                break
        for entry in kept:
            heapq.heappush(self._heap, entry)
        return found

    def _rebuild(self) -> None:
        self._heap = [
            (_priority(n), next(self._tick), n) for n in self._tree.nodes.values() if n.ram is not None
        ]
        heapq.heapify(self._heap)


def _has_copy(node: Node) -> bool:
    return node.ram is not None or node.on_ssd


def _priority(node: Node) -> int:
    return node.used_at - _DEPTH_WEIGHT * node.depth
