"""What a case's number is held against: absolute bounds, or parts of a line rate, a baseline or a population."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from reports.claims import DISTURBED, Trial
from reports.comparison.alike import differences
from reports.comparison.sides import FEWEST_RUNS, Side, SideCase
from reports.limits.model import BASELINE, LINE_RATE, POPULATION, Bar, Criterion
from reports.summary import Summary
from reports.units import BITS, count, rate
from reports.view import View, links, setup, ways

_AGAINST_COMPUTE = ("overlap", "exposed", "availability", "dilation")
FEWEST_ALIKE = 5  # of a population: of fewer nobody can say which one is the odd one


class NoBar(Exception):
    """There is nothing to hold a number against; says why. The case is ``not measured``."""


@dataclass(frozen=True)
class Known:
    """What bounds may rest on beside the criterion: the run, its cases as a baseline has them, and the baseline."""

    v: View
    cases: dict[str, SideCase]
    baseline: Side | None = None


def bar(known: Known, criterion: Criterion, s: Summary, population: Sequence[Summary]) -> Bar:
    """The bounds for one case; ``population`` is all that the criterion judges. Raises NoBar."""
    if criterion.reference is None:
        return Bar(criterion.lower, criterion.upper)
    if criterion.reference == LINE_RATE:
        reference, basis = _line_rate(known.v, s)
    elif criterion.reference == BASELINE:
        reference, basis = _baseline(known, criterion.metric, s)
    elif criterion.reference == POPULATION:
        reference, basis = _population(known.v, criterion.metric, s, population)
    else:
        reference, basis = float(criterion.reference), "the reference"
    if reference <= 0:
        raise NoBar(f"{basis} is {reference:g}: a part of it says nothing")
    lower, upper = (None if part is None else part * reference for part in (criterion.lower, criterion.upper))
    return Bar(lower, upper, reference, basis)


def doubtful(known: Known, criterion: Criterion, s: Summary) -> str:
    """Why a case may not be judged, or nothing: an offload of which nothing is claimed, a baseline of too few runs."""
    if why := _unclaimed(known.v, criterion.metric, s):
        return why
    if criterion.reference != BASELINE or known.baseline is None:
        return ""
    runs = len(known.baseline.cases[s.id].metrics[criterion.metric].runs)
    return f"a baseline of {count(runs, 'run')}: {FEWEST_RUNS} or more are judged by" if runs < FEWEST_RUNS else ""


def _unclaimed(v: View, metric: str, s: Summary) -> str:
    """Why an overlap may not be judged, or nothing: as the report has it."""
    mode, _, what = metric.rpartition(".")
    if what == "net_gain":
        return Trial.of(v, s).claim(mode).why
    disturbed = Trial.of(v, s).disturbance(mode) if mode and what in _AGAINST_COMPUTE else ""
    return f"{DISTURBED}: {disturbed}" if disturbed else ""


def _line_rate(v: View, s: Summary) -> tuple[float, str]:
    """In bytes/s; both ways where both are counted, and all links that are used at once."""
    declared = v.rate(s.fabric)
    if not declared:
        raise NoBar(f"{s.fabric} declares no rate")
    factor = ways(s) * links(s)
    return declared * factor / BITS, f"the line rate {rate(declared)}" + (f" x {factor}" if factor > 1 else "")


def _baseline(known: Known, metric: str, s: Summary) -> tuple[float, str]:
    if known.baseline is None:
        raise NoBar("no baseline is given")
    case = known.baseline.cases.get(s.id)
    if case is None or metric not in case.metrics:
        raise NoBar(f"the baseline {known.baseline.name} has no {metric} of this case")
    if unlike := differences(case, known.cases[s.id]):
        raise NoBar(f"the baseline is not of its like: {'; '.join(unlike)}")
    found = case.metrics[metric]
    return found.value, f"the baseline's median of {count(len(found.runs), 'run')}"


def _population(v: View, metric: str, s: Summary, population: Sequence[Summary]) -> tuple[float, str]:
    """The median over cases that are alike in all but fabric and hosts, the fabrics of one kind and rate."""
    alike = [x for one in population if _like(v, one) == _like(v, s) and (x := one.value(metric)) is not None]
    if len(alike) < FEWEST_ALIKE:
        raise NoBar(
            f"{len(alike)} alike: a population takes {FEWEST_ALIKE} or more; give a reference, or use a baseline"
        )
    return median(alike), f"the median of {len(alike)} alike"


def _like(v: View, s: Summary) -> tuple[object, ...]:
    return (*setup(s), s.nbytes, s.ranks_per_host, v.fabrics.get(s.fabric, {}).get("kind"), v.rate(s.fabric))
