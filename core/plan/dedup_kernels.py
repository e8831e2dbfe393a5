"""Where text stands twice: units that an earlier block holds, grown as far as the texts agree.

Units are lines and sentences, and in a text without them the sub-blocks of the chunker. Their beginnings are
hashed; where a hash was met before, both texts are compared from there on, both ways, character by character:
nothing is believed that was not compared. A stretch is made of whole units, so that what differs keeps its
whole line. Kernels see all blocks of a prompt as one array of code points.
"""

import numpy as np
from numpy.typing import NDArray

from core.cdc import cut
from core.cut_rules import CLOSER, FULL_STOP, GAP, KIND, NEWLINE, RARE, SPACE, STOP, TAB, WEIGHT, Info, Text
from core.jit import kernel

BLOCK, START, END, SOURCE, FROM = range(5)
"""Columns of what is found: which block, its stretch, which earlier block holds it, where that begins there.
Positions count from the beginning of the array of all blocks."""

_ONE, _TWO, _THREE, _FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
Wide = NDArray[np.int64]
Bytes = NDArray[np.uint8]

HASHED = 28
"""Characters from the beginning of a unit that must be equal before it is compared."""
_LONG = 400
"""Characters of a line or sentence above which it is cut into sub-blocks."""
_MOST_ALIKE = 4
"""Units of the same hash that are remembered; what agrees longest is taken."""
_BAR = 124
_DASHES = (45, 58, 124, 32)


