"""Kernels of the order statistics: which blocks were asked for together, in a ring of bounded size.

The blocks of recent contexts are entries of a ring, oldest overwritten first. An entry has an absolute
serial number; its row is the serial modulo the capacity (a power of two). ``held`` int32 ``(capacity,)`` is
its block, ``entries`` int32 ``(capacity, 2)`` its context and how far back the block's entry before it stands
(0: there is none). ``newest[block]`` is where that chain begins. Blocks are dense integers;
``counts[block]`` is how many entries hold it.
"""

import numpy as np
from numpy.typing import NDArray

from core.jit import kernel

CONTEXT, BACK = 0, 1
N_COLUMNS = 2

NEXT_ENTRY, NEXT_CONTEXT = 0, 1

MAX_BLOCKS = 62
"""Blocks of a context that are looked at: one bit of an int64 each. What follows them keeps its order."""
MAX_RECENT = 64
"""Contexts per block that are looked at, the newest ones."""
MAX_NEIGHBOURS = MAX_BLOCKS * MAX_RECENT
TABLE_SIZE = 8192
"""Buckets of the scratch table: a power of two above twice ``MAX_NEIGHBOURS``."""
STORED_BLOCKS = 16
"""Leading blocks of a stored order: longer runs are not told apart."""

_MISSING = 0.2
"""What is left of a past context's weight for each chosen block that it lacks."""
_RANK_DECAY = 0.2

Entries = NDArray[np.int32]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]


@kernel("i8(i4[:, ::1], i4[::1], i8[::1], i4[::1], i8[::1], i4[::1], i4[::1])")
def record(
    entries: Entries,
    held: Int32s,
    newest: Int64s,
    counts: Int32s,
    state: Int64s,
    blocks: Int32s,
    freed: Int32s,
) -> int:
    """Append one context. ``blocks`` int32 ``(k,)``: distinct. Returns how many blocks are held no longer;
    ``freed`` int32 ``(k,)`` receives them.
    """
    capacity = entries.shape[0]
    context = np.int32(state[NEXT_CONTEXT] & 0x7FFFFFFF)
    state[NEXT_CONTEXT] += 1
    for block in blocks:  # before anything is overwritten: what is asked for now must not be dropped
        counts[block] += 1
    n_freed = 0
    for block in blocks:
        serial = state[NEXT_ENTRY]
        row = serial & (capacity - 1)
        if serial >= capacity:
            old = held[row]
            counts[old] -= 1
            if counts[old] == 0:
                newest[old] = -1
                freed[n_freed] = old
                n_freed += 1
        back = serial - newest[block]
        held[row] = block
        entries[row, CONTEXT] = context
        entries[row, BACK] = back if newest[block] >= 0 and back < capacity else 0
        newest[block] = serial
        state[NEXT_ENTRY] = serial + 1
    return n_freed


@kernel("i8(i4[:, ::1], i8[::1], i8[::1], i4[::1], i4[::1], i4[::1], i8[::1], i4[:, ::1])")
def neighbours(
    entries: Entries,
    newest: Int64s,
    state: Int64s,
    blocks: Int32s,
    table: Int32s,
    contexts: Int32s,
    masks: Int64s,
    seen: NDArray[np.int32],
) -> int:
    """Past contexts that share a block with this one. Returns how many, at most ``MAX_NEIGHBOURS``.

    ``blocks`` int32 ``(k,)``, k ≤ ``MAX_BLOCKS``, −1 for one that is not known. ``contexts`` and ``masks``
    receive each neighbour's serial number and which of ``blocks`` it holds, as bits. Scratch: ``table`` int32
    ``(TABLE_SIZE,)``, −1 everywhere, before and after; ``seen`` int32 ``(MAX_RECENT, MAX_BLOCKS)``.
    """
    k = blocks.shape[0]
    capacity = entries.shape[0]
    oldest = max(state[NEXT_ENTRY] - capacity, 0)
    serials = np.full(k, -1, np.int64)
    for index in range(k):
        if blocks[index] >= 0:
            serials[index] = newest[blocks[index]]
    # All chains are walked side by side: each step waits for memory, and these waits overlap.
    depth = 0
    is_going = True
    while is_going and depth < MAX_RECENT:
        is_going = False
        for index in range(k):
            serial = serials[index]
            if serial < oldest:
                seen[depth, index] = -1
                continue
            is_going = True
            row = serial & (capacity - 1)
            seen[depth, index] = entries[row, CONTEXT]
            back = entries[row, BACK]
            serials[index] = serial - back if back > 0 else -1
        depth += 1
    n = 0
    for step in range(depth):
        for index in range(k):
            context = seen[step, index]
            if context < 0:
                continue
            bucket = (np.int64(context) * 0x9E3779B1 >> 12) & (TABLE_SIZE - 1)
            while table[bucket] >= 0 and contexts[table[bucket]] != context:
                bucket = (bucket + 1) & (TABLE_SIZE - 1)
            if table[bucket] < 0:
                table[bucket] = n
                contexts[n] = context
                masks[n] = 0
                n += 1
            masks[table[bucket]] |= np.int64(1) << index
    for neighbour in range(n - 1, -1, -1):  # backwards: no chain is cut before its end has been cleared
        bucket = (np.int64(contexts[neighbour]) * 0x9E3779B1 >> 12) & (TABLE_SIZE - 1)
        while table[bucket] != neighbour:
            bucket = (bucket + 1) & (TABLE_SIZE - 1)
        table[bucket] = -1
    return n


