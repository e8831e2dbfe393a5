"""What prefill takes, counted in tokens at the beginning of a prompt: attention makes later ones dearer."""

import math


def work(start: int, n: int, attention: float) -> float:
    """Of ``n`` tokens behind ``start`` others. ``attention``: ``ModelInfo.attention``."""
    return n * (1 + attention * (start + n / 2))


def tokens_within(most: float, start: int, attention: float) -> int:
    """How many tokens behind ``start`` others take no more ``work`` than ``most``; 0 for less than one."""
    if most <= 0:
        return 0
    first = 1 + attention * start
    if attention * most < 1e-6 * first:
        return int(most / first)
    return int((math.sqrt(first * first + 2 * attention * most) - first) / attention)
