"""Which characters of a page make up a text that was taken from it.

Text is cleaned and put into reading order before it is stored: hyphens at line ends are gone, ligatures
may be letters, columns stand one after the other. So both sides are folded to what is left when white
space, hyphens, accents and ligatures do not count, and compared by their longest common runs.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

_SEED = 6
"""Folded characters: a run is looked for by its first so many. Shorter texts must match whole."""
_MIN_RUN = 12
"""Folded characters. Shorter runs are too common to mean this place, unless they join another run."""
_MAX_HOLE = 24
"""Folded characters between two runs that belong to the text although the page has them otherwise; the
text must have about as many there.
"""
_MAX_SEEDS = 64
"""Of one seed so many places are tried: a page of dots has thousands."""


@dataclass(frozen=True, slots=True)
class _Run:
    """``length`` folded characters that are the same in the text (from ``start``) and on the page."""

    start: int
    on_page: int
    length: int

    @property
    def end(self) -> int:
        return self.on_page + self.length


class FoldedPage:
    """The characters of one page, folded; each knows which character of the page it is part of."""

    def __init__(self, characters: Sequence[str]) -> None:
        folded: list[str] = []
        self._sources: list[int] = []
        for index, character in enumerate(characters):
            for each in _folded(character):
                folded.append(each)
                self._sources.append(index)
        self._text = "".join(folded)
        self._seeds: dict[str, list[int]] = {}
        for at in range(len(self._text) - _SEED + 1):
            self._seeds.setdefault(self._text[at : at + _SEED], []).append(at)

    def find(self, wanted: str, around: str = "") -> list[int]:
        """Indices of the page's characters that make up ``wanted``, ascending; empty if it is not here.

        ``around`` is a longer text with ``wanted`` in it: of several places that one is meant which lies
        in it.
        """
        text = folded_text(wanted)
        if not text:
            return []
        near = self._whole(folded_text(around)) if around else set()
        whole = self._places(text)
        if whole:
            best = max(whole, key=lambda at: len(near.intersection(range(at, at + len(text)))))
            return self._characters(range(best, best + len(text)))
        return self._characters(self._in_runs(text))

    def _whole(self, text: str) -> set[int]:
        at = self._text.find(text)
        return set(range(at, at + len(text))) if at >= 0 else set(self._in_runs(text))

    def _places(self, text: str) -> list[int]:
        places: list[int] = []
        at = self._text.find(text)
        while at >= 0 and len(places) < _MAX_SEEDS:
            places.append(at)
            at = self._text.find(text, at + 1)
        return places

    def _in_runs(self, text: str) -> list[int]:
        """Positions on the page: the longest runs one after the other, and small holes between them."""
        taken: set[int] = set()
        last: _Run | None = None
        start = 0
        while start <= len(text) - _SEED:
            run = self._longest(text, start, taken, last)
            if run is None:
                start += 1
                continue
            if last is not None:
                hole, on_page = run.start - last.start - last.length, run.on_page - last.end
                if 0 < on_page <= min(_MAX_HOLE, 2 * hole + 2):
                    taken.update(range(last.end, run.on_page))
            taken.update(range(run.on_page, run.end))
            last = run
            start = run.start + run.length
        return sorted(taken)

    def _longest(self, text: str, start: int, taken: set[int], last: _Run | None) -> _Run | None:
        """The longest run from ``start``; of two as long, the one that goes on where the last one ended."""
        best: _Run | None = None
        best_rank = (0, False)
        for at in self._seeds.get(text[start : start + _SEED], ())[:_MAX_SEEDS]:
            if at in taken:
                continue
            length = _SEED
            while (
                start + length < len(text)
                and at + length < len(self._text)
                and at + length not in taken
                and text[start + length] == self._text[at + length]
            ):
                length += 1
            follows = last is not None and 0 <= at - last.end <= _MAX_HOLE
            rest = start + length == len(text) and last is not None
            if length < _MIN_RUN and not follows and not rest:
                continue
            if best is None or (length, follows) > best_rank:
                best, best_rank = _Run(start, at, length), (length, follows)
        return best

    def _characters(self, positions: Iterable[int]) -> list[int]:
        return sorted({self._sources[at] for at in positions})


def folded_text(text: str) -> str:
    """``text`` without what extraction changes: white space, hyphens, accents, ligatures, case."""
    return "".join(map(_folded, text))


@lru_cache(maxsize=4096)
def _folded(character: str) -> str:
    """Nothing, one or several characters. Compatibility forms become what they stand for."""
    return "".join(
        each
        for each in unicodedata.normalize("NFKD", character).casefold()
        if unicodedata.category(each) not in _UNCOUNTED
    )


_UNCOUNTED = frozenset(("Zs", "Zl", "Zp", "Cc", "Cf", "Cn", "Cs", "Co", "Pd", "Mn", "Me"))
"""White space, controls, hyphens and dashes, marks above and below letters."""
