"""Whether two sets of launches differ: regressed, improved, equivalent or inconclusive.

The unit is the launch, since launches differ by more than their samples tell. All is by exact ranks: no distribution
is assumed but that the two sides' have one shape. A verdict needs the whole interval beyond, or within, a margin that
matters in practice; significance without the margin is no verdict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from microbench.record import Better
from microbench.stats.quantiles import LEVEL, Interval

POINT_TO_POINT_MARGIN = 0.01
COLLECTIVE_MARGIN = 0.03
FEWEST_LAUNCHES = 6
DIFFERENT_LEVEL = 0.995  # of 36 pairs of 6 and 6 launches, one may contradict the others
_MOST_EXACT = 400  # pairs of values; with more, the normal approximation is as good

Verdict = Literal["regressed", "improved", "equivalent", "inconclusive"]


@dataclass(frozen=True)
class Decision:
    """A verdict and what it rests on.

    ``ratio`` is new over old, with its interval at the usual level, NaN where it is not defined; ``a12`` as of
    :func:`a12`, NaN where a side is empty.
    """

    verdict: Verdict
    ratio: Interval
    a12: float
    reason: str


def hodges_lehmann(new: ArrayLike, old: ArrayLike, level: float = LEVEL) -> Interval:
    """By how much ``new`` lies above ``old``: the median of all pairwise differences, with its interval.

    The interval is distribution-free, [D(k), D(nm+1-k)] of the sorted differences with k the largest rank for which
    P(U <= k-1) <= a/2, U of Mann and Whitney (exact up to 400 pairs, then normal). The ends are None where the level
    cannot be reached: 3 against 3 at 95 %. n counts the values of both sides. Raises ValueError where a side is empty.
    """
    x, y = _sides(new, old)
    differences = np.sort(np.subtract.outer(x, y), axis=None)
    k = _rank(x.size, y.size, level)
    value, n = float(np.median(differences)), x.size + y.size
    if k < 1:
        return Interval(value, None, None, n)
    return Interval(value, float(differences[k - 1]), float(differences[-k]), n)


def a12(new: ArrayLike, old: ArrayLike) -> float:
    """P(new > old) + P(new = old) / 2, the effect size of Vargha and Delaney (2000): 0.5 where neither is greater."""
    x, y = _sides(new, old)
    sign = np.sign(np.subtract.outer(x, y))
    return float(np.mean((sign + 1) / 2))


def mann_whitney_p(new: ArrayLike, old: ArrayLike) -> float:
    """The two-sided p-value of Mann and Whitney's test, exact up to 400 pairs, then normal.

    Ties are conservative: all count for the side with fewer wins, so no way of breaking them gives a larger p-value.
    """
    x, y = _sides(new, old)
    over, under = int(np.sum(x[:, None] > y)), int(np.sum(x[:, None] < y))
    pairs = x.size * y.size
    u = min(min(over, under) + pairs - over - under, pairs // 2)
    return min(1.0, 2 * _lower_tail(u, x.size, y.size))


def decide(
    new: Sequence[float],
    old: Sequence[float],
    better: Better,
    margin: float,
    different_level: float = DIFFERENT_LEVEL,
    level: float = LEVEL,
) -> Decision:
    """The verdict on two sets of launches, one value (a launch's median) each.

    Different only if the interval of the ratio at ``different_level`` lies wholly beyond 1 +- ``margin``, equivalent if
    the one at ``level`` lies wholly within; inconclusive otherwise, with fewer than 6 launches on a side, with values
    that are not positive, and where neither more nor less is ``better``. The ratio is exp of the Hodges-Lehmann
    difference of logarithms.
    """
    ratio, effect = _ratio(new, old, level), a12(new, old) if len(new) and len(old) else math.nan
    why_not = _undecidable(new, old, better)
    if why_not:
        return Decision("inconclusive", ratio, effect, why_not)
    wide = _ratio(new, old, different_level)
    about = f"1 +- {margin:g}"
    if wide.low is not None and wide.high is not None and (wide.low > 1 + margin or wide.high < 1 - margin):
        verdict: Verdict = "regressed" if (wide.low > 1) == (better == "lower") else "improved"
        return Decision(verdict, ratio, effect, f"{_told(wide, different_level)} beyond {about}")
    if ratio.low is not None and ratio.high is not None and 1 - margin < ratio.low and ratio.high < 1 + margin:
        return Decision("equivalent", ratio, effect, f"{_told(ratio, level)} within {about}")
    neither = f"{_told(wide, different_level)} not beyond, {_told(ratio, level)} not within {about}"
    return Decision("inconclusive", ratio, effect, neither)


def _undecidable(new: Sequence[float], old: Sequence[float], better: Better) -> str:
    fewest = min(len(new), len(old))
    if fewest < FEWEST_LAUNCHES:
        return f"{fewest} launch{'es' if fewest != 1 else ''} < {FEWEST_LAUNCHES}"
    if not _positive(new, old):
        return "values that are not positive have no ratio"
    return "neither more nor less is better" if better == "none" else ""


def _positive(new: Sequence[float], old: Sequence[float]) -> bool:
    values = np.asarray([*new, *old], dtype=np.float64)
    return bool(np.all(np.isfinite(values) & (values > 0)))


def _ratio(new: Sequence[float], old: Sequence[float], level: float) -> Interval:
    if not len(new) or not len(old) or not _positive(new, old):
        return Interval(math.nan, None, None, len(new) + len(old))
    shift = hodges_lehmann(np.log(new), np.log(old), level)
    low, high = (None if end is None else math.exp(end) for end in (shift.low, shift.high))
    return Interval(math.exp(shift.value), low, high, shift.n)


def _told(interval: Interval, level: float) -> str:
    if interval.low is None:
        return f"no {100 * level:g} % interval"
    return f"{100 * level:g} % interval {interval.low:.4g} to {interval.high:.4g}"


def _sides(new: ArrayLike, old: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x, y = (np.asarray(side, dtype=np.float64).ravel() for side in (new, old))
    if not x.size or not y.size:
        raise ValueError("no values to compare")
    return x, y


@lru_cache(maxsize=64)
def _rank(n: int, m: int, level: float) -> int:
    """The largest k with P(U <= k-1) <= a/2; below 1 where there is none."""
    tail = (1 - level) / 2 * (1 + 1e-9)  # in floating point, 1 - 0.9 is less than 0.1
    if n * m <= _MOST_EXACT:
        cdf = np.cumsum(null_counts(n, m)) / math.comb(n + m, n)
        return int(np.searchsorted(cdf, tail, side="right"))
    normal = _normal(n, m)
    return math.floor(normal.inv_cdf(tail) + 0.5)


def _lower_tail(u: int, n: int, m: int) -> float:
    if n * m <= _MOST_EXACT:
        return float(np.sum(null_counts(n, m)[: u + 1])) / math.comb(n + m, n)
    return _normal(n, m).cdf(u + 0.5)


def _normal(n: int, m: int) -> NormalDist:
    return NormalDist(n * m / 2, math.sqrt(n * m * (n + m + 1) / 12))


@lru_cache(maxsize=64)
def null_counts(n: int, m: int) -> NDArray[np.int64]:
    """In how many of the C(n+m, n) orders of n and m values Mann and Whitney's U is 0 ... nm, n*m up to 400.

    The coefficients of prod_(i=1..n) (1 - x^(m+i)) / (1 - x^i).
    """
    counts = np.zeros(n * m + 1, dtype=np.int64)
    counts[0] = 1
    for i in range(1, n + 1):
        counts[m + i :] -= counts[: -(m + i)].copy()
        for start in range(i):
            counts[start::i] = np.cumsum(counts[start::i])
    counts.flags.writeable = False
    return counts
