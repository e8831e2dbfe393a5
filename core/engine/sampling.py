"""Choosing the next token from logits."""

import re
from collections.abc import Sequence

import numpy as np

from core.engine.protocol import Logits
from core.types import SamplingOptions


class Sampler:
    """Greedy at temperature 0, else temperature and top-p; the seed decides every draw."""

    def __init__(self, options: SamplingOptions) -> None:
        self._options = options
        self._random = np.random.default_rng(options.seed)

    def pick(self, logits: Logits) -> int:
        """Index of the chosen token; ``logits`` is float32 ``(n_vocab,)`` and is not changed."""
        if self._options.temperature <= 0:
            return int(np.argmax(logits))
        scaled = logits.astype(np.float64) / self._options.temperature
        weights = np.exp(scaled - scaled.max())
        weights /= weights.sum()
        order = np.argsort(-weights, kind="stable")
        mass = np.cumsum(weights[order])
        # The smallest set whose mass reaches top_p; never empty.
        kept = order[: int(np.searchsorted(mass, self._options.top_p)) + 1]
        return int(self._random.choice(kept, p=weights[kept] / weights[kept].sum()))


_LONGEST_LOOP = 64
_LOOP_TOKENS = 36
_LOOP_TIMES = 3
_SHORTEST_LINE = 8
"""Letters; shorter lines may well be said three times (a table of yes and no)."""
_NO_LETTER = re.compile(r"[\W\d_]+")


def repeats_itself(tokens: Sequence[int]) -> bool:
    """True if the end of ``tokens`` is one piece said at least three times in a row, 36 tokens or more.

    Small models fall into such loops and never leave them.
    """
    n = len(tokens)
    for period in range(1, min(_LONGEST_LOOP, n // _LOOP_TIMES) + 1):
        length = max(_LOOP_TIMES * period, _LOOP_TOKENS)
        if length <= n and all(
            tokens[n - i] == tokens[n - i - period] for i in range(1, length - period + 1)
        ):
            return True
    return False


def repeats_lines(text: str) -> bool:
    """True if the last three whole lines say the same but for their numbers: a list that has run away."""
    whole = text[: text.rfind("\n") + 1].splitlines()
    last = [said for line in whole if (said := _NO_LETTER.sub("", line))][-_LOOP_TIMES:]
    return len(last) == _LOOP_TIMES and len(set(last)) == 1 and len(last[0]) >= _SHORTEST_LINE
