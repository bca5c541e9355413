"""What the clock costs and how finely it counts, and how many operations a sample must hold because of that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from microbench.engine import Engine

_READINGS = 1000
_OVERHEADS, _TICKS = 20, 10  # an interval is at least so many of each: 5 % and a tenth
_LARGEST_BATCH = 1 << 12


@dataclass(frozen=True)
class Timer:
    """``overhead_ns``: the median time between two readings in a row; ``tick_ns``: the least step seen."""

    overhead_ns: float
    tick_ns: float

    @property
    def reach_ns(self) -> float:
        """The shortest interval that it times well: the overhead is below 5 % of it, the tick below a tenth."""
        return max(_OVERHEADS * self.overhead_ns, _TICKS * self.tick_ns)

    def batch(self, each_ns: float) -> int:
        """How many operations of ``each_ns`` a sample must hold: a power of two, 1 where one is long enough."""
        batch = 1
        while batch * each_ns < self.reach_ns and batch < _LARGEST_BATCH:
            batch *= 2
        return batch

    def method(self) -> dict[str, float]:
        """What a record says of it, in s."""
        return {"timer_overhead_s": self.overhead_ns * 1e-9, "timer_tick_s": self.tick_ns * 1e-9}


def measure_timer(engine: Engine) -> Timer:
    """Read the loop's clock in a row and see."""
    steps = np.diff(engine.program("stamp").run(_READINGS).ravel())
    rising = steps[steps > 0]
    return Timer(float(np.median(steps)), float(rising.min()) if rising.size else 1e9)
