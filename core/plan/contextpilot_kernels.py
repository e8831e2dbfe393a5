"""Kernels of the method of ContextPilot: distances of contexts and average linkage.

Distances are condensed: float32 ``(n * (n - 1) / 2,)``, that of i < j at ``pair(n, i, j)``.
"""

import numpy as np
from numpy.typing import NDArray

from core.jit import kernel


@kernel("i8(i8, i8, i8)")
def pair(n: int, i: int, j: int) -> int:
    """Where the condensed distances of ``n`` contexts hold that of ``i`` and ``j``, which differ."""
    if i > j:
        i, j = j, i
    return n * i - i * (i + 1) // 2 + j - i - 1


@kernel("void(i8[::1], i4[::1], i8, f8, f4[::1])")
def distances(
    starts: NDArray[np.int64],
    blocks: NDArray[np.int32],
    n_blocks: int,
    alpha: float,
    condensed: NDArray[np.float32],
) -> None:
    """d(A, B) = 1 − |A ∩ B| / max(|A|, |B|) + α · mean over A ∩ B of |position in A − position in B|.

    1 where nothing is shared (paper, section 4.1). ``starts`` int64 ``(n + 1,)``; ``blocks`` int32
    ``(total,)``, distinct within a context, below ``n_blocks``. Fills ``condensed``.
    """
    n = starts.shape[0] - 1
    condensed[:] = np.float32(1.0)
    # Lists of (context, position) of each block, filled while i rises: each pair is met once.
    list_starts = np.zeros(n_blocks + 1, np.int64)
    for at in range(blocks.shape[0]):
        list_starts[blocks[at] + 1] += 1
    for block in range(n_blocks):
        list_starts[block + 1] += list_starts[block]
    ends = list_starts.copy()
    contexts = np.empty(blocks.shape[0], np.int32)
    positions = np.empty(blocks.shape[0], np.int32)
    shared = np.zeros(n, np.int32)
    apart = np.zeros(n, np.int64)
    touched = np.empty(n, np.int32)
    for j in range(n):
        n_touched = 0
        for at in range(starts[j], starts[j + 1]):
            block = blocks[at]
            position = at - starts[j]
            for entry in range(list_starts[block], ends[block]):
                i = contexts[entry]
                if shared[i] == 0:
                    touched[n_touched] = i
                    n_touched += 1
                shared[i] += 1
                apart[i] += abs(position - positions[entry])
            contexts[ends[block]] = j
            positions[ends[block]] = position
            ends[block] += 1
        for index in range(n_touched):
            i = int(touched[index])
            longest = max(starts[i + 1] - starts[i], starts[j + 1] - starts[j])
            condensed[pair(n, i, j)] = (
                1.0 - np.float64(shared[i]) / longest + alpha * (np.float64(apart[i]) / shared[i])
            )
            shared[i] = 0
            apart[i] = 0


@kernel("void(f4[::1], i8, i4[:, ::1], f4[::1])")
def average_linkage(
    condensed: NDArray[np.float32], n: int, merges: NDArray[np.int32], heights: NDArray[np.float32]
) -> None:
    """Agglomeration by mean distance, along chains of nearest neighbours: O(n²) time, in place.

    Fills ``merges`` int32 ``(n − 1, 2)``, the smaller first, each cluster named by the largest of its
    contexts, and ``heights`` float32 ``(n − 1,)``; in the order found, which is not yet that of heights.
    Ties: the chain turns back where it can, else the first. ``condensed`` is overwritten.
    """
    sizes = np.ones(n, np.int64)
    chain = np.empty(n + 1, np.int64)
    alive = np.arange(n)  # the clusters left, rising
    n_alive = n
    length = 0
    for merge in range(n - 1):
        if length == 0:
            chain[0] = alive[0]
            length = 1
        while True:
            x = chain[length - 1]
            y = np.int64(-1)
            nearest = np.float32(np.inf)
            if length > 1:
                y = chain[length - 2]
                nearest = condensed[pair(n, x, y)]
            at = 0
            while at < n_alive and alive[at] < x:  # down a column
                i = alive[at]
                distance = condensed[n * i - i * (i + 1) // 2 + x - i - 1]
                if distance < nearest:
                    nearest = distance
                    y = i
                at += 1
            row = n * x - x * (x + 1) // 2 - x - 1
            for later in range(at + 1, n_alive):
                i = alive[later]
                if condensed[row + i] < nearest:
                    nearest = condensed[row + i]
                    y = i
            if length > 1 and y == chain[length - 2]:
                break
            chain[length] = y
            length += 1
        length -= 2
        if x > y:
            x, y = y, x
        merges[merge, 0], merges[merge, 1] = x, y
        heights[merge] = nearest
        kept = 0
        for at in range(n_alive):
            other = int(alive[at])
            if other == x:
                continue
            alive[kept] = other
            kept += 1
            if other != y:
                mean = (
                    sizes[x] * np.float64(condensed[pair(n, other, int(x))])
                    + sizes[y] * np.float64(condensed[pair(n, other, int(y))])
                ) / (sizes[x] + sizes[y])
                condensed[pair(n, other, int(y))] = mean
        n_alive = kept
        sizes[y] += sizes[x]
