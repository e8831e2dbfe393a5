"""The context index: a mirror of what the prefix cache holds, asked which path serves a set of blocks.

It learns of every commit and eviction as an event and never asks the cache. Elements (64 bits) are mapped to
dense integers here, at the edge; nodes and their keys stand in flat arrays, and only the kernels see them.
"""

import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import xxhash

from core.errors import BugError
from core.index import kernels
from core.types import CacheEvent, Committed, Evicted, MissReason, Rooted, Weighed

_FIRST_CAPACITY = 256
_REMEMBERED = 65_536
"""Evicted elements remembered, so that a miss can be explained."""
_KEY_BYTES = 16
_split = struct.Struct("<qq").unpack


@dataclass(frozen=True, slots=True)
class PathMatch:
    """A cached path over some of the blocks asked for."""

    order: tuple[int, ...]
    """Indices into the blocks asked for, in path order; empty if nothing is cached there."""
    n_tokens: int
    """Tokens along the path."""
    weight: int = 0
    """What the path saves: the sum of its nodes' weights (tokens, unless ``weigh`` said otherwise)."""
    runner_up: int = 0
    """What the best path saves that is not the beginning of this one; 0 if there is none."""


@dataclass(frozen=True, slots=True)
class Company:
    """A cached path that holds blocks asked for, and others between them."""

    block_ids: tuple[str, ...] = ()
    """All blocks along the path; empty if there is none."""
    elements: tuple[int, ...] = ()
    """The same as ``Segment.element``."""
    weight: int = 0
    """What the blocks asked for save there."""
    n_foreign_tokens: int = 0
    """Tokens of the others."""
    worth: float = 0.0
    """The weight, less what the others cost."""


