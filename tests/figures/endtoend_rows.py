"""From a run of training to the rows that are printed and the figures that are judged. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from microbench.record import Record
from microbench.stats import quantile
from reports.exchanges import exchanges, metric_name, replayed
from reports.ratios import speed, within
from reports.summary import basis, behind_the_numbers
from tests.figures.launches import Measured, Values, measured
from tests.figures.table import Row, figure, shown

TRAIN = "train"
COSTS = "THE SLOWER FABRIC COSTS TIME"
_PARTS = ("step", "images_per_s", "data", "forward", "backward", "optimizer", "exposed", "exposed_fraction",
          "dilation", "cpu_per_byte", "imbalance", "efficiency")  # fmt: skip
_TOLD = {"exposed": ("exposed", 1e3, "ms"), "backward": ("backward", 1e3, "ms"), "dilation": ("dilation", 100, "%"),
         "cpu_per_byte": ("cpu", 1e9, "ns/byte")}  # fmt: skip


class Trained(Measured):
    """One model on one fabric, over launches."""

    @property
    def name(self) -> str:
        """What is trained and where, as figures name it."""
        return f"{self.summary.workload} on {self.summary.fabric}"

    def missing(self, *names: str) -> str:
        """Why there is nothing to judge of these metrics, or nothing."""
        if not self.summary.published:
            return f"{self.summary.status}: {self.summary.reason or 'disproved'}"
        absent = [name for name in names if not self.values.get(name)]
        return f"no launch has {', '.join(absent)}" if absent else ""

    def differences(self, more: str, less: str) -> Values:
        """One metric less another in each launch that has both."""
        known = [(r.metrics[more].value, r.metrics[less].value) for r in behind_the_numbers(self.records)
                 if {more, less} <= set(r.metrics)]  # fmt: skip
        return tuple(high - low for high, low in known if high is not None and low is not None)

    def told(self, name: str, scale: float, unit: str) -> str:
        """A metric with its interval: ``164.0 [144.1, 180.0] ms``."""
        value, ends = self.summary.value(name), self.summary.ends(name)
        if value is None:
            return "n/a"
        inside = f" [{ends[0] * scale:.4g}, {ends[1] * scale:.4g}]" if ends else " (no interval)"
        return f"{value * scale:.4g}{inside} {unit}"


def cases(records: Iterable[Record]) -> list[Trained]:
    """Every case of training in a run."""
    return [Trained(case.summary, case.values, case.records) for case in measured(records)
            if case.summary.benchmark == TRAIN]  # fmt: skip


def find(known: Sequence[Trained], model: str, fabric: str) -> Trained:
    """The case of a model on a fabric; ValueError where the run has not just one."""
    (found,) = [c for c in known if c.summary.workload.split(" ")[0] == model and c.summary.fabric == fabric]
    return found


def rows(known: Iterable[Trained]) -> list[Row]:
    """A row for every exchange of every case, in base units, medians over launches."""
    return [_row(case, mode) for case in known for mode in exchanges(case.summary)]


def _row(case: Trained, mode: str) -> Row:
    s = case.summary
    low, high = s.ends(metric_name(mode, "exposed")) or (None, None)
    return {
        "case": s.workload, "fabric": s.fabric, "exchange": mode, "no-op step": s.value("step_noop"),
        **{part: s.value(metric_name(mode, part)) for part in _PARTS}, "low": low, "high": high,
        "step alone": s.value("step_alone"), "peer": "replayed" if replayed(s) else "computes", "n": s.launches,
        "status": s.status,
    }  # fmt: skip


def ordered(known: Sequence[Trained], mode: str) -> list[Row]:
    """The same model from the slowest fabric to the fastest: what is exposed on each lies above that on the next."""
    return [_above(slow, fast, mode) for slow, fast in pairwise(known)]


def _above(slow: Trained, fast: Trained, mode: str) -> Row:
    metric, target = metric_name(mode, "exposed"), "> 0: disjoint intervals"
    name = f"{slow.summary.workload}: exposed by {mode}, s, lower end on {slow.summary.fabric} - upper end on " + (
        fast.summary.fabric
    )
    if why := slow.missing(metric) or fast.missing(metric):
        return figure(name, target, None, 0, False, why)
    above, below = slow.summary.ends(metric), fast.summary.ends(metric)
    told = " against ".join(case.told(metric, 1e3, "ms") for case in (slow, fast))
    n = min(slow.summary.launches, fast.summary.launches)
    if above is None or below is None:
        return figure(name, target, None, n, False, f"no interval: {told}")
    return figure(name, target, above[0] - below[1], n, above[0] > below[1], told)


def hidden(case: Trained, mode: str, limit: float) -> Row:
    """The median exposed communication as a part of the step, whichever its sign, which shall be below ``limit``."""
    metric, target = metric_name(mode, "exposed_fraction"), f"< {limit:g}"
    name = f"{case.name}: |exposed by {mode}| over the step"
    if why := case.missing(metric):
        return figure(name, target, None, 0, False, why)
    got = abs(case.middle(metric))
    return figure(name, target, got, case.summary.launches, got < limit, case.told(metric, 100, "%"))


def effect(slow: Trained, fast: Trained, mode: str) -> Row:
    """How many times longer the step is on the slower fabric: the whole interval shall lie above 1."""
    metric, target = metric_name(mode, "step"), "> 1, and its interval"
    name = f"{slow.summary.workload}: step by {mode} on {slow.summary.fabric} over that on {fast.summary.fabric}"
    if why := slow.missing(metric) or fast.missing(metric):
        return figure(name, target, None, 0, False, why)
    found = speed(fast.summary, slow.summary, metric)
    n = min(slow.summary.launches, fast.summary.launches)
    if found is None or found.low is None:
        return figure(name, target, None if found is None else found.value, n, False, "no interval")
    return figure(name, target, found.value, n, found.low > 1, f"{found.text}, {found.basis}")


def said(findings: Iterable[Mapping[str, Any]], model: str, slow: str, fast: str, expected: str | None) -> Row:
    """What the run's own report concludes of two fabrics; with ``expected`` None it is shown, whatever it is."""
    verdicts = [str(found["values"].get("verdict")) for found in findings if found["chapter"] == 7
                and (found["values"].get("slow"), found["values"].get("fast")) == (slow, fast)
                and str(found["values"].get("workload", "")).split(" ")[0] == model]  # fmt: skip
    name = f"{model}, {slow} against {fast}: what the report says"
    told = "; ".join(verdicts) or "nothing"
    if expected is None:
        return shown(name, None, len(verdicts), told)
    met = bool(verdicts) and all(verdict.startswith(expected) for verdict in verdicts)
    return figure(name, expected.lower(), float(met), len(verdicts), met, told)


