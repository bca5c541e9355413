"""Two-level bootstrap: launches are drawn with replacement, then blocks within each drawn launch.

It shows what both levels add to the spread of a median over launches. Below about 10 launches a percentile bootstrap
is narrower than its level says (draws with replacement see too little of the spread of a few), so intervals that are
printed over launches use order statistics, and comparisons use exact ranks (:mod:`microbench.stats.compare`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from microbench.stats.quantiles import LEVEL, Interval

RESAMPLES = 2000


def two_level(
    launches: Sequence[ArrayLike], resamples: int = RESAMPLES, seed: int = 0, level: float = LEVEL
) -> Interval:
    """The median over launches of launch medians, with its percentile interval; no interval below 2 launches.

    A launch is an array of block medians or of independent samples. n counts samples, ``effective_n`` launches.
    Below about 10 launches the interval is narrower than ``level`` says. Raises ValueError where there are no samples.
    """
    sides = [_arrays(launches)]
    return _interval(_median(sides[0]), sides, _drawn(sides[0], resamples, np.random.default_rng(seed)), level)


def two_level_ratio(
    new: Sequence[ArrayLike],
    old: Sequence[ArrayLike],
    resamples: int = RESAMPLES,
    seed: int = 0,
    level: float = LEVEL,
) -> Interval:
    """The ratio of the medians, new over old, of :func:`two_level`; both sides are drawn independently.

    For positive samples only: raises ValueError for others. No interval where a side has fewer than 2 launches;
    ``effective_n`` counts the launches of the side with fewer.
    """
    sides = [_arrays(new), _arrays(old)]
    if any(launch[0] <= 0 for side in sides for launch in side):
        raise ValueError("a ratio of medians needs positive samples")
    rng = np.random.default_rng(seed)
    drawn = [_drawn(side, resamples, rng) for side in sides]
    return _interval(_median(sides[0]) / _median(sides[1]), sides, drawn[0] / drawn[1], level)


def _arrays(launches: Sequence[ArrayLike]) -> list[NDArray[np.float64]]:
    """The launches' samples, each sorted."""
    found = [np.sort(np.asarray(launch, dtype=np.float64), axis=None) for launch in launches]
    if not found or not all(launch.size for launch in found):
        raise ValueError("no samples")
    return found


def _median(launches: list[NDArray[np.float64]]) -> float:
    return float(np.median([np.median(launch) for launch in launches]))


def _interval(
    value: float, sides: list[list[NDArray[np.float64]]], drawn: NDArray[np.float64], level: float
) -> Interval:
    n, launches = sum(launch.size for side in sides for launch in side), min(len(side) for side in sides)
    if launches < 2:
        return Interval(value, None, None, n, launches)
    return Interval(value, *percentile_ends(drawn, level), n, launches)


def percentile_ends(drawn: NDArray[np.float64], level: float = LEVEL) -> tuple[float, float]:
    """The ends of the percentile interval of what was drawn."""
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _drawn(launches: list[NDArray[np.float64]], resamples: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """The median over launches of each resample."""
    chosen = rng.integers(len(launches), size=(resamples, len(launches)))
    medians = np.empty(chosen.shape)
    for which, ordered in enumerate(launches):
        here = chosen == which
        medians[here] = _resampled_medians(ordered, int(here.sum()), rng)
    return np.asarray(np.median(medians, axis=1))


def _resampled_medians(ordered: NDArray[np.float64], times: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Medians of ``times`` resamples of sorted values, without drawing the resamples.

    n draws from n sorted values are x[floor(n u)] for n uniform u, so the k-th smallest draw is that of the k-th
    smallest u, which is Beta(k, n-k+1); the next u is the least of the n-k that are uniform above it.
    """
    n = ordered.size
    k = (n + 1) // 2
    u = rng.beta(k, n - k + 1, size=times)
    middle = ordered[np.minimum((n * u).astype(np.int64), n - 1)]
    if n % 2:
        return middle
    following = 1 - (1 - u) * rng.random(times) ** (1 / (n - k))
    return (middle + ordered[np.minimum((n * following).astype(np.int64), n - 1)]) / 2
