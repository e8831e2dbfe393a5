"""Right-to-left text of a PDF, in the order in which it is read.

PDFium turns what was drawn from left to right around, which is right for nearly every program. Two things
it turns that were in reading order before: a glyph that stands for several letters, and a string whose
letters were drawn from right to left. Both show in where the letters stand.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

from core.ingest.columns import Line

_LETTERS = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
HAS_RTL = re.compile(f"[{_LETTERS}]")
_DIGITS = "\u0660-\u0669\u06f0-\u06f9"
# Letters with the marks, spaces and signs between them; digits are never turned.
_RUN = re.compile(f"(?![{_DIGITS}])[{_LETTERS}](?:[^\\w\n]*(?![{_DIGITS}])[{_LETTERS}])*")
_MIRRORED = str.maketrans("()[]{}<>«»", ")(][}{><»«")


def is_rtl(text: str) -> bool:
    """Whether most letters of the text are of a script that is read from right to left."""
    n_rtl = sum(unicodedata.bidirectional(character) in ("R", "AL") for character in text)
    n_ltr = sum(unicodedata.bidirectional(character) == "L" for character in text)
    return n_rtl > n_ltr


def in_logical_order(text: str, boxes: Sequence[Line]) -> str:
    """The text of one piece of a line, each character with its box, in reading order.

    Text that is in reading order already is given back as it is.
    """
    if not HAS_RTL.search(text):
        return text
    characters = _without_turned_glyphs(text, boxes)
    text = "".join(characters)
    out = list(characters)
    for run in _RUN.finditer(text):
        start, end = run.span()
        middles = [boxes[at].left + boxes[at].right for at in range(start, end) if _is_letter(characters[at])]
        to_the_right = sum(one < two for one, two in pairwise(middles))
        to_the_left = sum(one > two for one, two in pairwise(middles))
        if to_the_right > to_the_left:
            out[start:end] = [character.translate(_MIRRORED) for character in _turned(characters[start:end])]
    return "".join(out)


def _without_turned_glyphs(text: str, boxes: Sequence[Line]) -> list[str]:
    """The characters; those of one glyph, which share its box, in reading order."""
    out = list(text)
    start = 0
    for at in range(1, len(text) + 1):
        if at < len(text) and boxes[at] == boxes[start]:
            continue
        glyph = text[start:at]
        letters = "".join(character for character in glyph if _is_letter(character))
        if len(letters) > 1 and HAS_RTL.search(letters) and letters not in _ligatures():
            out[start:at] = out[start:at][::-1]
        start = at
    return out


def _turned(characters: Sequence[str]) -> list[str]:
    """Backwards, with the marks still after their letter."""
    clusters: list[list[str]] = []
    for character in characters:
        if clusters and unicodedata.combining(character):
            clusters[-1].append(character)
        else:
            clusters.append([character])
    return [character for cluster in reversed(clusters) for character in cluster]


def _is_letter(character: str) -> bool:
    return unicodedata.bidirectional(character) in ("R", "AL")


@cache
def _ligatures() -> frozenset[str]:
    """What PDFium makes of the characters for ligatures: letters in reading order already."""
    spans = (range(0xFB1D, 0xFE00), range(0xFE70, 0xFEFD))
    forms = (unicodedata.normalize("NFKC", chr(code)) for span in spans for code in span)
    letters = ("".join(filter(_is_letter, form)) for form in forms)
    return frozenset(form for form in letters if len(form) > 1)
