"""Who arrives last, and whether one rank does so more often than chance has it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from microbench.stats.dependence import effective_count
from microbench.stats.quantiles import binomial_pmf


def last_arrivals(starts: ArrayLike) -> NDArray[np.int64]:
    """How often each rank was the last to start; ``starts`` of shape (ranks, iterations), on one clock.

    An iteration with a tie for the last place counts for nobody.
    """
    return np.asarray(_last(starts).sum(axis=1), dtype=np.int64)


def _last(starts: ArrayLike) -> NDArray[np.bool_]:
    """Which rank was last, of shape (ranks, iterations without a tie)."""
    times = np.asarray(starts)
    last = times == times.max(axis=0)
    return np.asarray(last[:, last.sum(axis=0) == 1])


def binomial_upper_p(count: int, n: int, p: float) -> float:
    """P(X >= count) for X ~ Bin(n, p), exactly."""
    if count <= 0:
        return 1.0
    if count > n or not 0 < p < 1:
        return 1.0 if count <= n and p >= 1 else 0.0
    return min(1.0, math.fsum(binomial_pmf(n, p)[count:]))


def benjamini_hochberg(p_values: Sequence[float], level: float) -> tuple[bool, ...]:
    """Which hypotheses are rejected so that at most ``level`` of the rejections are expected to be false.

    Those with a p-value up to the largest p(k) <= k / m * level, p(k) the k-th smallest of m (Benjamini and Hochberg
    1995).
    """
    m = len(p_values)
    passing = [p for k, p in enumerate(sorted(p_values), start=1) if p <= k / m * level]
    return tuple(bool(passing) and p <= passing[-1] for p in p_values)


def persistent(starts: ArrayLike, level: float = 0.01) -> tuple[int, ...]:
    """The ranks that are last more often than 1 in p times, by a binomial test each, at a false discovery rate.

    ``starts`` as for :func:`last_arrivals`. A rank that was last tends to be so in the next iteration too: the test
    counts as many iterations as are independent. With fewer than 2 ranks there are none.
    """
    last = _last(starts)
    if len(last) < 2 or not last.size:
        return ()
    p_values = [_p_of_chance(was_last, 1 / len(last)) for was_last in last]
    return tuple(rank for rank, late in enumerate(benjamini_hochberg(p_values, level)) if late)


def _p_of_chance(was_last: NDArray[np.bool_], p: float) -> float:
    n = effective_count(was_last)
    return binomial_upper_p(round(float(was_last.mean()) * n), n, p)
