"""How fast this machine is, learned from what it does."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from core.errors import DamagedState
from core.work import work

_WEIGHT = 0.2
"""Share of the newest measurement."""


class Rate:
    """Seconds for one unit (a token at the beginning of a prompt, a byte); None until measured."""

    def __init__(self) -> None:
        self.value: float | None = None

    def learn(self, seconds: float, units: float) -> None:
        if units > 0:
            measured = seconds / units
            self.value = measured if self.value is None else (1 - _WEIGHT) * self.value + _WEIGHT * measured


class Rates:
    """What computing and loading take, hence what is worth loading."""

    def __init__(self, attention: float = 0.0) -> None:
        """``attention``: ``ModelInfo.attention``."""
        self.attention = attention
        self.prefill_token_s = Rate()
        self.ram_byte_s = Rate()
        self.ssd_byte_s = Rate()
        self._all = (self.prefill_token_s, self.ram_byte_s, self.ssd_byte_s)

    def learn_prefill(self, seconds: float, start: int, n_tokens: int) -> None:
        self.prefill_token_s.learn(seconds, work(start, n_tokens, self.attention))

    def prefill_s(self, start: int, n_tokens: int) -> float:
        """Seconds for ``n_tokens`` behind ``start`` others; 0.0 until measured."""
        return (self.prefill_token_s.value or 0.0) * work(start, n_tokens, self.attention)

    def state(self) -> dict[str, NDArray[np.generic]]:
        """``values`` float64 ``(3,)``: seconds a token and a byte, NaN where unknown."""
        values = [rate.value for rate in self._all]
        return {"values": np.array([np.nan if value is None else value for value in values], np.float64)}

    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        """Take over what ``state`` returned. Raises DamagedState, with nothing changed."""
        values = np.asarray(state.get("values"))
        if values.shape != (len(self._all),) or values.dtype != np.float64 or np.any(values <= 0):
            raise DamagedState("The measured rates are damaged.", hint="They are measured again.")
        for rate, value in zip(self._all, values.tolist(), strict=True):
            rate.value = None if np.isnan(value) else value

    def saved_share(self, byte_s: Rate, n_bytes: int, n_tokens: int) -> float:
        """Share of prefilling that loading saves; 1 while nothing is known, 0 where it does not pay."""
        if byte_s.value is None or not self.prefill_token_s.value or not n_tokens:
            return 1.0
        return max(0.0, 1.0 - byte_s.value * n_bytes / (self.prefill_token_s.value * n_tokens))

    def loading_pays(self, byte_s: Rate, n_bytes: int, n_tokens: int) -> bool:
        """True if loading is expected to be quicker than prefilling, or nothing is known yet."""
        if byte_s.value is None or self.prefill_token_s.value is None:
            return True
        return byte_s.value * n_bytes < self.prefill_token_s.value * n_tokens
