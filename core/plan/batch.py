"""A batch of contexts as flat arrays: what both offline methods compute on."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.errors import BugError


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """``n`` contexts, repeated blocks left out; context i is ``blocks[starts[i]:starts[i + 1]]``.

    ``starts`` int64 ``(n + 1,)``. ``blocks`` int32 ``(total,)``: dense ids in order of first appearance in
    the batch, so that nothing depends on the values of the hashes. ``places`` int32 ``(total,)``: where
    the block stands in the list that was given. ``weights`` int64 ``(n_blocks,)``: tokens of a block.
    """

    starts: NDArray[np.int64]
    blocks: NDArray[np.int32]
    places: NDArray[np.int32]
    weights: NDArray[np.int64]

    @property
    def n(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Ordered:
    """What a method makes of a batch.

    ``order`` int32 ``(n,)``: contexts as they should run. ``positions`` int32 ``(total,)``, laid out like
    ``Batch.blocks``: the context's blocks as they should stand, by their position in it. ``n_shared``:
    blocks that the method's tree shares.
    """

    order: NDArray[np.int32]
    positions: NDArray[np.int32]
    n_shared: int


def flatten(contexts: Sequence[Sequence[int]], weights: Mapping[int, int] | None = None) -> Batch:
    """The first occurrence of each block of each context. A block that ``weights`` lacks weighs 1.

    Raises BugError for a weight below 1: a block without tokens is none.
    """
    dense: dict[int, int] = {}
    starts, blocks, places = [0], [], []
    for context in contexts:
        seen = set()
        for place, block in enumerate(context):
            if block not in seen:
                seen.add(block)
                blocks.append(dense.setdefault(block, len(dense)))
                places.append(place)
        starts.append(len(blocks))
    tokens = np.ones(len(dense), np.int64)
    if weights is not None:
        tokens[:] = [weights.get(block, 1) for block in dense]
        if len(tokens) and tokens.min() < 1:
            raise BugError("A block weighs less than one token.")
    return Batch(np.array(starts, np.int64), np.array(blocks, np.int32), np.array(places, np.int32), tokens)


def equal_sets(batch: Batch) -> NDArray[np.int32]:
    """int32 ``(n,)``: number of each context's set of blocks, in order of first appearance."""
    lengths = np.diff(batch.starts)
    n_blocks = max(1, len(batch.weights))
    keys = np.repeat(np.arange(batch.n, dtype=np.int64), lengths) * n_blocks + batch.blocks
    keys.sort()  # by context, then by block
    data = (keys % n_blocks).astype(np.int32).tobytes()
    numbers: dict[bytes, int] = {}
    ends = (batch.starts * 4).tolist()
    return np.array(
        [numbers.setdefault(data[a:b], len(numbers)) for a, b in itertools.pairwise(ends)], np.int32
    )
