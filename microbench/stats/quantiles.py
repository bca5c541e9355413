"""Quantiles with exact intervals.

Quantiles follow the linear definition (Hyndman and Fan type 7). Intervals are exact order-statistic intervals:
they assume nothing about the distribution, and take samples for independent unless they are called a series.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from microbench.stats.dependence import effective_n

LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """A point estimate with its two-sided interval at ``level``; the ends are None where n is too small for one."""

    value: float
    low: float | None
    high: float | None
    n: int
    effective_n: int = 0
    level: float = LEVEL

    def map(self, f: float, power: int = 1) -> Interval:
        """The interval of ``f * x**power``; a negative power swaps the ends."""
        first, last = (None if end is None else f * end**power for end in (self.low, self.high))
        low, high = (first, last) if power > 0 else (last, first)
        return Interval(f * self.value**power, low, high, self.n, self.effective_n, self.level)


@lru_cache(maxsize=512)
def order_ranks(n: int, q: float = 0.5, level: float = LEVEL) -> tuple[int, int] | None:
    """Ranks (l, u), counted from 1, so that [x(l), x(u)] holds quantile ``q`` with at least ``level``.

    l is the largest rank with P(K <= l-1) <= a/2, u the smallest with P(K <= u-1) >= 1-a/2, K ~ Bin(n, q).
    None where no such ranks exist.
    """
    tail = (1 - level) / 2
    cdf = np.cumsum(binomial_pmf(n, q))
    low = int(np.searchsorted(cdf, tail, side="right"))
    high = int(np.searchsorted(cdf, 1 - tail, side="left")) + 1
    return (low, high) if low >= 1 and high <= n else None


def binomial_pmf(n: int, p: float) -> NDArray[np.float64]:
    """P(K = k) for k = 0 ... n and K ~ Bin(n, p), 0 < p < 1."""
    k = np.arange(n + 1)
    log_choose = math.lgamma(n + 1) - _lgamma(k + 1) - _lgamma(n - k + 1)
    return np.asarray(np.exp(log_choose + k * math.log(p) + (n - k) * math.log1p(-p)))


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
        return Interval(value, None, None, x.size, n, level)
    low = math.floor((ranks[0] - 1) * x.size / n)
    high = math.ceil(ranks[1] * x.size / n) - 1
    return Interval(value, float(x[low]), float(x[high]), x.size, n, level)


@lru_cache(maxsize=64)
def samples_needed(q: float = 0.5, level: float = LEVEL) -> int:
    """The smallest n for which :func:`quantile` has an interval."""
    n = 1
    while order_ranks(n, q, level) is None:
        n += max(1, n // 64)
    while n > 1 and order_ranks(n - 1, q, level) is not None:
        n -= 1
    return n
