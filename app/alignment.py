"""Where a character of an answer's Markdown stands in the text that Qt shows. Pure."""

import html
from typing import Final

LOOKAHEAD: Final = 400
"""Characters of markup (a link's address) that may lie between two shown characters."""
_NEAR: Final = 4
_SURE: Final = 3


def align(raw: str, shown: str) -> list[int]:
    """For each character of ``raw`` its position in ``shown``, or -1 for markup that is not shown.

    Shown text is ``raw`` with markup left out, so walking both finds the way. White space is never
    matched: a line break in one is a space or a paragraph in the other.
    """
    places = [-1] * len(raw)
    at = 0
    for position, char in enumerate(shown):
        if char.isspace():
            continue
        found = _find(raw, at, shown, position)
        if found < 0:
            continue
        places[found] = position
        at = found + _width(raw, found, char)
    return places


def _find(raw: str, at: int, shown: str, position: int) -> int:
    """Where ``shown[position]`` continues in ``raw``, or -1: it stands only in what is shown."""
    char = shown[position]
    end = min(len(raw), at + LOOKAHEAD)
    skipped = 0
    for index in range(at, end):
        if raw[index].isspace():
            continue
        if (raw[index] == char or _entity(raw, index) == char) and (
            skipped <= _NEAR or _agree(raw, index, shown, position)
        ):
            return index
        skipped += 1
    return -1


def _agree(raw: str, index: int, shown: str, position: int) -> bool:
    return raw[index : index + _SURE] == shown[position : position + _SURE]


def _entity(raw: str, index: int) -> str:
    """The character that an entity at ``index`` stands for, or nothing."""
    if raw[index] != "&":
        return ""
    end = raw.find(";", index, index + 10)
    return html.unescape(raw[index : end + 1]) if end > 0 else ""


def _width(raw: str, index: int, char: str) -> int:
    return 1 if raw[index] == char else raw.index(";", index) + 1 - index


def shown_span(places: list[int], start: int, end: int) -> tuple[int, int] | None:
    """The stretch of shown text that ``raw[start:end]`` became, or None if nothing of it is shown."""
    seen = [place for place in places[max(0, start) : end] if place >= 0]
    return (seen[0], seen[-1] + 1) if seen else None


def utf16_offsets(text: str) -> list[int]:
    """Qt counts UTF-16 units: the position in Qt of each character of ``text``, and of its end."""
    offsets, at = [], 0
    for char in text:
        offsets.append(at)
        at += 2 if ord(char) > 0xFFFF else 1
    offsets.append(at)
    return offsets
