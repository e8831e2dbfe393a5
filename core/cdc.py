"""Content-defined pieces: where text is cut so that equal text gives equal pieces wherever it stands.

Two sizes. *Blocks* are what is found, shown and cited: 128 to 512 tokens by an estimate that knows no
model (``boundaries``, ``pieces``). *Sub-blocks*, 16 to 64 tokens, are what a prompt is de-duplicated by
(``sub_boundaries``). For both, the cut comes within that window at the strongest structure (heading,
paragraph, list item or table row, sentence, line), and among equals where a hash of the text *after* the
cut is largest. So a cut depends on the text near it and on the cut before, and two texts that share a
section fall into step after a piece or so: an edit changes the pieces around it and no others.

One pass over the characters; the kernels see them as code points (uint32). Nearly all of them are letters
and single spaces, which can only be weighed; a loop without a hard-to-foresee branch does that, and the
rules are looked at only where a character stands that can matter to them.
"""

import numpy as np
from numpy.typing import NDArray

from core.cut_rules import (
    BAR,
    CLOSER,
    FULL_STOP,
    GAP,
    HEAVIEST,
    INFO,
    KIND,
    NEWLINE,
    PLAIN,
    RARE,
    TAB,
    WEIGHT,
    Info,
    Text,
    hash_after,
    heading_at,
    joins,
    start_of_gap,
    strength_before,
    weigh,
)
from core.jit import kernel

MIN_TOKENS = 128
MAX_TOKENS = 512
WANTED_TOKENS = 256
"""Among cuts of equal structure, those that leave at least so much are preferred."""

SUB_MIN_TOKENS = 16
SUB_MAX_TOKENS = 64

_LEAST, _WANTED, _MOST, _HASHED_IN_PROSE = range(4)
"""Of ``limits`` int64 ``(4,)``: weights of a piece, and how much of what follows is hashed where there is no
structure, which takes a hash a word."""
_AT, _BEFORE, _STRENGTH, _HASH = range(4)
"""Columns of ``found`` int64 ``(1024, 4)``, the places where a piece may end: character offset, weight of
all text before it, how strong a cut, hash of what follows (-1: not needed yet)."""
_MAX_FOUND = 1024
"""512 tokens hold fewer places."""
_HASHED = 24
"""Visible characters. Enough to tell rows of a table apart that begin alike."""

_ONE = np.uint64(1)
Wide = NDArray[np.int64]


@kernel("UniTuple(i8, 2)(u4[::1], i2[::1], i8[::1], i8)")
def _cut_at_word(text: Text, table: Info, limits: Wide, start: int) -> tuple[int, int]:
    """Where to cut what begins at ``start``, one giant sentence, before a word: position (-1 if there is no
    gap in the window), and the weight before it.
    """
    least, most = limits[_LEAST], limits[_MOST]
    weight = 0
    before = 0
    place, end = np.uint64(start), np.uint64(len(text))
    while place < end and weight < least:
        info = int(table[text[place]])
        weight += (info & WEIGHT) * (info & before & GAP == 0)
        before = info
        place += _ONE
    best, best_weight, best_hash = -1, 0, -1
    while place < end and weight <= most:
        info = int(table[text[place]])
        if info & GAP == 0 and weight + (info & WEIGHT) > most:
            break  # what goes over the limit is no place to cut at
        if before & ~info & GAP:
            found = hash_after(text, table, int(np.int64(place)), limits[_HASHED_IN_PROSE])
            if found > best_hash:
                best, best_weight, best_hash = int(np.int64(place)), weight, found
        weight += (info & WEIGHT) * (info & before & GAP == 0)
        before = info
        place += _ONE
    return best, best_weight


@kernel("UniTuple(i8, 2)(u4[::1], i2[::1], i8[::1], i8)")
def _cut_at_character(text: Text, table: Info, limits: Wide, start: int) -> tuple[int, int]:
    """Where to cut what begins at ``start``, one giant word. Position, and the weight before it."""
    best, best_weight, best_hash = -1, 0, -1
    weight = 0
    before = 0
    for index in range(start, len(text)):
        c = text[index]
        info = int(table[c])
        if info & GAP == 0:
            if weight + (info & WEIGHT) > limits[_MOST]:
                return (best, best_weight) if best >= 0 else (index, weight)  # nothing but joining ones
            if weight >= limits[_LEAST] and not (joins(c) or (index > 0 and text[index - 1] == 0x200D)):
                found = hash_after(text, table, index, limits[_HASHED_IN_PROSE])
                if found > best_hash:
                    best, best_weight, best_hash = index, weight, found
        weight += (info & WEIGHT) * (info & before & GAP == 0)
        before = info
    return len(text), weight


