"""Weighted least squares with coefficients that are not negative: times are made of costs, none of which is a gain."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
MOST_COLUMNS = 4


def line(x: Float, y: Float, weights: Float) -> tuple[Float, Float]:
    """The a and b >= 0 of y = a + b x, each of shape (rows,), for ``y`` of shape (rows, n).

    ``weights`` are of shape (n,) or (rows, n). Where the best line has a negative part, that part is 0 and the other
    is the best without it, which is then the best of all that are allowed.
    """
    w = np.broadcast_to(weights, y.shape)
    return from_sums(*(part.sum(axis=1) for part in (w, w * x, w * x * x, w * y, w * x * y)))


def from_sums(s0: Float, s1: Float, s2: Float, t0: Float, t1: Float) -> tuple[Float, Float]:
    """The same from weighted sums of 1, x, x x, y and x y."""
    with np.errstate(divide="ignore", invalid="ignore"):
        det = s0 * s2 - s1 * s1
        a, b = (s2 * t0 - s1 * t1) / det, (s0 * t1 - s1 * t0) / det
        flat, through = t0 / s0, np.where(s2 > 0, t1 / s2, 0.0)
    rises, starts = np.isfinite(b) & (b > 0), np.isfinite(a) & (a >= 0)
    both = rises & starts
    return np.where(both, a, np.where(rises, 0.0, flat)), np.where(both, b, np.where(rises, through, 0.0))


def nonnegative(features: Float, y: Float, weights: Float) -> tuple[Float, Float]:
    """Coefficients >= 0 (rows, k) of ``features`` (n, k), and the weighted squared error (rows,), for ``y`` (rows, n).

    Of all subsets of columns the best whose plain solution is not negative: for a few columns exact, and many rows at
    once. ValueError for more columns than 4.
    """
    k = features.shape[1]
    if k > MOST_COLUMNS:
        raise ValueError(f"{k} columns: at most {MOST_COLUMNS}")
    root = np.sqrt(weights)
    scaled, target = features * root[:, None], y * root
    size = np.linalg.norm(scaled, axis=0)
    scaled = scaled / np.where(size > 0, size, 1.0)
    best, error = np.zeros((len(y), k)), (target**2).sum(axis=1)
    for columns in (c for r in range(1, k + 1) for c in combinations(range(k), r)):
        part = scaled[:, columns]
        found = target @ np.linalg.pinv(part).T
        rest = ((target - found @ part.T) ** 2).sum(axis=1)
        better = np.all(found >= 0, axis=1) & (rest < error)
        error = np.where(better, rest, error)
        chosen = np.zeros((len(y), k))
        chosen[:, columns] = found
        best = np.where(better[:, None], chosen, best)
    return best / np.where(size > 0, size, 1.0), error
