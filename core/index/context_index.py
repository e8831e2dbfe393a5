"""The context index: a mirror of what the prefix cache holds, asked which path serves a set of blocks.

It learns of every commit and eviction as an event and never asks the cache. Keys (16 bytes) and elements
(64 bits) are mapped to dense integers here, at the edge; the kernels see flat arrays only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.errors import BugError
from core.index import kernels
from core.types import CacheEvent, Committed, Evicted, MissReason, Rooted

_FIRST_CAPACITY = 256
_REMEMBERED = 65_536
"""Evicted elements remembered, so that a miss can be explained."""


@dataclass(frozen=True, slots=True)
class PathMatch:
    """A cached path over some of the blocks asked for."""

    order: tuple[int, ...]
    """Indices into the blocks asked for, in path order; empty if nothing is cached there."""
    n_tokens: int
    """Tokens along the path."""


class ContextIndex:
    """Prefix trees of cached segments, one a namespace. Owned by the engine thread; no locks."""

    def __init__(self, *roots: bytes) -> None:
        """``roots``: namespaces to begin with; others come as ``Rooted`` events."""
        self._nodes = np.full((_FIRST_CAPACITY, kernels.N_COLUMNS), -1, np.int32)
        self._heads = np.full(_FIRST_CAPACITY, -1, np.int32)
        self._free: list[int] = list(range(_FIRST_CAPACITY - 1, -1, -1))
        self._node_of: dict[bytes, int] = {}
        self._roots: set[int] = set()
        self._dense: dict[int, int] = {}
        self._free_dense: list[int] = []
        self._element_of: dict[int, int] = {}
        self._copies: dict[int, int] = {}
        self._evicted: dict[int, None] = {}
        for root in roots:
            self._add_root(root)

    def __len__(self) -> int:
        """Segments held."""
        return len(self._node_of) - len(self._roots)

    def __contains__(self, key: bytes) -> bool:
        return key in self._node_of

    def apply(self, event: CacheEvent) -> None:
        """Follow one event. Events out of order are a bug and raise BugError."""
        if isinstance(event, Rooted):
            self._add_root(event.key)
        elif isinstance(event, Committed):
            self._insert(event)
        elif isinstance(event, Evicted):
            self._remove(event.key)

    def best_path(self, after: bytes, elements: Sequence[int]) -> PathMatch:
        """Of all cached paths below ``after`` made only of ``elements``, the one that saves most tokens.

        ``elements``: ``Segment.element`` of each block in relevance order, repeats allowed. Bounded by
        ``kernels.MAX_VISITS``. An ``after`` that is not cached has nothing below it.
        """
        start = self._node_of.get(after)
        if start is None or not elements:
            return PathMatch((), 0)
        wanted = np.full(len(elements), -1, np.int32)
        seen: set[int] = set()
        for index, element in enumerate(elements):
            if element not in seen:  # a block stands in a prompt once; its repeats are left to dedup
                seen.add(element)
                wanted[index] = self._dense.get(element, -1)
        best = np.empty(len(elements), np.int32)
        saved = int(kernels.best_path(self._nodes, self._heads, start, wanted, best))
        return PathMatch(tuple(int(index) for index in best if index >= 0), saved)

    def why_missing(self, element: int) -> MissReason:
        """Why a segment with these tokens was not found where a prompt wanted it."""
        if self._copies.get(element):
            return MissReason.OTHER_PREFIX
        if element in self._evicted:
            return MissReason.EVICTED
        return MissReason.NEVER_SEEN if self._copies or self._evicted else MissReason.FIRST_QUESTION

    # --- following the cache ------------------------------------------------------------------------

    def _add_root(self, key: bytes) -> None:
        if key in self._node_of:
            raise BugError("The context index and the prefix cache disagree.", details=f"root {key.hex()}")
        node = self._new_node()
        self._nodes[node] = (-1, -1, 0, -1, 0)
        self._node_of[key] = node
        self._roots.add(node)

    def _insert(self, event: Committed) -> None:
        parent = self._node_of.get(event.parent)
        if parent is None or event.key in self._node_of:
            raise BugError("The context index and the prefix cache disagree.", details=repr(event))
        node = self._new_node()
        self._nodes[node] = (parent, self._dense_id(event.element), event.n_tokens, -1, 0)
        kernels.link(self._nodes, self._heads, node)
        self._node_of[event.key] = node
        self._copies[event.element] = self._copies.get(event.element, 0) + 1
        self._evicted.pop(event.element, None)
        self._element_of[node] = event.element

    def _remove(self, key: bytes) -> None:
        node = self._node_of.get(key)
        if node is None or node in self._roots or self._nodes[node, kernels.N_CHILDREN] > 0:
            raise BugError("The context index and the prefix cache disagree.", details=f"evicted {key.hex()}")
        del self._node_of[key]
        kernels.unlink(self._nodes, self._heads, node)
        self._free.append(node)
        element = self._element_of.pop(node)
        self._copies[element] -= 1
        if not self._copies[element]:
            del self._copies[element]
            self._free_dense.append(self._dense.pop(element))
            self._evicted[element] = None
            if len(self._evicted) > _REMEMBERED:
                del self._evicted[next(iter(self._evicted))]

    def _dense_id(self, element: int) -> int:
        dense = self._dense.get(element)
        if dense is None:
            dense = self._free_dense.pop() if self._free_dense else len(self._dense)
            self._dense[element] = dense
        return dense

    def _new_node(self) -> int:
        if not self._free:
            self._grow()
        return self._free.pop()

    def _grow(self) -> None:
        """Double the arrays and hash every node again."""
        old = len(self._nodes)
        nodes = np.full((2 * old, kernels.N_COLUMNS), -1, np.int32)
        nodes[:old] = self._nodes
        nodes[:, kernels.N_CHILDREN] = 0
        self._nodes = nodes
        self._heads = np.full(2 * old, -1, np.int32)
        for node in self._node_of.values():
            if node not in self._roots:
                kernels.link(self._nodes, self._heads, node)
        self._free.extend(range(2 * old - 1, old - 1, -1))
