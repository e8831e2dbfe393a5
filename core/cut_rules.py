"""What the characters of a text are to the chunker, and how strong a cut between two of them is.

Numba looks at one file alone to see whether what it compiled from it is stale, and these kernels are compiled
into those of ``core.cdc``: who changes this module in a checkout touches that one too.
"""

import numpy as np
from numpy.typing import NDArray

from core.jit import kernel

# Weights are estimates in thousandths of a token. They were fitted to real counts over 320 documents:
# within 5 % for English prose, contracts, papers and filings (a Mistral vocabulary, 131,000 entries).

# What a character is: its weight in the lower bits, what kind it is in four bits above.
WEIGHT = (1 << 11) - 1
GAP = 1 << 11
"""White space."""
RARE = 1 << 12
"""A rule may have to be looked at."""
KIND = 15 << 11
PLAIN, CLOSER, BAR, STOP, FULL_STOP = 0, 1 << 13, RARE, RARE | 1 << 13, RARE | 1 << 14
SPACE, NEWLINE, TAB = GAP, GAP | RARE, GAP | RARE | 1 << 13
# STOP: ends a sentence where white space follows. FULL_STOP: ends it whatever follows (CJK, Arabic).

# How strong a cut is.
AT_LINE, AT_SENTENCE, AT_ROW, AT_PARAGRAPH, AT_HEADING = range(1, 6)

HEAVIEST = 2000

Text = NDArray[np.uint32]
"""Code points, uint32 ``(n,)``."""
Info = NDArray[np.int16]
"""One entry a code point, ``INFO``."""


def _info_table() -> Info:
    table = np.full(0x110000, HEAVIEST | PLAIN, dtype=np.int16)  # rare Chinese characters, emoji

    def mark(characters: str, kind: int, weight: int = 0) -> None:
        for character in characters:
            table[ord(character)] = (weight or table[ord(character)] & WEIGHT) | kind

    table[:0x80] = 800
    table[ord("a") : ord("z") + 1] = 120
    table[ord("A") : ord("Z") + 1] = 120
    table[ord("0") : ord("9") + 1] = 1000
    table[0x80:0x370] = 500  # Latin with accents; accents alone
    table[0x370:0x590] = 400  # Greek, Cyrillic, Armenian
    table[0x590:0x900] = 667  # Hebrew, Arabic
    table[0x900:0x2000] = 800  # Indic scripts, Thai, Georgian, Ethiopic, ...
    table[0x2000:0x2E80] = 1000  # typographic marks, symbols
    table[0x2E80:0x10000] = 1110  # Chinese, Japanese, Korean
    spaces = "".join(map(chr, range(0x2000, 0x200B)))
    mark("\x0b\x0c\r\x1c\x1d\x1e\x1f \u202f\u205f\u3000" + spaces, SPACE, 550)
    mark("\x85\xa0\u1680", SPACE)
    mark("\n\u2028\u2029", NEWLINE, 550)
    mark("\t", TAB, 550)
    mark("|", BAR)
    mark(".!?…", STOP)
    mark("\"')]»’”」』）", CLOSER)
    mark("؟۔।॥。！？｡", FULL_STOP)
    return table


INFO = _info_table()
"""All code points, so that no character needs a comparison first; what is used of it stays in the cache."""


@kernel("b1(i8)")
def joins(c: int) -> bool:
    """Whether a character belongs to the one before it and must not be cut off."""
    return (
        0x300 <= c < 0x370
        or 0x64B <= c < 0x660
        or 0x900 <= c < 0xE80  # Indic and Thai vowel signs among their letters: never cut inside a word
        or c in (0x200D, 0x3099, 0x309A)
        or 0xFE00 <= c < 0xFE10
        or 0x1F3FB <= c < 0x1F400
    )


@kernel("i8(u4[::1], i2[::1], i8, i8)")
def hash_after(text: Text, table: Info, at: int, hashed: int) -> int:
    """Hash of the first ``hashed`` visible characters from ``at`` on: equal text, equal hash."""
    value = np.uint64(0xCBF29CE484222325)
    seen = 0
    for index in range(at, min(at + 64, len(text))):
        c = text[index]
        visible = table[c] & GAP == 0
        hashed_on = (value ^ np.uint64(c)) * np.uint64(0x100000001B3)
        value = hashed_on if visible else value
        seen += visible
        if seen == hashed:
            break
    value ^= value >> np.uint64(32)
    value *= np.uint64(0xD6E8FEB86659FD93)
    value ^= value >> np.uint64(32)
    return int(value >> np.uint64(1))