@kernel("i8(u4[::1], i2[::1], i8[::1], i8[:, ::1], i8, i8)")
def _best_of(text: Text, table: Info, limits: Wide, found: Wide, n_found: int, start_weight: int) -> int:
    """Row of the best of the ``n_found`` places, or -1. Fills in hashes where two are equal."""
    best, best_rank = -1, 0
    for row in range(n_found):
        size = found[row, _BEFORE] - start_weight
        if size < limits[_LEAST]:
            continue
        rank = found[row, _STRENGTH] * 2 + (1 if size >= limits[_WANTED] else 0)
        if rank < best_rank:
            continue
        if rank == best_rank:
            for one in (best, row):
                if found[one, _HASH] < 0:
                    found[one, _HASH] = hash_after(text, table, found[one, _AT], _HASHED)
            if found[row, _HASH] < found[best, _HASH]:
                continue
        best, best_rank = row, rank
    return best


@kernel("UniTuple(i8, 2)(u4[::1], i2[::1], i8[::1], i8[:, ::1], i8, i8[:, ::1], i8, i8)")
def _end_pieces(
    text: Text,
    table: Info,
    limits: Wide,
    found: Wide,
    n_found: int,
    pieces: Wide,
    n_pieces: int,
    reached: int,
) -> tuple[int, int]:
    """End pieces until what is left of the text up to the weight ``reached`` is light enough.

    New ``n_found`` and ``n_pieces``.
    """
    while reached - pieces[n_pieces, 1] > limits[_MOST]:
        start, start_weight = pieces[n_pieces, 0], pieces[n_pieces, 1]
        best = _best_of(text, table, limits, found, n_found, start_weight)
        n_pieces += 1
        if best >= 0:
            end, weight = found[best, _AT], found[best, _BEFORE]
        else:
            end, weight = _cut_at_word(text, table, limits, start)
            if end < 0:
                end, weight = _cut_at_character(text, table, limits, start)
            weight += start_weight
        pieces[n_pieces, 0] = end
        pieces[n_pieces, 1] = weight
        gone = 0
        while gone < n_found and found[gone, _AT] <= end:
            gone += 1
        for row in range(gone, n_found):
            for column in range(4):
                found[row - gone, column] = found[row, column]
        n_found -= gone
    return n_found, n_pieces


