"""When to stop sampling: looks at few counts, each at a level that lets all looks together hold the usual one.

Looking often and stopping at the first narrow interval picks intervals for being narrow, and more of those miss.
If all looks' intervals hold the truth at once with the usual level, so does the one at which sampling stops.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike, NDArray

from microbench.stats.quantiles import LEVEL, Interval, quantile

FIRST_LOOK = 30
_TOLERANCE = 1e-5  # of the boundary, in standard errors
_CLOSEST = 1.01  # ratio of two looks; closer ones are taken to be as far apart as this, which is on the safe side


def looks(first: int, last: int, ratio: float = 1.5) -> tuple[int, ...]:
    """The counts at which to look: ``first``, each next one ``ratio`` > 1 times as many, and ``last`` itself."""
    if first < 1 or last < 1 or ratio <= 1:
        raise ValueError(f"no looks from {first} to {last} by {ratio}")
    counts = []
    n = first
    while n < last:
        counts.append(n)
        n = math.ceil(n * ratio)
    return (*counts, last)


@lru_cache(maxsize=64)
def look_level(looks: tuple[int, ...], level: float = LEVEL) -> float:
    """The level of each single look at increasing counts so that all together hold ``level``; at least ``level``.

    That of Pocock's constant boundary c, P(max_k |W(n_k)| / sqrt(n_k) <= c) = level for a Brownian motion W, found by
    bisection; the probability by the recursive integration of Armitage, McPherson and Rowe (1969).
    """
    if not looks or looks[0] < 1 or any(b <= a for a, b in pairwise(looks)):
        raise ValueError(f"looks do not increase: {looks}")
    if len(looks) == 1:
        return level
    correlations = np.sqrt([1 / max(b / a, _CLOSEST) for a, b in pairwise(looks)])
    low, high = (-NormalDist().inv_cdf((1 - level) / 2 / k) for k in (1, len(looks)))  # one look, and Bonferroni
    nodes, weights = _half_range(math.ceil(12 + 1.5 * high / math.sqrt(1 - correlations.max() ** 2)))
    while high - low > _TOLERANCE:
        middle = (low + high) / 2
        if _stays_within(middle, correlations, nodes, weights) < level:
            low = middle
        else:
            high = middle
    return math.erf(high / math.sqrt(2))


def _half_range(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Nodes and weights of Gauss and Legendre for the integral from 0 to 1."""
    nodes, weights = leggauss(n)
    return (nodes + 1) / 2, weights / 2


def _stays_within(
    c: float, correlations: NDArray[np.float64], nodes: NDArray[np.float64], weights: NDArray[np.float64]
) -> float:
    """P(|Z_k| <= c for all k), Z_k standard normal, each with its correlation to the one before (a Markov chain).

    The density of Z_k among what never left carries over to the next k; it is even, so half of the range will do.
    """
    z, rho = c * nodes, correlations[:, None, None]
    spread = np.sqrt(1 - rho**2)
    kernels = sum(_density((z[:, None] - sign * rho * z) / spread) / spread for sign in (1, -1))
    density = 2 * _density(z)
    for kernel in np.asarray(kernels):
        density = kernel @ (density * weights * c)
    return float(np.sum(density * weights * c))


def _density(z: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)


def relative_half_width(interval: Interval) -> float | None:
    """Half of the interval over the absolute value; None where there is no interval, or the value is 0."""
    if interval.low is None or interval.high is None or not interval.value:
        return None
    return (interval.high - interval.low) / 2 / abs(interval.value)


@dataclass(frozen=True)
class Rule:
    """Stop at the first of ``looks`` with at least ``fewest`` samples whose half-width is within ``target`` (relative).

    ``level`` is that of every single look. At the last look sampling ends in any case.
    """

    target: float
    fewest: int
    looks: tuple[int, ...]
    level: float

    @classmethod
    def plan(cls, target: float, fewest: int, most: int) -> Rule:
        """Looks from 30 samples (or ``fewest``, if more) to ``most``; only at ``most`` if that is less."""
        counts = looks(max(FIRST_LOOK, fewest), most)
        return cls(target, fewest, counts, look_level(counts))

    def verdict(self, series: ArrayLike, q: float = 0.5) -> Interval:
        """Quantile ``q`` of the samples so far, in the order of time, with its interval at the level of a look."""
        return quantile(series, q, self.level, series=True)

    def enough(self, series: ArrayLike) -> bool:
        """Whether the samples so far, in the order of time, tell the median as well as asked for."""
        seen = self.verdict(series)
        width = relative_half_width(seen)
        return seen.n >= self.fewest and width is not None and width <= self.target
