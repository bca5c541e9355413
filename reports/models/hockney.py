"""A piecewise line through times over sizes: Hockney's a + b m in each of at most four segments.

Where segments begin is found by dynamic programming over weighted squared errors, and their number by the Bayesian
information criterion. A library that changes its protocol may be faster beyond the edge than below: segments are
joined to nothing (Hockney, "The communication challenge for MPP", 1994; rendezvous as in LogGPS, Ino et al. 2001).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from microbench.stats import Interval
from reports.models.least_squares import from_sums, line
from reports.models.points import LEAST_ERROR, RESAMPLES, Points, interval
from reports.units import count

Float = NDArray[np.float64]
MOST_SEGMENTS, FEWEST_POINTS = 4, 4
STRONG = 10.0  # of the information criterion
MOST_ERROR = 0.10  # of a time: a model that is off by more anywhere does not fit


@dataclass(frozen=True)
class Segment:
    """a + b m for the sizes from ``first_bytes`` to ``last_bytes``, both measured.

    ``latency_s`` is a, ``s_per_byte`` is b, with bootstrap intervals. ``residual`` is the largest relative error of a
    size; ``worst`` that of one that the line did not see, at ``worst_bytes``, and ``typical`` the median of those.
    """

    first_bytes: float
    last_bytes: float
    latency_s: Interval
    s_per_byte: Interval
    residual: float
    typical: float
    worst: float
    worst_bytes: float
    n: int

    @property
    def fits(self) -> bool:
        """Whether no size is off by more than 10 %."""
        return self.worst <= MOST_ERROR

    @property
    def verdict(self) -> str:
        """``fits``, or ``does not fit`` with the size at which it is off by most."""
        off = f"off by {100 * self.worst:.0f} % at {self.worst_bytes:.0f} B of {count(self.n, 'size')}"
        return "fits" if self.fits else f"does not fit: {off}"

    @property
    def half_bytes(self) -> float:
        """The size at which half of the asymptotic rate is reached, a / b."""
        return self.latency_s.value / self.s_per_byte.value if self.s_per_byte.value > 0 else math.inf


@dataclass(frozen=True, eq=False)
class Hockney:
    """Segments, and where each but the first begins: the edge lies between ``low`` and ``high`` of its interval.

    ``held_out`` has the relative error of each size, signed, as predicted without it.
    """

    segments: tuple[Segment, ...]
    edges: tuple[Interval, ...]
    nbytes: Float
    held_out: Float

    @property
    def worst(self) -> float:
        """The largest relative error of a size that the fit did not see."""
        return float(np.abs(self.held_out).max())

    @property
    def typical(self) -> float:
        """The median of those errors."""
        return float(np.median(np.abs(self.held_out)))

    @property
    def fits(self) -> bool:
        """Whether every segment fits."""
        return all(s.fits for s in self.segments)

    @property
    def verdict(self) -> str:
        """``fits``, or the verdict of the segment that is off by most."""
        return max(self.segments, key=lambda s: s.worst).verdict

    def trusted(self, low: float, high: float) -> bool:
        """Whether every segment that sizes between these belong to fits."""
        first, last = self.segment(low), self.segment(high)
        return all(s.fits for s in self.segments if first.first_bytes <= s.first_bytes <= last.first_bytes)

    def time_s(self, nbytes: ArrayLike) -> Float:
        """The modelled time of sizes, within the segments' ranges or beyond."""
        m = np.asarray(nbytes, "f8")
        at = np.searchsorted([s.first_bytes for s in self.segments[1:]], m, side="right")
        a, b = (np.array([getattr(s, name).value for s in self.segments]) for name in ("latency_s", "s_per_byte"))
        return np.asarray(a[at] + b[at] * m)

    def segment(self, nbytes: float) -> Segment:
        """The segment that a size belongs to."""
        return [s for s in self.segments if s.first_bytes <= max(nbytes, self.segments[0].first_bytes)][-1]


def fit(points: Points, resamples: int = RESAMPLES, seed: int = 0) -> Hockney:
    """Fit, with the bootstrap of every parameter. ValueError for fewer than 4 sizes, which fix no line."""
    if len(points) < FEWEST_POINTS:
        raise ValueError(f"{count(len(points), 'size')}: a line takes {FEWEST_POINTS}")
    times = points.resampled(resamples, seed)
    costs = _costs(points, times)
    number = _number(costs[:1], len(points))
    starts = _starts(costs, number)
    cuts = (*starts[0].tolist(), len(points))
    lines = [line(points.nbytes[i:j], times[:, i:j], points.weights[i:j]) for i, j in pairwise(cuts)]
    off = _held_out(points, cuts)
    segments = tuple(_segment(points, i, j, a, b, off) for (i, j), (a, b)
                     in zip(pairwise(cuts), lines, strict=True))  # fmt: skip
    edges = tuple(_edge(points, starts[:, k]) for k in range(1, number))
    return Hockney(segments, edges, points.nbytes, off)