@kernel("i8[:, ::1](u4[::1], i2[::1], i8[::1])")
def cut(text: Text, table: Info, limits: Wide) -> Wide:
    """Ends of the pieces, and the weight of all text up to there: int64 ``(1 + n_pieces, 2)``, the first
    row 0.
    """
    n = len(text)
    pieces = np.zeros((n * HEAVIEST // limits[_LEAST] + 2, 2), dtype=np.int64)
    n_pieces = 0
    found = np.empty((_MAX_FOUND, 4), dtype=np.int64)
    n_found = 0
    weight = 0
    gap_start = -1
    n_newlines = 1  # the text begins like a line
    has_cells = False
    in_heading = False
    full_stop = False
    index = 0
    while index < n:
        # Where a rule may matter: one by one, up to a visible character that says nothing.
        while index < n:
            info = int(table[text[index]])
            kind = info & KIND
            if kind & GAP:
                if gap_start < 0:
                    gap_start = index
                    weight += info & WEIGHT
                n_newlines += kind == NEWLINE
                has_cells |= kind == TAB
                index += 1
                continue
            is_heading = n_newlines > 0 and heading_at(text, index)
            strength = 0
            if gap_start >= 0 or full_stop:
                strength = strength_before(
                    text,
                    table,
                    index,
                    kind,
                    gap_start,
                    n_newlines,
                    has_cells,
                    full_stop,
                    in_heading,
                    is_heading,
                )
            if strength > 0:
                reached = weight
                if gap_start >= 0:
                    reached -= int(table[text[gap_start]]) & WEIGHT
                n_found, n_pieces = _end_pieces(
                    text, table, limits, found, n_found, pieces, n_pieces, reached
                )
                found[n_found, _AT] = index
                found[n_found, _BEFORE] = weight
                found[n_found, _STRENGTH] = strength
                found[n_found, _HASH] = -1
                n_found += 1
            if n_newlines > 0:
                in_heading = is_heading
                has_cells = False
                n_newlines = 0
            gap_start = -1
            has_cells |= kind == BAR
            full_stop = kind == FULL_STOP or (full_stop and kind == CLOSER)
            weight += info & WEIGHT
            index += 1
            if kind == PLAIN:
                break
        # Where none does.
        before = 0
        place, end = np.uint64(index), np.uint64(n)  # unsigned: Numba then looks for no negative index
        while place < end:
            info = int(table[text[place]])
            if info & RARE or info & before & GAP:
                break
            weight += info & WEIGHT
            before = info
            place += _ONE
        index = int(np.int64(place))
        if before & GAP:
            gap_start = start_of_gap(text, table, index)
    reached = weight
    if gap_start >= 0:
        reached -= int(table[text[gap_start]]) & WEIGHT
    _, n_pieces = _end_pieces(text, table, limits, found, n_found, pieces, n_pieces, reached)
    if n > 0:
        n_pieces += 1
        pieces[n_pieces, 0] = n
        pieces[n_pieces, 1] = weight
    return pieces[: n_pieces + 1].copy()


@kernel("i8[::1](u4[::1], i2[::1], i8[:, ::1])")
def _visible_weights(text: Text, table: Info, pieces: Wide) -> Wide:
    """What the pieces weigh without the white space at their ends, int64 ``(n_pieces,)``."""
    weights = pieces[1:, 1] - pieces[:-1, 1]
    for row in range(len(weights)):
        end = pieces[row + 1, 0]
        gap = max(start_of_gap(text, table, end), pieces[row, 0])
        if gap < end:
            weights[row] -= table[text[gap]] & WEIGHT
        first = table[text[pieces[row, 0]]]
        if first & GAP and weights[row] > 0:
            weights[row] -= first & WEIGHT
    return weights


def _limits(least: int, wanted: int, most: int, hashed_in_prose: int) -> Wide:
    return np.array([least * 1000, wanted * 1000, most * 1000, hashed_in_prose], dtype=np.int64)


_BLOCKS = _limits(MIN_TOKENS, WANTED_TOKENS, MAX_TOKENS, hashed_in_prose=_HASHED)
# None wanted larger, and little hashed: the fewer edits near a cut move it.
SUB_BLOCKS = _limits(SUB_MIN_TOKENS, SUB_MIN_TOKENS, SUB_MAX_TOKENS, hashed_in_prose=8)


def boundaries(text: str) -> Wide:
    """Character offsets where the blocks of ``text`` end: int64, strictly increasing, the last one
    ``len(text)``; empty for an empty text. The blocks tile the text.

    Every block but the last holds 128 to 512 tokens by ``estimate_tokens``. White space belongs to the
    block before it.
    """
    return cut(code_points(text), INFO, _BLOCKS)[1:, 0].copy()


def pieces(text: str) -> tuple[Wide, Wide]:
    """What ``boundaries`` gives, and ``estimate_tokens`` of every block stripped, int64."""
    characters = code_points(text)
    found = cut(characters, INFO, _BLOCKS)
    return found[1:, 0].copy(), -(-_visible_weights(characters, INFO, found) // 1000)


def sub_boundaries(text: str) -> Wide:
    """Character offsets where the sub-blocks of ``text`` end: as ``boundaries``, but 16 to 64 tokens.

    They are raw text: white space and numbers count when two are compared. An edit changes the sub-block
    that it falls into and now and then the next; text without newlines is cut like any other.
    """
    return cut(code_points(text), INFO, SUB_BLOCKS)[1:, 0].copy()


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has in a model's vocabulary, by script."""
    return -(-weigh(code_points(text), INFO) // 1000)


def code_points(text: str) -> Text:
    # NumPy copies them at several times the speed of encoding as UTF-32, half surrogate pairs included: they
    # are no characters, but a file name or a broken PDF can hold them.
    return np.array(text, dtype=f"U{len(text) or 1}").reshape(1).view(np.uint32)[: len(text)]
