"""Choosing the next token from logits."""

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
