"""Chapter 7: what may be said of two fabrics by the training that ran on both, and no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from reports import cells
from reports.beside import Match
from reports.exchanges import ONLY, metric_name
from reports.ratios import Ratio, side, speed, unjudged
from reports.summary import LAUNCHES_FOR_INTERVAL
from reports.units import MS, PERCENT

_LESS = "which it cannot by itself: exposed communication"
_LONGER = "exposed communication is longer, but not clearly more of the step:"
# By whether the slower fabric is above, and whether that is clear.
_SAID: Mapping[tuple[bool, bool], str] = MappingProxyType({
    (True, True): "THE SLOWER FABRIC COSTS TIME: exposed communication",
    (True, False): f"THE SLOWER FABRIC MAY COST TIME: {_LONGER}",
    (False, True): f"THE SLOWER FABRIC COSTS LESS, {_LESS}",
    (False, False): f"THE SLOWER FABRIC MAY COST LESS, {_LESS} is shorter, but not clearly less of the step:",
})  # fmt: skip


@dataclass(frozen=True)
class Trained:
    """Training on two fabrics, by an exchange that metrics name, or by the first, of which they have plain names."""

    match: Match
    exchange: str = ONLY

    def ratio(self, part: str) -> Ratio | None:
        """How many times better the faster fabric is."""
        slow, fast = self.match
        return speed(fast, slow, metric_name(self.exchange, part))

    @property
    def control(self) -> Ratio | None:
        """The same of the step that sends nothing."""
        slow, fast = self.match
        return speed(fast, slow, "step_noop")

    def has(self, part: str) -> bool:
        """Whether both fabrics tell it."""
        return all(metric_name(self.exchange, part) in s.metrics for s in self.match)

    def side(self, part: str) -> int | None:
        """Where the slower fabric's whole interval lies: 1 above the faster one's, -1 below it, 0 neither."""
        slow, fast = self.match
        return side(slow, fast, metric_name(self.exchange, part))

    @property
    def whole(self) -> int:
        """The same of whole steps, where the control does not differ."""
        step, control = self.ratio("step"), self.control
        if step is None or not step.beyond_one or control is None or control.beyond_one:
            return 0
        return 1 if step.value > 1 else -1

    @property
    def verdict(self) -> str:
        """What may be said of the fabric, and no more.

        Steps of two fabrics run minutes apart, and the machine may change meanwhile. The exposed communication is a
        difference to the step that sends nothing, taken step by step, so it is what is compared where there is one: as
        a time, and as a share of the step, which a slower machine does not stretch. Whole steps speak where the control
        does not differ. The range of a few launches says nothing: two of each lie apart by chance in a case of three.
        """
        step, control = self.ratio("step"), self.control
        if not self.has("exposed"):
            if control is not None and control.beyond_one:
                return "NO CONCLUSION: the step that sends nothing differs too."
            return difference(step, self.match[0].fabric)
        if why := unjudged(*self.match, metric_name(self.exchange, "exposed")):
            return f"NO CONCLUSION: exposed communication has {why}: {self.exposed}."
        time = self.side("exposed")
        if not time:
            return f"NO DIFFERENCE SHOWS in exposed communication: {self.exposed}."
        clear = time in (self.side("exposed_fraction"), self.whole)
        return f"{_SAID[time > 0, clear]} {self.exposed}."

    @property
    def exposed(self) -> str:
        """The exposed communication of both, as times and as shares, and their ratio where it has an interval."""
        ratio, names = self.ratio("exposed"), [metric_name(self.exchange, p) for p in ("exposed", "exposed_fraction")]
        times_told = " against ".join(cells.told(s, names[0], MS) for s in self.match)
        shares = [cells.told(s, names[1], PERCENT) for s in self.match if names[1] in s.metrics]
        part = f", {' against '.join(shares)} of the step" if shares else ""
        return f"{times_told}{f', {ratio.text}' if ratio and ratio.low is not None else ''}{part}"

    @property
    def step(self) -> str:
        """The ratio of whole steps, and what the control says of it."""
        step, control = self.ratio("step"), self.control
        if step is None:
            return ""
        n = dict.fromkeys(cells.samples(metric_name(self.exchange, "step"))(s) for s in self.match)
        told = f"Step {step.text} (n {', '.join(n)}, {step.basis})"
        if control is None:
            return f"{told}, without a control."
        also = ": the machine changed too, so the step's ratio is not the fabric's alone" if control.beyond_one else ""
        return f"{told}; control, the step that sends nothing, {control.text}{also}."


def difference(step: Ratio | None, slow: str) -> str:
    """What the ratio of whole steps says by itself."""
    if step is None or step.low is None or step.high is None:
        return "NO CONCLUSION: without an interval nothing can be claimed."
    if step.ranged:
        return f"NO CONCLUSION: {step.basis}, where a verdict takes {LAUNCHES_FOR_INTERVAL}: step {step.text}."
    low, high = (100 * (end - 1) for end in (step.low, step.high))
    if low > 0:
        return f"THE SLOWER FABRIC COSTS TIME: on {slow} the step is {low:.1f} to {high:.1f} % longer."
    if high < 0:
        return f"THE SLOWER FABRIC COSTS LESS, which it cannot by itself: {-high:.1f} to {-low:.1f} % shorter steps."
    return f"NO DIFFERENCE SHOWS: on {slow} the step is between {-low:.1f} % shorter and {high:.1f} % longer."
