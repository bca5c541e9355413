"""A measured time over sizes, read between them: what stands in for an allreduce of any size."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reports.models.points import Float, Points


@dataclass(frozen=True, eq=False)
class Curve:
    """Times (s) of sizes (bytes), rising: straight in logarithms between two sizes.

    Below the smallest size it is that size's time; beyond the largest one the last two sizes' rate, or with one size
    its own, holds on. ValueError for no sizes, or for times that are not positive.
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

    def reaches(self, nbytes: float) -> bool:
        """Whether a size lies within what was measured."""
        return bool(self.nbytes[0] <= nbytes <= self.nbytes[-1])

    def _last_s_per_byte(self) -> float:
        if self.nbytes.size > 1:
            slope = float((self.time_s[-1] - self.time_s[-2]) / (self.nbytes[-1] - self.nbytes[-2]))
            if slope > 0:
                return slope
        return float(self.time_s[-1] / self.nbytes[-1])
