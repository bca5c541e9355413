"""The verdict on every criterion of some limits, from what a run has on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reports.comparison.sides import Side, of_run
from reports.limits import bars, quantities
from reports.limits.bars import Known, NoBar
from reports.limits.model import (
    NO_INTERVAL,
    Bar,
    Criterion,
    Judged,
    Judgement,
    Limits,
    Ruling,
    Verdict,
)
from reports.limits.select import Selected, gone_wrong, select
from reports.limits.words import line, note, where
from reports.summary import LAUNCHES_FOR_INTERVAL, Summary, basis
from reports.units import count
from reports.view import View

_ROUNDING = 1e-9  # a bound is inside, also where it is a part of a reference: 0.7 x 100 is not quite 70
_SOME = 3


def judge(v: View, limits: Limits, baseline: Side | None = None) -> Judgement:
    """Judge all launches of every case together, never the last or the best."""
    known = Known(v, dict(of_run(v, "").cases), baseline)
    rulings = tuple(_rule(known, criterion) for criterion in limits.criteria)
    return Judgement(limits, rulings, "" if baseline is None else baseline.name)


def _rule(known: Known, criterion: Criterion) -> Ruling:
    found = select(known.v, criterion)
    cases = [_judged(known, criterion, s, found.judged) for s in found.judged]
    cases += [_absent(criterion, case, why) for case, why in found.absent]
    return Ruling(criterion, tuple(cases) or (_nothing(criterion, found),), found.left_out)


def _absent(criterion: Criterion, case: str, why: str) -> Judged:
    return Judged("not measured", f"{criterion.metric} of {case}: not measured: {why}", case, reason=why)


def _nothing(criterion: Criterion, found: Selected) -> Judged:
    """The verdict where there is nothing to judge."""
    why = "no case on disk is what it selects"
    if found.left_out:
        told = "; ".join(dict.fromkeys(out.reason for out in found.left_out[:_SOME]))
        why = f"all {count(len(found.left_out), 'case')} that it selects are left out ({told})"
    return Judged("not measured", f"{criterion.metric}: not measured: {why}", reason=why)


def _judged(known: Known, criterion: Criterion, s: Summary, population: Sequence[Summary]) -> Judged:
    case, metric = _blank(known.v, criterion, s), s.metrics.get(criterion.metric)
    if metric is None or metric.value is None:
        why = f"no {criterion.metric} was measured" if metric is None else metric.note or "no value"
        found = replace(case, reason=why)
    elif criterion.unit and quantities.UNITS[criterion.unit][0] != metric.unit:
        found = replace(case, reason=f"it is in {metric.unit}, the limit in {criterion.unit}")
    else:
        try:
            bar = bars.bar(known, criterion, s, population)
            found = _verdict(known, criterion, s, replace(case, bar=bar), metric.value, bar)
        except NoBar as error:
            found = replace(case, reason=str(error))
    found = replace(found, note=note(found))
    return replace(found, text=line(found, criterion, known.v))


def _blank(v: View, criterion: Criterion, s: Summary) -> Judged:
    metric, ends = s.metrics.get(criterion.metric), interval(v, s, criterion.metric)
    low, high, rests = ends if ends else (None, None, "no interval")
    return Judged(
        "not measured", "", s.id, where(s),
        value=None if metric is None else metric.value, low=low, high=high, n=0 if metric is None else metric.n,
        unit="" if metric is None else metric.unit, basis=rests, records=tuple(r.launch for r in v.launches(s)),
    )  # fmt: skip


def interval(v: View, s: Summary, name: str) -> tuple[float, float, str] | None:
    """The interval that a verdict rests on, and on what it rests itself; None where a launch has none.

    From six launches on, that of the median over launches. Of fewer, everything from the lowest end of a launch's own
    interval to the highest: their range alone is narrower than an interval.
    """
    metric = s.metrics.get(name)
    launches = [m for r in v.launches(s) if (m := r.metrics.get(name)) is not None and m.value is not None]
    if metric is None or metric.value is None or not launches:
        return None
    if len(launches) >= LAUNCHES_FOR_INTERVAL:
        return None if metric.low is None or metric.high is None else (metric.low, metric.high, basis(len(launches)))
    ends = [(m.low, m.high) for m in launches if m.low is not None and m.high is not None]
    if len(ends) < len(launches):
        return None
    rests = basis(1) if len(launches) == 1 else f"intervals of {len(launches)} launches together"
    return min(low for low, _ in ends), max(high for _, high in ends), rests


def _verdict(known: Known, criterion: Criterion, s: Summary, case: Judged, value: float, bar: Bar) -> Judged:
    """The verdict by the interval, and what is against taking it for one."""
    low, high = (value, value) if case.low is None or case.high is None else (case.low, case.high)
    found, reason = _by_interval(low, high, bar, criterion.warn)
    if case.low is None and NO_INTERVAL not in criterion.judge:
        why = "no interval: nothing tells how sure the value is"
        return replace(case, verdict="inconclusive", reason=why, again=True)
    if why := bars.doubtful(known, criterion, s):
        return replace(case, verdict="inconclusive", reason=why)
    if found == "pass" and (wrong := gone_wrong(known.v, s)):
        return replace(case, verdict="not measured", reason=f"what was measured passes, but {wrong}")
    unsure = found == "fail" and len(case.records) < LAUNCHES_FOR_INTERVAL
    return replace(case, verdict=found, reason=reason, again=unsure or found == "inconclusive")


def _by_interval(low: float, high: float, bar: Bar, warn: float) -> tuple[Verdict, str]:
    """``pass`` where all of it is inside, ``fail`` where all of it is beyond a bound by more than ``warn`` of it."""
    lower = -float("inf") if bar.lower is None else bar.lower - _ROUNDING * abs(bar.lower)
    upper = float("inf") if bar.upper is None else bar.upper + _ROUNDING * abs(bar.upper)
    if lower <= low and high <= upper:
        return "pass", "inside"
    if high < lower - warn * abs(bar.lower or 0.0):
        return "fail", "below the lower limit"
    if low > upper + warn * abs(bar.upper or 0.0):
        return "fail", "above the upper limit"
    across = "the lower limit" if low < lower else "the upper limit"
    beyond = high < lower or low > upper
    return "inconclusive", f"beyond {across} by less than {100 * warn:g} %" if beyond else f"across {across}"
