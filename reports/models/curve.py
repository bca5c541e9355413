"""A measured time over sizes, read between them: what stands in for an allreduce of any size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reports.models.points import Float, Points
from reports.units import count, size


@dataclass(frozen=True, eq=False)
class Curve:
    """Times (s) of sizes (bytes), rising: straight in logarithms between two sizes.

    Beyond the largest size the last two sizes' rate holds on, which :meth:`stretched` tells. Sizes that :meth:`lacks`
    names it cannot tell: below the smallest one it gives that size's time, which may be many times too long, and of one
    size alone nothing is known of others. ValueError for no sizes, or for times that are not positive.
    """

    nbytes: Float
    time_s: Float

    def __post_init__(self) -> None:
        if not self.nbytes.size or np.any(self.time_s <= 0) or np.any(self.nbytes <= 0):
            raise ValueError("a curve needs sizes and times above 0")

    @classmethod
    def of(cls, points: Points) -> Curve:
        """The curve through measured points."""
        there = points.nbytes > 0
        return cls(points.nbytes[there], points.time_s[there])

    def __call__(self, nbytes: float) -> float:
        """The time of a size."""
        if nbytes <= self.nbytes[0]:
            return float(self.time_s[0])
        if nbytes > self.nbytes[-1]:
            return float(self.time_s[-1]) + (nbytes - float(self.nbytes[-1])) * self._last_s_per_byte()
        return math.exp(float(np.interp(math.log(nbytes), np.log(self.nbytes), np.log(self.time_s))))

    def lacks(self, sizes: Sequence[float]) -> str:
        """Why it cannot tell the times of these buckets, or nothing."""
        smallest = float(self.nbytes[0])
        if self.nbytes.size == 1 and any(nbytes != smallest for nbytes in sizes):
            return f"only {size(round(smallest))} was measured, and a curve takes two sizes"
        below = sum(nbytes < smallest for nbytes in sizes)
        least = f"{size(round(smallest))}, the smallest size measured"
        return f"{below} of {count(len(sizes), 'bucket')} below {least}" if below else ""

    def stretched(self, sizes: Sequence[float]) -> str:
        """How many of these buckets lie beyond what was measured, or nothing."""
        most = float(self.nbytes[-1])
        beyond = sum(nbytes > most for nbytes in sizes)
        largest = f"{size(round(most))}, the largest size measured: at its last rate"
        return f"{beyond} of {count(len(sizes), 'bucket')} beyond {largest}" if beyond else ""

    def _last_s_per_byte(self) -> float:
        if self.nbytes.size > 1:
            slope = float((self.time_s[-1] - self.time_s[-2]) / (self.nbytes[-1] - self.nbytes[-2]))
            if slope > 0:
                return slope
        return float(self.time_s[-1] / self.nbytes[-1])
