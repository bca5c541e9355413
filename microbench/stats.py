"""Statistics on plain arrays: no I/O, no MPI.

Quantiles follow the linear definition (Hyndman and Fan type 7). Intervals are exact order-statistic intervals:
they assume nothing about the distribution, and take samples for independent unless they are called a series.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from microbench.record import Better, Metric

LEVEL = 0.95
_SIGNIFICANT = 1.96  # standard errors
_FEWEST_FOR_DEPENDENCE = 20  # below it an autocorrelation is noise


@dataclass(frozen=True)
class Interval:
    """A point estimate with its two-sided interval; the ends are None where n is too small for one."""

    value: float
    low: float | None
    high: float | None
    n: int
    effective_n: int = 0

    def map(self, f: float, power: int = 1) -> Interval:
        """The interval of ``f * x**power``; a negative power swaps the ends."""
        first, last = (None if end is None else f * end**power for end in (self.low, self.high))
        low, high = (first, last) if power > 0 else (last, first)
        return Interval(f * self.value**power, low, high, self.n, self.effective_n)


@lru_cache(maxsize=512)
def order_ranks(n: int, q: float = 0.5, level: float = LEVEL) -> tuple[int, int] | None:
    """Ranks (l, u), counted from 1, so that [x(l), x(u)] holds quantile ``q`` with at least ``level``.

    l is the largest rank with P(K <= l-1) <= a/2, u the smallest with P(K <= u-1) >= 1-a/2, K ~ Bin(n, q).
    None where no such ranks exist.
    """
    tail = (1 - level) / 2
    k = np.arange(n + 1)
    log_choose = math.lgamma(n + 1) - _lgamma(k + 1) - _lgamma(n - k + 1)
    cdf = np.cumsum(np.exp(log_choose + k * math.log(q) + (n - k) * math.log1p(-q)))
    low = int(np.searchsorted(cdf, tail, side="right"))
    high = int(np.searchsorted(cdf, 1 - tail, side="left")) + 1
    return (low, high) if low >= 1 and high <= n else None


def _lgamma(x: NDArray[np.int_]) -> NDArray[np.float64]:
    return np.cumsum(np.log(np.maximum(np.arange(x.max() + 1) - 1, 1)))[x]


def quantile(samples: ArrayLike, q: float = 0.5, level: float = LEVEL, series: bool = False) -> Interval:
    """Quantile ``q`` of ``samples`` (any shape, n > 0) with its interval.

    A ``series`` is in the order of time, and its samples may depend on their neighbours: the ranks of its interval are
    those of :func:`effective_n` samples, at the same quantile positions.
    """
    given = np.asarray(samples, dtype=np.float64).ravel()
    if not given.size:
        raise ValueError("no samples")
    x = np.sort(given)
    n = effective_n(given, q) if series else x.size
    ranks = order_ranks(n, q, level)
    value = float(np.quantile(x, q))
    if ranks is None:
        return Interval(value, None, None, x.size, n)
    low = math.floor((ranks[0] - 1) * x.size / n)
    high = math.ceil(ranks[1] * x.size / n) - 1
    return Interval(value, float(x[low]), float(x[high]), x.size, n)


def effective_n(series: ArrayLike, q: float = 0.5) -> int:
    """How many independent samples tell as much of quantile ``q`` as this series does.

    n / (1 + 2 sum r_k), with r_k the autocorrelation at lag k of whether a sample is above the quantile (which is what
    the order statistics count), summed while it is significant: r_k > 1.96 / sqrt(n). At most n.
    """
    x = np.asarray(series, dtype=np.float64).ravel()
    above = (x > np.quantile(x, q)).astype(np.float64)
    above -= above.mean()
    power = float(above @ above)
    if x.size < _FEWEST_FOR_DEPENDENCE or not power:
        return x.size
    total = 0.0
    for lag in range(1, x.size // 4):
        r = float(above[:-lag] @ above[lag:]) / power
        if r <= _SIGNIFICANT / math.sqrt(x.size):
            break
        total += r
    return max(1, round(x.size / (1 + 2 * total)))


@lru_cache(maxsize=64)
def samples_needed(q: float = 0.5, level: float = LEVEL) -> int:
    """The smallest n for which :func:`quantile` has an interval."""
    n = 1
    while order_ranks(n, q, level) is None:
        n += max(1, n // 64)
    while n > 1 and order_ranks(n - 1, q, level) is not None:
        n -= 1
    return n


def metric(interval: Interval, unit: str, better: Better = "lower", q: float = 0.5) -> Metric:
    """A metric from an interval; its note says why where there is none.

    A percentile other than the median without an interval is n/a altogether: it would be little but the maximum.
    """
    fewer = f" (as {interval.effective_n})" if interval.effective_n not in (0, interval.n) else ""
    note = "" if interval.low is not None else f"n={interval.n}{fewer} < {samples_needed(q)}"
    value = interval.value if interval.low is not None or q == 0.5 else None
    return Metric(value, unit, interval.n, interval.low, interval.high, better, "measured", note)


def geometric_mean(ratios: ArrayLike) -> float:
    """The geometric mean of positive ratios."""
    return float(np.exp(np.mean(np.log(np.asarray(ratios, dtype=np.float64)))))


def tukey_counts(samples: ArrayLike) -> tuple[int, int]:
    """How many samples lie beyond Tukey's mild (1.5 IQR) and severe (3 IQR) fences; none is deleted."""
    x = np.asarray(samples, dtype=np.float64).ravel()
    q1, q3 = np.quantile(x, [0.25, 0.75])
    beyond = [int(np.sum((x < q1 - k * (q3 - q1)) | (x > q3 + k * (q3 - q1)))) for k in (1.5, 3.0)]
    return beyond[0], beyond[1]