@kernel("u8(u4[::1], i8)")
def _hash(text: Text, start: int) -> np.uint64:
    """Hash of the ``HASHED`` characters from ``start`` on, which are there.

    Four at a time, since a multiplication waits for the one before.
    """
    prime = np.uint64(0x9E3779B97F4A7C15)
    a, b = np.uint64(0x2545F4914F6CDD1D), np.uint64(0x165667B19E3779F9)
    c, d = np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x27D4EB2F165667C5)
    place = np.uint64(start)
    for _ in range(HASHED // 4):
        a = (a ^ np.uint64(text[place])) * prime
        b = (b ^ np.uint64(text[place + np.uint64(1)])) * prime
        c = (c ^ np.uint64(text[place + np.uint64(2)])) * prime
        d = (d ^ np.uint64(text[place + np.uint64(3)])) * prime
        place += np.uint64(4)
    a ^= (b >> np.uint64(29)) ^ (b << np.uint64(17))
    a = a * prime ^ (c >> np.uint64(31)) ^ (c << np.uint64(13))
    a = a * prime ^ (d >> np.uint64(27)) ^ (d << np.uint64(19))
    a = a * prime
    return a ^ (a >> np.uint64(32))


@kernel("i8(u4[::1], i2[::1], i8[::1], i8, i8, u1[::1], i8[::1], i8)")
def _mark_units(
    text: Text, table: Info, limits: Wide, first: int, last: int, marks: Bytes, units: Wide, n_units: int
) -> int:
    """Mark where the units of the block ``first:last`` begin, and append them to ``units``; their new number.

    A unit is a line or a sentence; of one that is longer than ``_LONG`` characters, each sub-block.
    """
    begun = first
    at = np.uint64(first)
    end = np.uint64(last)
    while begun < last:
        start = begun
        begun = last
        while at < end:
            while at + _FOUR <= end:  # nearly all characters are none that matter: four at a time
                several = table[text[at]] | table[text[at + _ONE]]
                several |= table[text[at + _TWO]] | table[text[at + _THREE]]
                if several & RARE:
                    break
                at += _FOUR
            if at == end:
                break
            info = int(table[text[at]])
            at += _ONE
            if info & RARE == 0:
                continue
            kind = info & KIND
            here = int(np.int64(at))
            if kind == NEWLINE:
                while here < last and table[text[here]] & KIND == NEWLINE:
                    here += 1
                begun = here
                break
            if kind in (STOP, FULL_STOP):
                stopped = here - 1
                while here < last and table[text[here]] & KIND == CLOSER:
                    here += 1
                spaced = here
                while here < last and table[text[here]] & KIND == SPACE:
                    here += 1
                is_number = stopped > first and 48 <= text[stopped - 1] <= 57  # "No. 5." may go on
                if here < last and (kind == FULL_STOP or (here > spaced and not is_number)):
                    begun = here
                    break
        marks[start] = 1
        units[n_units] = start
        n_units += 1
        if begun - start > _LONG:
            pieces = cut(text[start:begun], table, limits)
            for row in range(1, len(pieces) - 1):
                marks[start + pieces[row, 0]] = 1
                units[n_units] = start + pieces[row, 0]
                n_units += 1
        at = np.uint64(begun)
    return n_units


@kernel("i8(u4[::1], i8, i8)")
def _line_start(text: Text, first: int, at: int) -> int:
    """Where the line begins that ends before ``at``, or in which ``at`` stands."""
    while at > first and text[at - 1] != 10:
        at -= 1
    return at


@kernel("b1(u4[::1], i2[::1], i8, i8)")
def _is_row(text: Text, table: Info, at: int, last: int) -> bool:
    """Whether the line at ``at`` is one of a table: it holds a bar or a tab between visible characters."""
    seen = False
    while at < last and text[at] != 10:
        c = text[at]
        if c == _BAR or (seen and table[c] & KIND == TAB):
            return True
        seen = seen or table[c] & GAP == 0
        at += 1
    return False


@kernel("UniTuple(i8, 2)(u4[::1], i2[::1], i8, i8, i8)")
def _header_before(text: Text, table: Info, first: int, at: int, last: int) -> tuple[int, int]:
    """The header ``start:end`` of the table that goes on at ``at``; (-1, -1) where none does.

    The header is the first line of the rows that lie together, and a line of dashes below it.
    """
    if at >= last or at <= first:
        return -1, -1
    if not _is_row(text, table, _line_start(text, first, at), last):
        return -1, -1
    top = _line_start(text, first, at)
    if top == at and not _is_row(text, table, _line_start(text, first, at - 1), last):
        return -1, -1
    while top > first:
        above = _line_start(text, first, top - 1)
        if not _is_row(text, table, above, last):
            break
        top = above
    end = top
    for line in range(2):
        stop = end
        dashes = True
        while stop < last and text[stop] != 10:
            dashes = dashes and text[stop] in _DASHES
            stop += 1
        if line == 1 and not dashes:
            break
        end = min(stop + 1, last)
    return top, end


@kernel("b1(u4[::1], i2[::1], i8, i8, i8)")
def _weighs(text: Text, table: Info, start: int, end: int, least: int) -> bool:
    """Whether what lies between weighs at least ``least``, in estimated thousandths of a token."""
    weight = 0
    before = 0
    index = start
    while index < end and weight < least:
        info = int(table[text[index]])
        weight += (info & WEIGHT) * (info & before & GAP == 0)
        before = info
        index += 1
    return weight >= least


@kernel("UniTuple(i8, 2)(u4[::1], i2[::1], u1[::1], u1[::1], i8, i8, i8, i8, i8, i8)")
def _agreement(
    text: Text,
    table: Info,
    marks: Bytes,
    hidden: Bytes,
    at: int,
    other: int,
    free: int,
    last: int,
    source_first: int,
    source_last: int,
) -> tuple[int, int]:
    """The whole units around ``at`` that are equal to what is shown around ``other``; empty if none is.

    Within ``free:last`` of a block, and within ``source_first:source_last``.
    """
    shift = at - other
    place, there = np.uint64(at), np.uint64(other)  # unsigned: Numba then looks for no negative index
    end = np.uint64(min(last, source_last + shift))
    while place < end and text[place] == text[there] and hidden[there] == 0:
        place += _ONE
        there += _ONE
    stop = int(np.int64(place))
    if stop < at + HASHED:
        return at, at  # another text of the same hash
    place, there = np.uint64(at), np.uint64(other)
    end = np.uint64(max(free, source_first + shift))
    while place > end and text[place - _ONE] == text[there - _ONE] and hidden[there - _ONE] == 0:
        place -= _ONE
        there -= _ONE
    begin = int(np.int64(place))
    while begin < at and marks[begin] == 0:
        begin += 1
    ahead = stop  # a unit may end before the white space that is behind it in one block only
    while ahead < last and marks[ahead] == 0 and table[text[ahead]] & GAP:
        ahead += 1
    if ahead < last and marks[ahead] == 0:
        while stop > at and marks[stop] == 0:
            stop -= 1
    while stop > begin and table[text[stop - 1]] & GAP:
        stop -= 1
    return begin, max(begin, stop)


@kernel("i8[:, ::1](u4[::1], i2[::1], i8[::1], i8[::1], u1[::1], i8[::1], i8)")
def find_repeated(
    text: Text, table: Info, limits: Wide, starts: Wide, whole: Bytes, unclear_from: Wide, least: int
) -> Wide:
    """Stretches of at least ``least`` thousandths of a token that an earlier block shows: int64 ``(n, 5)``.

    Block i is ``text[starts[i]:starts[i + 1]]``. One with ``whole`` set is left as it is. From block number
    ``unclear_from[i]`` on, nothing may refer to block i. What is found refers to text that is itself shown,
    never to text that was found; it is in order, and no two overlap.
    """
    n_blocks = len(starts) - 1
    marks = np.zeros(len(text) + 1, dtype=np.uint8)
    hidden = np.zeros(len(text), dtype=np.uint8)
    units = np.empty(len(text) + n_blocks, dtype=np.int64)
    first_unit = np.zeros(n_blocks + 1, dtype=np.int64)
    n_units = 0
    for block in range(n_blocks):
        n_units = _mark_units(text, table, limits, starts[block], starts[block + 1], marks, units, n_units)
        first_unit[block + 1] = n_units
    size = 64
    while size < 2 * n_units:
        size *= 2
    mask = np.uint64(size - 1)
    table_of_hashes = np.full(size, -1, dtype=np.int64)  # number of the first unit of that hash
    following = np.full(n_units, -1, dtype=np.int64)  # of the same hash
    hashes = np.empty(n_units, dtype=np.uint64)
    slots = np.empty(n_units, dtype=np.int64)
    owner = np.empty(n_units, dtype=np.int64)
    found = np.empty((n_units, 5), dtype=np.int64)
    n_found = 0
    for block in range(n_blocks):
        first, last = starts[block], starts[block + 1]
        free = first  # what lies before it has been dealt with
        for number in range(first_unit[block], first_unit[block + 1]):
            at = units[number]
            if at + HASHED > last:
                break
            hashes[number] = _hash(text, at)
            owner[number] = block
            slot = np.uint64(hashes[number] & mask)
            while table_of_hashes[slot] >= 0 and hashes[table_of_hashes[slot]] != hashes[number]:
                slot = (slot + _ONE) & mask
            slots[number] = np.int64(slot)
            if whole[block] or at < free:
                continue
            other = table_of_hashes[slot]
            begin, stop, source, origin = 0, 0, -1, -1
            while other >= 0:
                of = owner[other]
                if block < unclear_from[of]:
                    a, b = _agreement(
                        text,
                        table,
                        marks,
                        hidden,
                        at,
                        units[other],
                        free,
                        last,
                        starts[of],
                        starts[of + 1],
                    )
                    if b - a > stop - begin:
                        begin, stop, source, origin = a, b, of, a - at + units[other]
                other = following[other]
            if source < 0:
                continue
            going_on = stop
            while going_on < last and table[text[going_on]] & GAP:
                going_on += 1
            top, below = _header_before(text, table, first, going_on, last)
            after = stop
            if begin < below and top < stop:
                after, stop = below, max(begin, top)
                while stop > begin and table[text[stop - 1]] & GAP:
                    stop -= 1
            if _weighs(text, table, begin, stop, least):
                found[n_found, BLOCK] = block
                found[n_found, START] = begin
                found[n_found, END] = stop
                found[n_found, SOURCE] = source
                found[n_found, FROM] = origin
                n_found += 1
                hidden[begin:stop] = 1
                free = max(stop, after)
            elif after > stop:
                free = max(free, after)
        for number in range(first_unit[block], first_unit[block + 1]):
            at = units[number]
            if at + HASHED > last:
                break
            if hidden[at] or hidden[at + HASHED - 1]:
                continue
            slot = np.uint64(slots[number])  # taken since then, perhaps, by a unit of this block
            while table_of_hashes[slot] >= 0 and hashes[table_of_hashes[slot]] != hashes[number]:
                slot = (slot + _ONE) & mask
            if table_of_hashes[slot] < 0:
                table_of_hashes[slot] = number
                continue
            other, n_alike = table_of_hashes[slot], 1
            while following[other] >= 0:
                other = following[other]
                n_alike += 1
            if n_alike < _MOST_ALIKE:
                following[other] = number
    return found[:n_found].copy()
