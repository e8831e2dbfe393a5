"""Means, percentiles and bootstrap intervals. Pure, and the same for the same numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
_SEED = 0
_TAILS = (2.5, 97.5)


def spread(values: Sequence[float]) -> dict[str, float | None]:
    """``mean``, ``p50``, ``p95``, ``p99`` and ``iqr`` (between the quartiles); None without values."""
    if not values:
        return dict.fromkeys(("mean", "p50", "p95", "p99", "iqr"))
    array = np.asarray(values, np.float64)
    low, middle, high, most, last = np.percentile(array, [25, 50, 75, 95, 99])
    return {
        "mean": float(array.mean()),
        "p50": float(middle),
        "p95": float(most),
        "p99": float(last),
        "iqr": float(high - low),
    }


def ratio(
    above: Sequence[float], below: Sequence[float], clusters: Sequence[str]
) -> tuple[float | None, float | None, float | None]:
    """Sum of ``above`` over sum of ``below``, and its 95 % interval: pairs resampled by cluster.

    Questions of one session depend on each other, so that sessions are drawn, not questions. All None where
    ``below`` is nothing; the interval is None with fewer than two clusters.
    """
    sums = _by_cluster(np.stack([np.asarray(above, np.float64), np.asarray(below, np.float64)]), clusters)
    total = sums.sum(axis=1)
    if not sums.size or total[1] <= 0:
        return None, None, None
    value = float(total[0] / total[1])
    if sums.shape[1] < 2:
        return value, None, None
    drawn = sums[:, _draws(sums.shape[1])].sum(axis=2)
    ratios = drawn[0] / np.where(drawn[1] > 0, drawn[1], np.nan)
    low, high = np.nanpercentile(ratios, _TAILS)
    return value, float(low), float(high)


def difference(
    differences: Sequence[float], clusters: Sequence[str]
) -> tuple[float | None, float | None, float | None]:
    """Mean of paired differences and its 95 % interval, resampled by cluster."""
    array = np.asarray(differences, np.float64)
    if not len(array):
        return None, None, None
    sums = _by_cluster(np.stack([array, np.ones_like(array)]), clusters)
    value = float(array.mean())
    if sums.shape[1] < 2:
        return value, None, None
    drawn = sums[:, _draws(sums.shape[1])].sum(axis=2)
    low, high = np.percentile(drawn[0] / drawn[1], _TAILS)
    return value, float(low), float(high)


def kinds(found: Mapping[str, Sequence[float]], base: str, clusters: Sequence[str]) -> dict[str, Any]:
    """Of each kind of prompt for the same questions the mean log-likelihood (nats a token), and its
    ``difference`` to the kind ``base`` with its 95 % interval.
    """
    made: dict[str, Any] = {}
    for name, values in found.items():
        changes = [one - other for one, other in zip(values, found[base], strict=True)]
        change, low, high = difference(changes, clusters)
        made[name] = {"logprob": sum(values) / len(values), "difference": change, "low": low, "high": high}
    return made


def _by_cluster(rows: NDArray[np.float64], clusters: Sequence[str]) -> NDArray[np.float64]:
    """float64 ``(n_rows, n_clusters)``: sums of ``rows`` ``(n_rows, n)`` over the members of each cluster."""
    _, numbers = np.unique(np.asarray(clusters, np.str_), return_inverse=True)
    n = int(numbers.max()) + 1 if len(numbers) else 0
    return np.stack([np.bincount(numbers, weights=row, minlength=n) for row in rows])


def _draws(n: int) -> NDArray[np.int64]:
    """int64 ``(RESAMPLES, n)``."""
    return np.random.default_rng(_SEED).integers(0, n, (RESAMPLES, n))
