"""How many leading samples are warm-up: those before two windows in a row look alike.

After pyperf's calibration of warm-ups, with quartiles (the median among them) for its mean and deviations: one sample
of 20 that is 50 times as long makes their mean 3 times as long, and would count 20 steady samples as warm-up, but
hardly moves their quartiles, which bound the spread, too. And a difference has to exceed the spread of the quieter
window: quartiles of 20 noisy samples differ by themselves.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

_WINDOW = 20
_SMALL = 0.05  # of the median: a difference that matters to no median of many samples, however still they are


def steady_from(times: ArrayLike) -> int | None:
    """How many leading samples, in the order of time, are warm-up; None while no steady state is seen (n < 40: always).

    The fewest w so that, of two windows of 20 samples from w on, the first sample is no outlier to the other 39 (above
    Q3 by more than 1.5 IQR) and the quartiles of one are those of the other, but for the smaller IQR of both. In either
    comparison 5 % of the median are allowed. A slow phase that is even for 40 samples passes for steady.
    """
    x = np.asarray(times, dtype=np.float64).ravel()
    if x.size < 2 * _WINDOW:
        return None
    steady = np.flatnonzero(_starts_usually(x) & _alike(x))
    return int(steady[0]) if steady.size else None


def _starts_usually(x: NDArray[np.float64]) -> NDArray[np.bool_]:
    both = sliding_window_view(x, 2 * _WINDOW)
    q1, median, q3 = np.quantile(both[:, 1:], [0.25, 0.5, 0.75], axis=1)
    return np.asarray(both[:, 0] <= q3 + np.maximum(1.5 * (q3 - q1), _SMALL * np.abs(median)))


def _alike(x: NDArray[np.float64]) -> NDArray[np.bool_]:
    quartiles = np.quantile(sliding_window_view(x, _WINDOW), [0.25, 0.5, 0.75], axis=1)
    earlier, later = quartiles[:, :-_WINDOW], quartiles[:, _WINDOW:]
    spread = np.minimum(earlier[2] - earlier[0], later[2] - later[0])
    allowed = np.maximum(spread, _SMALL * np.abs(later[1]))
    return np.asarray(np.all(np.abs(earlier - later) <= allowed, axis=0))