def step_ratio(case: Trained, mode: str, over: str, limit: float, aim: float) -> Row:
    """One exchange's step over another's, launch by launch: the median shall not pass ``limit``."""
    top, bottom = (metric_name(each, "step") for each in (mode, over))
    name, target = f"{case.name}: step by {mode} over that by {over}", f"<= {limit:g} (aim {aim:g})"
    if why := case.missing(top, bottom):
        return figure(name, target, None, 0, False, why)
    found = within(case.summary, case.records, top, bottom)
    if found is None:
        return figure(name, target, None, 0, False, "no launch has both")
    told = "no interval" if found.low is None else f"[{found.low:.3f}, {found.high:.3f}] {found.basis}"
    spent = "; ".join(f"{each}: {spends(case, each)}" for each in (mode, over))
    return figure(name, target, found.value, case.summary.launches, found.value <= limit, f"{told}; {spent}")


def spends(case: Trained, mode: str) -> str:
    """Where an exchange's time goes."""
    parts = [f"{label} {case.middle(metric_name(mode, part)) * scale:.3g} {unit}"
             for part, (label, scale, unit) in _TOLD.items() if case.values.get(metric_name(mode, part))]  # fmt: skip
    return ", ".join(parts)


def gain(case: Trained, better: str, worse: str, least: int = 5) -> Row:
    """How much less one exchange leaves exposed than another, launch by launch: the interval shall lie above 0.

    The peer has to be replayed in every launch, and there shall be ``least`` launches.
    """
    names = [metric_name(each, "exposed") for each in (worse, better)]
    name = f"{case.name}: exposed by {worse} - that by {better}, s"
    target = f"> 0, and its interval, >= {least} launches"
    if why := case.missing(*names):
        return figure(name, target, None, 0, False, why)
    saved = case.differences(*names)
    if not saved:
        return figure(name, target, None, 0, False, "no launch has both")
    middle = quantile(saved)
    low, high = _ends(saved)
    inside = f"[{low:.4f}, {high:.4f}] {basis(len(saved))}" if len(saved) > 1 else "one launch, no interval"
    told = f"{inside}; " + " against ".join(case.told(each, 1e3, "ms") for each in names)
    stands_in = all(str(record.method.get("peer", "")).startswith("replayed") for record in case.records)
    told += "; peer replayed" if stands_in else "; THE PEER COMPUTES: not what was asked"
    return figure(name, target, middle.value, len(saved), low > 0 and stands_in and len(saved) >= least, told)


def _ends(values: Values) -> tuple[float, float]:
    """The interval of the median, or the range where launches are too few for one."""
    middle = quantile(values)
    if middle.low is None or middle.high is None:
        return min(values), max(values)
    return middle.low, middle.high
