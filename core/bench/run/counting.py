"""An engine that computes nothing: a whole workload's tokens are counted in minutes.

What a policy orders, keeps and evicts depends on tokens and bytes, hardly on seconds; so the product's own
code runs over every question, and only the model's arithmetic is left out. A snapshot takes
``BYTES_PER_TOKEN``, and budgets shrink alike. Seconds are then tokens times what this machine was measured to
take for one, and the result says so (``counted``).
"""

import numpy as np

from core.engine.probe import ProbingEngine
from core.engine.protocol import CancelFlag, Snapshot
from core.types import Tokens

BYTES_PER_TOKEN = 64
"""Much less than KV takes, much more than what a snapshot's file holds beside it."""


class CountingEngine(ProbingEngine):
    """The tokenizer, name and size of a model. For ``SharedEngine`` while it recalls."""

    counts_only = False
    """False: as the real one, which is how it is measured first."""

    def prefill(self, tokens: Tokens, start: int, cancel: CancelFlag) -> None:
        if not self.counts_only:
            super().prefill(tokens, start, cancel)

    def save(self, start: int, end: int) -> Snapshot | None:
        if not self.counts_only:
            return super().save(start, end)
        return np.zeros(BYTES_PER_TOKEN * (end - start), np.uint8)

    def load(self, snapshot: Snapshot, start: int, end: int) -> bool:
        return True if self.counts_only else super().load(snapshot, start, end)

    def cut(self, n: int) -> None:
        if not self.counts_only:
            super().cut(n)

    def clear(self) -> None:
        if not self.counts_only:
            super().clear()
