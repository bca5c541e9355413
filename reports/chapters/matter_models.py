"""Chapter 7 at a glance: for each model a table of networks by point to point, allreduce and training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reports import beside, cells, tables
from reports.beside import Match
from reports.exchanges import exchanges, metric_name
from reports.ratios import Ratio, speed
from reports.summary import Summary
from reports.units import GBIT_SHORT, MS, PERCENT, US, Unit, rate, size, times
from reports.view import TRAINING, View, alone, grouped, setup, setup_text


@dataclass(frozen=True)
class Line:
    """One quantity of the slowest network and of another."""

    label: str
    match: Match
    metric: str
    unit: Unit

    @property
    def ratio(self) -> str:
        """How many times better the other network is: ``3.95x [3.90, 4.00]``."""
        slow, fast = self.match
        return told(speed(fast, slow, self.metric))

    @property
    def base(self) -> str:
        """The value on the slowest network, with its unit."""
        text = cells.value(self.metric, self.unit)(self.match[0])
        return f"{text} {self.unit.name}" if self.match[0].value(self.metric) is not None else text


def told(ratio: Ratio | None) -> str:
    """A ratio in a cell."""
    if ratio is None:
        return "-"
    return ratio.text if ratio.low is not None else f"{times(ratio.value)} (no interval)"


def glance(v: View) -> list[str]:
    """A table for every model that trained over several networks."""
    trained = [s for s in v.of(TRAINING) if not alone(s) and s.fabric in v.networks]
    groups = grouped(sorted(trained, key=lambda s: v.networks.index(s.fabric)), setup)
    return [_model(v, group) for group in groups.values() if len(group) > 1]


def _model(v: View, group: Sequence[Summary]) -> str:
    """Quantities down, networks across: values of the slowest, how many times better the others are."""
    slow = group[0]
    lines = {fast.fabric: list(_lines(v, slow, fast)) for fast in group[1:]}
    base = {line.label: line.base for found in lines.values() for line in found} | _exposed(slow)
    others = [
        (fast, {line.label: line.ratio for line in lines[fast.fabric]} | _exposed(fast, place=slow))
        for fast in group[1:]
    ]
    columns = [(_named(v, s), each) for s, each in [(slow, base), *others]]
    counts = cells.launch_counts(
        (s, line.metric) for found in lines.values() for line in found for s in line.match if line.metric in s.metrics
    )
    resting = f". Intervals: {cells.based(counts)}" if counts else ""
    heading = (f"{slow.workload or 'training'}, at a glance: {setup_text(slow)}; values on {slow.fabric}, and how many "
               f"times better another network is{resting}")  # fmt: skip
    return "\n\n".join([tables.prose(heading), *tables.fitted(columns)])


def _named(v: View, s: Summary) -> str:
    mark = "\nEMULATED" if s.emulated or s.fabric in v.emulated else ""
    return f"{s.fabric}\n{rate(v.rate(s.fabric))}{mark}"


def _lines(v: View, slow: Summary, fast: Summary) -> Iterator[Line]:
    names = slow.fabric, fast.fabric
    if found := beside.latency(v, *names):
        yield Line(f"latency, {size(found[0].nbytes)}", found, "time", US)
    if found := beside.stream(v, *names):
        yield Line(f"bandwidth, {size(found[0].nbytes)}", found, "bandwidth", GBIT_SHORT)
    both = [mode for mode in exchanges(slow) if mode in exchanges(fast)]
    matched = [found for mode in both if (found := beside.allreduce(v, *names, slow, mode))]
    for found in {found[0].id: found for found in matched}.values():
        yield Line(f"allreduce {_whose(found[0])}, {size(found[0].nbytes)}", found, "time", MS)
    for mode in both:
        yield Line(_of("step", mode), (slow, fast), metric_name(mode, "step"), MS)
    yield Line("no-op step (control)", (slow, fast), "step_noop", MS)


def _whose(s: Summary) -> str:
    return s.backend if s.algorithm in ("", "library", s.backend) else f"{s.backend} {s.algorithm}"


def _exposed(s: Summary, place: Summary | None = None) -> dict[str, str]:
    """Exposed communication as a part of the step: a value on every network, as its ratio may have no bounds."""
    given = [mode for mode in exchanges(place or s) if metric_name(mode, "exposed_fraction") in s.metrics]
    return {_of("exposed %", mode): cells.together(metric_name(mode, "exposed_fraction"), PERCENT)(s) for mode in given}


def _of(what: str, mode: str) -> str:
    return f"{what}, {mode}" if mode else what