class ContextIndex:
    """Prefix trees of cached segments, one a namespace. Owned by the engine thread; no locks.

    64 to 128 bytes a node, its key included, and some 200 bytes for each different element.
    """

    def __init__(self, *roots: bytes) -> None:
        """``roots``: namespaces to begin with; others come as ``Rooted`` events."""
        self._state = np.array([-1, 0], np.int64)
        self._nodes = np.zeros((_FIRST_CAPACITY, kernels.N_COLUMNS), np.int32)
        self._keys = np.zeros((_FIRST_CAPACITY, 2), np.int64)
        self._twins = np.full((_FIRST_CAPACITY, 2), -1, np.int32)
        self._newest = np.full(_FIRST_CAPACITY, -1, np.int32)
        """By dense integer: the latest node that holds it."""
        self._wanted = np.zeros(_FIRST_CAPACITY, np.int32)
        self._is_block = np.zeros(_FIRST_CAPACITY, np.bool_)
        self._nodes[:, kernels.PARENT] = kernels.FREE
        self._n_roots = 0
        self._salts: dict[int, int] = {}
        """By root: namespaces know nothing of each other's elements."""
        self._rebuild()
        self._dense: dict[int, int] = {}
        self._elements: list[int] = []
        """Element of each dense integer."""
        self._block_ids: list[str] = []
        """Block that it stands for; empty for what is no block."""
        self._copies: list[int] = []
        """Nodes that hold it; 0 where the integer is free."""
        self._free_dense: list[int] = []
        self._evicted: dict[int, None] = {}
        for root in roots:
            self._add_root(root)

    def __len__(self) -> int:
        """Segments held."""
        return int(self._state[kernels.N_NODES])

    def __contains__(self, key: bytes) -> bool:
        return self._find(key) >= 0

    @property
    def n_bytes(self) -> int:
        """Bytes of the flat arrays."""
        arrays = (
            self._nodes, self._keys, self._heads, self._key_heads, self._twins, self._newest, self._wanted,
            self._is_block,
        )  # fmt: skip
        return sum(array.nbytes for array in arrays)

    def apply(self, event: CacheEvent) -> None:
        """Follow one event. Events out of order are a bug and raise BugError."""
        if isinstance(event, Rooted):
            self._add_root(event.key)
        elif isinstance(event, Committed):
            self._insert(event)
        elif isinstance(event, Evicted):
            self._remove(event.key)
        elif isinstance(event, Weighed):
            self.weigh(event.key, event.weight)

    def apply_all(self, events: Sequence[CacheEvent]) -> None:
        """Follow several events in order; new segments one after the other cost a third of ``apply`` each.

        Raises BugError at the first one out of order, those before it followed.
        """
        start = 0
        while start < len(events):
            end = start
            while end < len(events) and isinstance(events[end], Committed):
                end += 1
            if end - start > 1:
                self._insert_all(cast("Sequence[Committed]", events[start:end]))
            else:
                end = start + 1
                self.apply(events[start])
            start = end

    def weigh(self, key: bytes, weight: int) -> None:
        """Let a segment count for ``weight`` (at least 1) instead of its tokens: microseconds, for example.

        Weights of one tree must be of one unit. A key that is not held is a bug.
        """
        node = self._find(key)
        if node < 0 or self._nodes[node, kernels.PARENT] < 0:
            raise BugError("The context index holds no such segment.", details=key.hex())
        self._nodes[node, kernels.WEIGHT] = min(max(weight, 1), np.iinfo(np.int32).max)

    def best_path(self, after: bytes, elements: Sequence[int]) -> PathMatch:
        """Of all cached paths below ``after`` made only of ``elements``, the one that saves most.

        ``elements``: ``Segment.element`` of each block in relevance order, repeats allowed. Bounded by
        ``kernels.MAX_VISITS``. An ``after`` that is not cached has nothing below it.
        """
        start = self._find(after)
        if start < 0 or not elements:
            return PathMatch((), 0)
        if salt := self._salt(start):
            elements = [element ^ salt for element in elements]
        known = self._dense.get
        if len(set(elements)) == len(elements):
            wanted = np.array([known(element, -1) for element in elements], np.int32)
        else:
            wanted = np.full(len(elements), -1, np.int32)
            seen: set[int] = set()
            for index, element in enumerate(elements):
                if element not in seen:  # a block stands in a prompt once; its repeats are left to dedup
                    seen.add(element)
                    wanted[index] = known(element, -1)
        best = np.empty(len(elements), np.int32)
        found = np.empty(3, np.int64)
        kernels.best_path(self._nodes, self._heads, start, wanted, best, found)
        weight, n_tokens, runner_up = found.tolist()
        return PathMatch(tuple(index for index in best.tolist() if index >= 0), n_tokens, weight, runner_up)

    def best_company(
        self,
        after: bytes,
        elements: Sequence[int],
        *,
        most_foreign: int,
        price: float,
        rebate: float = 0.0,
        without: Collection[int] = (),
    ) -> Company:
        """Of all cached paths of blocks below ``after``, the one that is worth most for ``elements``.

        ``elements``: as for ``best_path``. Worth: the weight of those on the path, less ``price`` (itself
        less ``rebate`` for each unit of that weight) for each token of other blocks; of these there may be
        ``most_foreign``, none of them an element of ``without``. Bounded by ``kernels.MAX_TWINS``.
        """
        start = self._find(after)
        if start < 0:
            return Company()
        salt = self._salt(start)
        dense = [self._dense.get(element ^ salt, -1) for element in elements]
        found = np.empty(2, np.int64)
        worth = np.empty(1, np.float64)
        known = (self._dense.get(element ^ salt) for element in without)
        barred = [number for number in known if number is not None and self._is_block[number]]
        self._is_block[barred] = False
        node = kernels.best_company(
            self._nodes,
            self._twins,
            self._newest,
            self._is_block,
            self._wanted,
            start,
            np.array(dense, np.int32),
            most_foreign,
            price,
            rebate,
            found,
            worth,
        )
        self._is_block[barred] = True
        path: list[int] = []
        while node >= 0 and node != start:
            path.append(int(self._nodes[node, kernels.ELEMENT]))
            node = int(self._nodes[node, kernels.PARENT])
        path.reverse()
        weight, n_foreign = found.tolist()
        return Company(
            tuple(self._block_ids[number] for number in path),
            tuple(self._elements[number] ^ salt for number in path),
            weight,
            n_foreign,
            float(worth[0]),
        )

    def why_missing(self, element: int, root: bytes | None = None) -> MissReason:
        """Why a segment with these tokens was not found where a prompt of ``root`` wanted it."""
        if root is not None:
            element ^= self._salt(self._find(root))
        if element in self._dense:
            return MissReason.OTHER_PREFIX
        if element in self._evicted:
            return MissReason.EVICTED
        return MissReason.NEVER_SEEN if self._dense or self._evicted else MissReason.FIRST_QUESTION

    # --- following the cache ------------------------------------------------------------------------

    def _find(self, key: bytes) -> int:
        return int(kernels.find_key(self._nodes, self._keys, self._key_heads, *_halves(key)))

    def _add_root(self, key: bytes) -> None:
        if self._find(key) >= 0:
            raise BugError("The context index and the prefix cache disagree.", details=f"root {key.hex()}")
        if self._state[kernels.FIRST_FREE] < 0:
            self._grow()
        node = int(self._state[kernels.FIRST_FREE])
        self._state[kernels.FIRST_FREE] = self._nodes[node, kernels.CHAIN]
        self._nodes[node] = 0
        self._nodes[node, kernels.PARENT : kernels.ELEMENT + 1] = -1
        self._keys[node] = _halves(key)
        kernels.link(self._nodes, self._keys, self._heads, self._key_heads, node)
        self._salts[node] = xxhash.xxh3_64_intdigest(key) if self._n_roots else 0
        self._n_roots += 1

    def _salt(self, node: int) -> int:
        """What the elements of a node's namespace are mixed with; 0 in the first one."""
        if self._n_roots < 2 or node < 0:
            return 0
        while self._nodes[node, kernels.PARENT] >= 0:
            node = int(self._nodes[node, kernels.PARENT])
        return self._salts[node]

    def _insert(self, event: Committed) -> None:
        if self._state[kernels.FIRST_FREE] < 0:
            self._grow()
        element = event.element
        if self._n_roots > 1:
            element ^= self._salt(self._find(event.parent))
        dense = self._dense.get(element)
        if dense is None:
            dense = self._new_dense(element)
        if event.block_id:
            self._name(dense, event.block_id)
        node = kernels.insert(
            self._nodes,
            self._keys,
            self._heads,
            self._key_heads,
            self._twins,
            self._newest,
            self._state,
            *_halves(event.parent),
            *_halves(event.key),
            dense,
            event.n_tokens,
        )
        self._copies[dense] += 1
        if node < 0:
            self._drop_copy(dense)
            raise BugError("The context index and the prefix cache disagree.", details=repr(event))
        if self._evicted:
            self._evicted.pop(element, None)

    def _insert_all(self, events: Sequence[Committed]) -> None:
        names = [name for event in events for name in (event.parent, event.key)]
        if self._n_roots > 1 or set(map(len, names)) != {_KEY_BYTES}:
            for event in events:
                self._insert(event)
            return
        while len(self._nodes) - self._n_roots - len(self) < len(events):
            self._grow()
        get = self._dense.get
        dense = []
        for event in events:
            number = get(event.element)
            dense.append(self._new_dense(event.element) if number is None else number)
            if event.block_id:
                self._name(dense[-1], event.block_id)
        n_done = kernels.insert_all(
            self._nodes,
            self._keys,
            self._heads,
            self._key_heads,
            self._twins,
            self._newest,
            self._state,
            np.frombuffer(bytearray(b"".join(names)), np.int64).reshape(-1, 4),
            np.array([*dense, *[event.n_tokens for event in events]], np.int32),
        )
        copies = self._copies
        for number in dense:
            copies[number] += 1
        for number in dense[n_done:]:
            self._drop_copy(number)
        if self._evicted:
            for event in events[:n_done]:
                self._evicted.pop(event.element, None)
        if n_done < len(events):
            raise BugError(
                "The context index and the prefix cache disagree.", details=repr(events[int(n_done)])
            )

    def _remove(self, key: bytes) -> None:
        dense = kernels.remove(
            self._nodes,
            self._keys,
            self._heads,
            self._key_heads,
            self._twins,
            self._newest,
            self._state,
            *_halves(key),
        )
        if dense < 0:
            raise BugError("The context index and the prefix cache disagree.", details=f"evicted {key.hex()}")
        element = self._elements[dense]
        if self._drop_copy(dense):
            self._evicted[element] = None
            if len(self._evicted) > _REMEMBERED:
                del self._evicted[next(iter(self._evicted))]

    def _new_dense(self, element: int) -> int:
        if self._free_dense:
            dense = self._free_dense.pop()
            self._elements[dense] = element
        else:
            dense = len(self._elements)
            self._elements.append(element)
            self._copies.append(0)
            self._block_ids.append("")
            if dense == len(self._newest):
                self._newest = np.concatenate([self._newest, np.full(dense, -1, np.int32)])
                self._wanted = np.zeros(2 * dense, np.int32)
                self._is_block = np.concatenate([self._is_block, np.zeros(dense, np.bool_)])
        self._dense[element] = dense
        return dense

    def _name(self, dense: int, block_id: str) -> None:
        if self._is_block[dense]:
            return
        self._block_ids[dense] = block_id
        self._is_block[dense] = True

    def _drop_copy(self, dense: int) -> bool:
        """One node less holds this element; True if it was the last one."""
        self._copies[dense] -= 1
        if self._copies[dense]:
            return False
        del self._dense[self._elements[dense]]
        self._block_ids[dense] = ""
        self._is_block[dense] = False
        self._free_dense.append(dense)
        return True

    def _grow(self) -> None:
        """Double the arrays and hash every node again."""
        old = len(self._nodes)
        nodes = np.zeros((2 * old, kernels.N_COLUMNS), np.int32)
        nodes[:old] = self._nodes
        nodes[old:, kernels.PARENT] = kernels.FREE
        self._nodes = nodes
        keys = np.zeros((2 * old, 2), np.int64)
        keys[:old] = self._keys
        self._keys = keys
        self._twins = np.concatenate([self._twins, np.full((old, 2), -1, np.int32)])
        self._rebuild()

    def _rebuild(self) -> None:
        self._heads = np.empty(len(self._nodes), np.int32)
        self._key_heads = np.empty(len(self._nodes), np.int32)
        kernels.rebuild(self._nodes, self._keys, self._heads, self._key_heads, self._state)


def _halves(key: bytes) -> tuple[int, int]:
    """A key as two signed 64-bit integers; one that is no 16 bytes long is hashed to 16 first."""
    if len(key) != _KEY_BYTES:
        key = xxhash.xxh3_128_digest(key)
    high, low = _split(key)
    return high, low
