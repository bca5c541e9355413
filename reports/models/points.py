"""Measured times over sizes, with how well each is known, as fits take them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microbench.stats import Interval, percentile_ends
from reports.summary import Summary
from reports.view import View

Float = NDArray[np.float64]
RESAMPLES = 200
LEAST_ERROR = 0.01  # of a time: the best that a size's weight assumes it to be known
_TO_SIGMA = 1.959964  # half of a 95 % interval, in standard errors


@dataclass(frozen=True, eq=False)
class Points:
    """Times (s) of sizes (bytes, rising, each once), all arrays of shape (sizes,).

    ``half`` is half of each one's interval, 0 where it has none. ``launches`` holds each size's values by launch.
    """

    nbytes: Float
    time_s: Float
    half_s: Float
    launches: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        if not self.nbytes.shape == self.time_s.shape == self.half_s.shape:
            raise ValueError("every size needs a time and how well it is known")
        if np.any(np.diff(self.nbytes) <= 0):
            raise ValueError("sizes must rise, each of them once")

    def __len__(self) -> int:
        return self.nbytes.size

    @property
    def weights(self) -> Float:
        """One over the square of each error, which is taken to be 1 % at least: else one size decides alone."""
        return np.asarray(1 / np.maximum(self.half_s, LEAST_ERROR * self.time_s) ** 2)

    def where(self, chosen: NDArray[np.bool_]) -> Points:
        """The chosen sizes."""
        kept = tuple(found for found, keep in zip(self.launches, chosen.tolist(), strict=False) if keep)
        return Points(self.nbytes[chosen], self.time_s[chosen], self.half_s[chosen], kept)

    def resampled(self, resamples: int = RESAMPLES, seed: int = 0) -> Float:
        """Times as they might have come out, of shape (1 + resamples, sizes); the first row is as it did.

        Launches are drawn with replacement, the same ones for all sizes, where every size has two or more; else each
        time is drawn from its interval, as a normal.
        """
        rng = np.random.default_rng(seed)
        fewest = min((len(found) for found in self.launches), default=0)
        if fewest < 2 or len(self.launches) != len(self):
            noise = rng.standard_normal((resamples, len(self))) * self.half_s / _TO_SIGMA
            drawn = np.maximum(self.time_s + noise, 0.01 * self.time_s)
        else:
            u = rng.random((resamples, max(len(found) for found in self.launches)))
            columns = [_medians(np.asarray(found), u) for found in self.launches]
            drawn = np.stack(columns, axis=1)
        return np.concatenate([self.time_s[None, :], drawn])


def _medians(values: Float, u: Float) -> Float:
    """The median of each draw of launches; ``u`` tells where in the launches each of them lies."""
    return np.asarray(np.median(values[(u[:, : values.size] * values.size).astype(int)], axis=1))


def of_summaries(
    v: View, summaries: Iterable[Summary], name: str, read: Callable[[float], float] = lambda value: value
) -> Points:
    """The metric ``name`` of summaries that differ in size alone; those without a value or size are left out.

    ``read`` makes a time of a value, such as half of a round trip.
    """
    rows: dict[int, tuple[float, float, tuple[float, ...]]] = {}
    for s in summaries:
        found = s.value(name)
        if s.nbytes is None or found is None:
            continue
        low, high = s.ends(name) or (found, found)
        values = (r.metrics[name].value for r in v.launches(s) if name in r.metrics)
        told = tuple(read(x) for x in values if x is not None)
        rows[s.nbytes] = read(found), abs(read(high) - read(low)) / 2, told
    ordered = [(nbytes, *rows[nbytes]) for nbytes in sorted(rows)]
    columns = [np.array([row[i] for row in ordered], "f8") for i in range(3)]
    return Points(columns[0], columns[1], columns[2], tuple(row[3] for row in ordered))


def interval(drawn: Sequence[float] | Float, n: int) -> Interval:
    """A bootstrap's percentile interval; the first entry is the estimate itself, which the interval always holds."""
    values = np.asarray(drawn, "f8")
    value = float(values[0])
    rest = values[1:][np.isfinite(values[1:])]
    if not rest.size:
        return Interval(value, None, None, n)
    low, high = percentile_ends(rest)
    return Interval(value, min(low, value), max(high, value), n)
