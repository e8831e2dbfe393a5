"""How fast this machine is, learned from what it does."""

_WEIGHT = 0.2
"""Share of the newest measurement."""


class Rate:
    """Seconds for one unit (a token, a byte); None until measured."""

    def __init__(self) -> None:
        self.value: float | None = None

    def learn(self, seconds: float, units: int) -> None:
        if units > 0:
            measured = seconds / units
            self.value = measured if self.value is None else (1 - _WEIGHT) * self.value + _WEIGHT * measured


class Rates:
    """What decides whether a snapshot is worth loading."""

    def __init__(self) -> None:
        self.prefill_token_s = Rate()
        self.ram_byte_s = Rate()
        self.ssd_byte_s = Rate()

    def loading_pays(self, byte_s: Rate, n_bytes: int, n_tokens: int) -> bool:
        """True if loading is expected to be quicker than prefilling, or nothing is known yet."""
        if byte_s.value is None or self.prefill_token_s.value is None:
            return True
        return byte_s.value * n_bytes < self.prefill_token_s.value * n_tokens
