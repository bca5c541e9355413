"""Is the step without an exchange a fair base? Pure arithmetic on times in ns, of shape (ranks, rounds).

No exchange touches the optimizer: it begins when backward has ended, and all gradients are there. Where it took clearly
longer in one kind of steps, something else had the processor there (a busy machine takes it from a rank that never
sleeps), and what exposed communication is measured against is wrong by about as much, and more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microbench.stats import quantile
from training.exchange.modes import NOOP

CLEAR_RATIO = 1.5
CLEAR_SHARE = 0.005
"""Of the step without an exchange: what less than that does to exposed communication is nothing to warn of."""
_FEWEST = 3  # rounds; fewer lie apart by chance
_MS = 1e-6


@dataclass(frozen=True)
class _Seen:
    """A median in ms, and what it lies within."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, rows: NDArray[np.int64]) -> _Seen:
        """Of the slowest rank's times; within their range where they are too few for an interval."""
        times = rows.max(axis=0) * _MS
        found = quantile(times)
        if found.low is None or found.high is None:
            return cls(found.value, float(times.min()), float(times.max()))
        return cls(found.value, found.low, found.high)

    def clearly_above(self, other: _Seen, least: float) -> bool:
        """Whether it is longer by a factor, by ``least`` ms, and by all that either lies within."""
        return self.low > other.high and self.value > CLEAR_RATIO * other.value and self.value - other.value >= least


def warnings(samples: Mapping[str, NDArray[np.int64]], modes: Sequence[str]) -> list[str]:
    """What is to be read beside exposed communication; one text for each way in which the base is wrong, if any."""
    if samples[f"{NOOP}.optimizer"].shape[1] < _FEWEST:
        return []
    base = _Seen.of(samples[f"{NOOP}.optimizer"])
    least = CLEAR_SHARE * _Seen.of(samples[f"{NOOP}.step"]).value
    own = {mode: _Seen.of(samples[f"{mode}.optimizer"]) for mode in modes}
    low = {mode: seen for mode, seen in own.items() if base.clearly_above(seen, least)}
    high = {mode: seen for mode, seen in own.items() if seen.clearly_above(base, least)}
    return [_told(base, found, way) for found, way in ((low, "LOW"), (high, "HIGH")) if found]


def _told(base: _Seen, found: Mapping[str, _Seen], way: str) -> str:
    values = [seen.value for seen in found.values()]
    span = dict.fromkeys(f"{value:.3g}" for value in (min(values), max(values)))
    off = max(abs(base.value - value) for value in values)
    return (
        f"the optimizer, which no exchange touches, took {base.value:.3g} ms in steps without an exchange and"
        f" {' to '.join(span)} ms in those by {', '.join(found)}: something else had the processor,"
        f" and exposed is too {way}, by about {off:.3g} ms in the optimizer alone"
    )