@kernel("i8(i8)")
def count_bits(mask: int) -> int:
    """Set bits of a mask that is not negative."""
    n = 0
    while mask:
        mask &= mask - 1
        n += 1
    return n


@kernel("i8(i8)")
def lowest_bit(mask: int) -> int:
    """Index of the lowest set bit of a mask that is neither negative nor 0, by halving."""
    index = 0
    if mask & 0xFFFFFFFF == 0:
        index += 32
        mask >>= 32
    if mask & 0xFFFF == 0:
        index += 16
        mask >>= 16
    if mask & 0xFF == 0:
        index += 8
        mask >>= 8
    while mask & 1 == 0:
        index += 1
        mask >>= 1
    return index


@kernel("void(i8[::1], i8, i8, f8[::1], i8[::1], f8, f8, i4[::1])")
def tail(
    masks: Int64s,
    n_neighbours: int,
    n_fixed: int,
    lengths: Floats,
    groups: Int64s,
    by_rank: float,
    by_group: float,
    order: Int32s,
) -> None:
    """An order of the blocks after the fixed ones, the one most often asked for together with them first.

    Blocks are numbered 0..k−1, the fixed ones first, the others in relevance order. ``lengths`` float64
    ``(k,)``: what each saves, relative to the mean. ``groups`` int64 ``(k,)``: its document, or −1.
    ``order`` int32 ``(k − n_fixed,)`` receives the numbers of the others. Next comes the block with the
    largest (weighted count among the neighbours + ``by_rank`` · exp(−0.2 · rank) + ``by_group`` · blocks of
    its group that stand before it) · length. A neighbour that shares o blocks weighs (o − 1)²,
    and a fifth of that for every block before the place that it lacks.
    """
    k = lengths.shape[0]
    score = np.zeros(k, np.float64)
    weight = np.empty(n_neighbours, np.float64)
    kept = np.empty(n_neighbours, np.int64)
    n_kept = 0
    fixed = (np.int64(1) << n_fixed) - 1
    for neighbour in range(n_neighbours):
        shared = count_bits(masks[neighbour])
        if shared < 2 or masks[neighbour] & ~fixed == 0:
            continue
        w = float((shared - 1) * (shared - 1)) * _MISSING ** count_bits(fixed & ~masks[neighbour])
        rest = masks[neighbour] & ~fixed
        weight[n_kept] = w
        kept[n_kept] = rest
        n_kept += 1
        while rest:
            score[lowest_bit(rest)] += w
            rest &= rest - 1
    for index in range(n_fixed, k):
        score[index] += by_rank * np.exp(-_RANK_DECAY * (index - n_fixed))
        if groups[index] >= 0:
            for before in range(n_fixed):
                if groups[before] == groups[index]:
                    score[index] += by_group
    taken = np.zeros(k, np.bool_)
    for place in range(k - n_fixed):
        chosen = -1
        for index in range(n_fixed, k):
            if not taken[index] and (
                chosen < 0 or score[index] * lengths[index] > score[chosen] * lengths[chosen]
            ):
                chosen = index
        taken[chosen] = True
        order[place] = chosen
        bit = np.int64(1) << chosen
        left = 0
        for neighbour in range(n_kept):
            mask = kept[neighbour]
            if mask & bit:
                mask &= ~bit
            else:
                lost = weight[neighbour] * (1.0 - _MISSING)
                weight[neighbour] -= lost
                rest = mask
                while rest:
                    score[lowest_bit(rest)] -= lost
                    rest &= rest - 1
            if mask:
                kept[left] = mask
                weight[left] = weight[neighbour]
                left += 1
        n_kept = left
        if groups[chosen] >= 0:
            for index in range(n_fixed, k):
                if groups[index] == groups[chosen]:
                    score[index] += by_group


@kernel("void(i4[::1], i8, i4[:, :, ::1], i4[::1], i4[::1], i8, i8, f8, f8[::1])")
def credit(
    contexts: Int32s,
    n_neighbours: int,
    stored: NDArray[np.int32],
    blocks: Int32s,
    position: Int32s,
    next_context: int,
    first_stored: int,
    decay: float,
    credits_: Floats,
) -> None:
    """Add to each expert's credit the longest run of its stored orders that this context could have reused.

    ``stored`` int32 ``(n_contexts, n_experts, STORED_BLOCKS)``: ring of orders by context, −1 past the end;
    those from serial number ``first_stored`` on are whole. ``position`` int32 ``(n_blocks,)`` is scratch: −1
    everywhere, before and after.
    """
    for index in range(blocks.shape[0]):
        if blocks[index] >= 0:
            position[blocks[index]] = index
    n_rows, n_experts = stored.shape[0], stored.shape[1]
    oldest = max(next_context - n_rows, first_stored)
    for expert in range(n_experts):
        best = 0
        for neighbour in range(n_neighbours):
            context = contexts[neighbour]
            if context < oldest:
                continue
            order = stored[context & (n_rows - 1), expert]
            run = 0
            while run < STORED_BLOCKS and order[run] >= 0 and position[order[run]] >= 0:
                run += 1
            best = max(best, run)
        credits_[expert] = credits_[expert] * decay + best
    for index in range(blocks.shape[0]):
        if blocks[index] >= 0:
            position[blocks[index]] = -1