def _costs(points: Points, times: Float) -> Float:
    """The weighted squared error of the best line through sizes i ... j-1, of shape (rows, n + 1, n + 1).

    From sums over all sizes from each one on: the weights of large sizes are small, and would drown in sums from the
    first size on.
    """
    n, x, w = len(points), points.nbytes, points.weights
    parts = (w, w * x, w * x * x, w * times, w * x * times, w * times * times)
    s0, s1, s2, t0, t1, tt = (_from_each(part) for part in parts)
    costs = np.full((len(times), n + 1, n + 1), np.inf)
    for i in range(n - FEWEST_POINTS + 1):
        ends = slice(i + FEWEST_POINTS, None)
        sums = [total[..., i : i + 1] - total[..., ends] for total in (s0, s1, s2, t0, t1, tt)]
        costs[:, i, ends] = _error(*sums)
    return costs


def _from_each(values: Float) -> Float:
    """Sums from each entry to the last, and 0 beyond it."""
    rest = np.cumsum(values[..., ::-1], axis=-1)[..., ::-1]
    return np.concatenate([rest, np.zeros((*values.shape[:-1], 1))], axis=-1)


def _error(s0: Float, s1: Float, s2: Float, t0: Float, t1: Float, tt: Float) -> Float:
    """The weighted squared error of a line from weighted sums of 1, x, x x, y, x y and y y."""
    a, b = from_sums(s0, s1, s2, t0, t1)
    return np.maximum(tt - 2 * a * t0 - 2 * b * t1 + a * a * s0 + 2 * a * b * s1 + b * b * s2, 0.0)


def _paths(costs: Float, number: int) -> tuple[Float, NDArray[np.int64]]:
    """The least error of ``number`` segments through all sizes, and where each of them begins: (rows, number)."""
    best, came = costs[:, 0, :], []
    for _ in range(1, number):
        through = best[:, :, None] + costs
        came.append(through.argmin(axis=1))
        best = through.min(axis=1)
    rows, at = np.arange(len(costs)), np.full(len(costs), costs.shape[1] - 1)
    starts = np.zeros((len(costs), number), "i8")
    for k in range(number - 1, 0, -1):
        at = came[k - 1][rows, at]
        starts[:, k] = at
    return best[:, -1], starts


def _number(costs: Float, n: int) -> int:
    """How many segments the sizes speak for: the fewest whose BIC, n ln(SSE / n) + (3 k - 1) ln n, is near the least.

    Ten more are very strong evidence (Kass and Raftery 1995); less may be a few sizes that came out alike. Weights take
    errors to be 1 % at least, so a squared error below a hundredth of that tells nothing.
    """

    def criterion(k: int) -> float:
        error = max(float(_paths(costs, k)[0][0]), n * LEAST_ERROR)
        return n * math.log(error / n) + (3 * k - 1) * math.log(n)

    found = {k: criterion(k) for k in range(1, min(MOST_SEGMENTS, n // FEWEST_POINTS) + 1)}
    return min(k for k, value in found.items() if value <= min(found.values()) + STRONG)


def _starts(costs: Float, number: int) -> NDArray[np.int64]:
    return _paths(costs, number)[1]


def _segment(points: Points, i: int, j: int, a: Float, b: Float, held_out: Float) -> Segment:
    x, t, off = points.nbytes[i:j], points.time_s[i:j], np.abs(held_out[i:j])
    residual = float(np.abs((a[0] + b[0] * x) / t - 1).max())
    return Segment(float(x[0]), float(x[-1]), interval(a, j - i), interval(b, j - i), residual, float(np.median(off)),
                   float(off.max()), float(x[off.argmax()]), j - i)  # fmt: skip


def _edge(points: Points, starts: NDArray[np.int64]) -> Interval:
    """Where a segment begins: somewhere after the last size before it, and no later than its first."""
    found = interval(points.nbytes[starts], len(points))
    before = float(points.nbytes[int(starts[0]) - 1])
    low, high = (found.value if end is None else end for end in (found.low, found.high))
    return Interval(found.value, min(before, low), high, len(points))


def _held_out(points: Points, cuts: tuple[int, ...]) -> Float:
    """The relative error at each size of its segment's line through the others."""
    found = []
    for i, j in pairwise(cuts):
        x, t, n = points.nbytes[i:j], points.time_s[i:j], j - i
        without = points.weights[i:j] * (1 - np.eye(n))
        a, b = line(x, np.broadcast_to(t, (n, n)), without)
        found.append((a + b * x) / t - 1)
    return np.concatenate(found)


def around(edge: Interval, number: int = 6, step: int = 4) -> tuple[int, ...]:
    """Sizes to measure next for a sharper edge: evenly through where it may lie, in whole ``step`` bytes."""
    low, high = edge.low if edge.low is not None else edge.value / 2, edge.high or edge.value
    between = np.linspace(low, high, number + 2)[1:-1]
    return tuple(sorted({round(x / step) * step for x in between} - {int(low), int(high)}))
