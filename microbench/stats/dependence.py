"""Samples in the order of time depend on their neighbours: by how much, and what they amount to."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

_SIGNIFICANT = 1.96  # standard errors
_FEWEST = 20  # below it an autocorrelation is noise


def autocorrelation(series: ArrayLike, lag: int = 1) -> float:
    """The correlation of a series with itself ``lag`` >= 1 samples later.

    sum (x_i - m)(x_(i+lag) - m) / sum (x_i - m)^2, with m the mean of all. 0 for a constant series,
    and where the lag is as long as the series.
    """
    x = np.asarray(series, dtype=np.float64).ravel()
    x = x - x.mean()
    power = float(x @ x)
    return float(x[:-lag] @ x[lag:]) / power if power else 0.0


def effective_n(series: ArrayLike, q: float = 0.5) -> int:
    """How many independent samples tell as much of quantile ``q`` as this series does.

    n / (1 + 2 sum r_k), with r_k the autocorrelation at lag k of whether a sample is above the quantile (which is what
    the order statistics count), summed while it is significant: r_k > 1.96 / sqrt(n). At most n.
    """
    x = np.asarray(series, dtype=np.float64).ravel()
    if x.size < _FEWEST:
        return x.size
    return effective_count(x > np.quantile(x, q))


def effective_count(happened: ArrayLike) -> int:
    """How many independent trials tell as much of how often something happens as these, in the order of time, do.

    n / (1 + 2 sum r_k) as for :func:`effective_n`, r_k the autocorrelation of what happened.
    """
    x = np.asarray(happened, dtype=np.float64).ravel()
    if x.size < _FEWEST:
        return x.size
    r = _correlations(x - x.mean())[1 : x.size // 4]
    noise = np.flatnonzero(r <= _SIGNIFICANT / math.sqrt(x.size))
    total = float(r[: noise[0] if noise.size else r.size].sum())
    return max(1, round(x.size / (1 + 2 * total)))


def _correlations(centred: NDArray[np.float64]) -> NDArray[np.float64]:
    """The autocorrelation at every lag from 0 on; by Fourier transform, since long series may depend on long ones."""
    size = 1 << (2 * centred.size - 1).bit_length()  # so that the ends do not meet
    products = np.fft.irfft(np.abs(np.fft.rfft(centred, size)) ** 2, size)[: centred.size]
    return np.asarray(products / products[0] if products[0] > 0 else np.zeros_like(products))


def block_medians(series: ArrayLike) -> NDArray[np.float64]:
    """Medians of blocks just long enough to pass for independent: the unit that a bootstrap may draw.

    The length of a block doubles from 1 until the lag-1 autocorrelation of the medians is insignificant
    (|r| <= 1.96 / sqrt of their number), or fewer than 20 blocks would be left. The last block takes what is over.
    """
    x = np.asarray(series, dtype=np.float64).ravel()
    length, medians = 1, x
    while x.size // (2 * length) >= _FEWEST and _depends(medians):
        length *= 2
        medians = _medians(x, length)
    return medians


def _depends(x: NDArray[np.float64]) -> bool:
    return abs(autocorrelation(x)) > _SIGNIFICANT / math.sqrt(x.size)


def _medians(x: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    last = (x.size // length - 1) * length
    return np.append(np.median(x[:last].reshape(-1, length), axis=1), np.median(x[last:]))
