"""Ratios of two summaries, with the conservative interval of the two: low / high to high / low.

Two 95 % intervals hold together in at least 90 % of cases (Bonferroni), and so does the ratio's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from microbench.record import Record
from microbench.stats import quantile
from reports.summary import Summary, basis, ranged, too_few
from reports.units import times

HOW = "low/high to high/low of the two intervals: at least 90 % where both are 95 % intervals"


@dataclass(frozen=True)
class Ratio:
    """A ratio of medians; the ends are None where either side has none. ``basis`` says what they rest on.

    ``ranged`` is whether that is, on a side, the range of launches too few for an interval: no verdict rests on it.
    """

    value: float
    low: float | None
    high: float | None
    basis: str
    ranged: bool = False

    @property
    def interval(self) -> str:
        """``[1.10, 1.17]``, or ``no interval``."""
        if self.low is None or self.high is None:
            return "no interval"
        return f"[{self.low:.2f}, {self.high:.2f}]"

    @property
    def text(self) -> str:
        """``1.13x [1.10, 1.17]``."""
        return f"{times(self.value)} {self.interval}"

    @property
    def beyond_one(self) -> bool:
        """Whether the interval, and no mere range, leaves out 1."""
        return not self.ranged and self.low is not None and self.high is not None and not self.low <= 1 <= self.high

    @property
    def judged(self) -> bool:
        """Whether there is an interval that a verdict may rest on."""
        return self.low is not None and self.high is not None and not self.ranged


def ratio(top: Summary, bottom: Summary, name: str) -> Ratio | None:
    """``top`` over ``bottom`` in metric ``name``; None where a value is missing or not positive."""
    return _of((top, name), (bottom, name))


def _of(top: tuple[Summary, str], bottom: tuple[Summary, str]) -> Ratio | None:
    over, under = (s.value(name) for s, name in (top, bottom))
    if over is None or under is None or over <= 0 or under <= 0:
        return None
    above, below = (s.ends(name) for s, name in (top, bottom))
    launches = [s.spread[name].launches for s, name in (top, bottom)]
    rests = " and ".join(dict.fromkeys(map(basis, launches)))
    if above is None or below is None:
        return Ratio(over / under, None, None, "one side has no interval")
    high = above[1] / below[0] if below[0] > 0 else None
    return Ratio(over / under, None if high is None else above[0] / below[1], high, rests, any(map(ranged, launches)))


def speed(fast: Summary, slow: Summary, name: str) -> Ratio | None:
    """How many times better ``fast`` is: above 1 is faster, for times and rates alike."""
    metric = fast.metrics.get(name)
    higher = metric is not None and metric.better == "higher"
    return ratio(fast, slow, name) if higher else ratio(slow, fast, name)


def within(s: Summary, launches: Sequence[Record], top: str, bottom: str) -> Ratio | None:
    """One metric of a case over another that was measured interleaved with it; None as for :func:`ratio`.

    Over several launches the median of their own ratios, since what slows a launch slows both.
    """
    found = [(r.metrics[top].value, r.metrics[bottom].value) for r in launches if {top, bottom} <= set(r.metrics)]
    each = [over / under for over, under in found if over and under and over > 0 and under > 0]
    if len(each) < 2:
        return _of((s, top), (s, bottom))
    middle = quantile(each)
    low, high = (min(each), max(each)) if middle.low is None else (middle.low, middle.high)
    return Ratio(middle.value, low, high, basis(len(each)), ranged(len(each)))


def side(s: Summary, other: Summary, name: str) -> int | None:
    """Where the whole interval of a metric lies: 1 above the other's, -1 below it, 0 neither.

    None where either has no interval, or a mere range of a few launches.
    """
    one, two = s.interval(name), other.interval(name)
    if one is None or two is None:
        return None
    return (one[0] > two[1]) - (one[1] < two[0])


def unjudged(s: Summary, other: Summary, name: str) -> str:
    """Why no verdict may rest on a metric of two summaries, or nothing."""
    for launches in sorted(each.spread[name].launches for each in (s, other) if name in each.spread):
        if few := too_few(launches):
            return few
    return "no intervals to compare" if side(s, other, name) is None else ""