@kernel("b1(u4[::1], i8)")
def heading_at(text: Text, at: int) -> bool:
    """Whether a Markdown heading begins at ``at``."""
    index = at
    while index < len(text) and index < at + 6 and text[index] == 35:  # '#'
        index += 1
    return index > at and index < len(text) and text[index] == 32


@kernel("b1(u4[::1], i8)")
def _is_list_item(text: Text, at: int) -> bool:
    """Whether a bullet or a list number with white space after it begins at ``at``."""
    index = at
    while index < len(text) and index < at + 3 and 48 <= text[index] <= 57:
        index += 1
    if index >= len(text):
        return False
    mark = text[index]
    if index > at:
        if mark not in (46, 41):  # '.', ')'
            return False
    elif mark not in (42, 43, 45, 0x2022, 0x2013, 0x25AA, 0x2023):  # '*', '+', '-', bullets
        return False
    return index + 1 < len(text) and text[index + 1] in (32, 9)


@kernel("b1(u4[::1], i2[::1], i8, i8)")
def _ends_sentence(text: Text, table: Info, end: int, following: int) -> bool:
    """Whether the characters before the gap ``end:following`` end a sentence.

    A full stop does not after an abbreviation (``Dr.``, ``e.g.``), an initial or a list number, nor
    before a small letter.
    """
    at = end - 1
    while at >= 0 and at > end - 4 and table[text[at]] & KIND == CLOSER:
        at -= 1
    if at < 0:
        return False
    c = text[at]
    if c in (33, 63, 0x2026):  # '!', '?', an ellipsis
        return True
    if c != 46:
        return False
    if 97 <= text[following] <= 122:
        return False
    start = at
    dotted = False
    while start > 0 and start > at - 5:
        before = text[start - 1]
        if table[before] & GAP or before in (34, 39, 40, 91):  # gap, quote, bracket
            break
        dotted = dotted or before == 46
        start -= 1
    length = at - start
    if dotted or length == 0:
        return not dotted
    first, last = text[start], text[at - 1]
    if length <= 3 and 65 <= first <= 90:
        return length > 1 and not 97 <= last <= 122
    if length <= 3 and 48 <= first <= 57 and 48 <= last <= 57:
        return start > 0 and text[start - 1] != 10
    return True


@kernel("i8(u4[::1], i2[::1])")
def weigh(text: Text, table: Info) -> int:
    """Estimated thousandths of a token. White space after white space weighs nothing."""
    weight = 0
    before = 0
    for index in range(len(text)):
        info = int(table[text[index]])
        weight += (info & WEIGHT) * (info & before & GAP == 0)
        before = info
    return weight


@kernel("i8(u4[::1], i2[::1], i8)")
def start_of_gap(text: Text, table: Info, end: int) -> int:
    """Where the white space before ``end`` begins; ``end`` if there is none."""
    while end > 0 and table[text[end - 1]] & GAP:
        end -= 1
    return end


@kernel("i8(u4[::1], i2[::1], i8, i8, i8, i8, b1, b1, b1, b1)")
def strength_before(
    text: Text,
    table: Info,
    index: int,
    kind: int,
    gap_start: int,
    n_newlines: int,
    has_cells: bool,
    full_stop: bool,
    in_heading: bool,
    is_heading: bool,
) -> int:
    """How strong a cut before the visible character ``index`` is; 0 where none may be."""
    if n_newlines == 0:
        if (full_stop and kind not in (CLOSER, FULL_STOP)) or (
            gap_start >= 0 and _ends_sentence(text, table, gap_start, index)
        ):
            return AT_SENTENCE
        return 0
    if index == 0 or in_heading:  # a heading stays with what it is the heading of
        return 0
    if is_heading:
        return AT_HEADING
    if n_newlines > 1:
        return AT_PARAGRAPH
    if has_cells or full_stop or _ends_sentence(text, table, gap_start, index) or _is_list_item(text, index):
        return AT_ROW
    return AT_LINE
