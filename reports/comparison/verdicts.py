"""Whether each metric of two sides improved, regressed or stayed the same.

The launch is the unit. A metric is called different only if all of this holds:

- the interval of the ratio of medians, by a two-level bootstrap over launches and the samples within them, lies wholly
  beyond a margin, which is how far the baseline's own runs lie apart (A against A), and no less than 1 % point to point
  and 3 % elsewhere;
- the exact test of Mann and Whitney rejects that the launches differ by no more than the margin, at a false discovery
  rate of 5 % over all metrics compared (Benjamini and Hochberg 1995). Where nothing differs, at most 1 comparison of
  two runs in 20 calls anything different; a bootstrap of few launches alone would do so more often.

It is the same only if both that interval and the exact one of the Hodges-Lehmann ratio lie within the margin.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from microbench.stats import (
    COLLECTIVE_MARGIN,
    FEWEST_LAUNCHES,
    POINT_TO_POINT_MARGIN,
    Decision,
    Interval,
    a12,
    benjamini_hochberg,
    decide,
    mann_whitney_p,
    two_level_ratio,
)
from reports.comparison.alike import Pairing, words
from reports.comparison.sides import Series, SideCase
from reports.view import POINT_TO_POINT

Change = Literal["regressed", "improved", "same", "unknown"]
CHANGES: tuple[Change, ...] = ("regressed", "improved", "unknown", "same")
FALSE_DISCOVERIES = 0.05
HOW = (
    "different: the 95 % two-level bootstrap interval of the ratio of medians beyond the margin,"
    f" and Mann-Whitney against it at a false discovery rate of {100 * FALSE_DISCOVERIES:g} %"
    " (Benjamini-Hochberg) over all metrics"
)


@dataclass(frozen=True)
class Comparison:
    """A metric of a case on both sides: new over old.

    ``p`` is of the hypothesis that launches differ by no more than ``margin``; ``noise`` is the baseline's own, None
    where one run tells none; ``a12`` is the effect size P(new > old) + P(new = old) / 2.
    """

    case: str
    where: str
    metric: str
    unit: str
    better: str
    old: float
    new: float
    launches: tuple[int, int]
    ratio: Interval
    margin: float
    noise: float | None
    p: float
    a12: float
    change: Change
    reason: str


def compared(case: SideCase) -> list[str]:
    """The metrics that are compared: those of which more or less is better, that have a ratio, each once.

    A rate that only divides a payload by a time that is compared as well says the same again, and so does the time of
    a window beside its rate.
    """
    rates = ("bandwidth", "message_rate") if case.fields.get("benchmark") in POINT_TO_POINT else ()
    there = [name for name in rates if name in case.metrics]
    again = {"time"} if there else {"busbw", "images_per_s"}
    again |= set(there[1:])
    return [name for name, found in case.metrics.items() if found.unit != "1" and found.better != "none"
            and name.rpartition(".")[2] not in again]  # fmt: skip


def least_margin(case: SideCase) -> float:
    """1 % of latency and bandwidth, 3 % of collectives and training."""
    return POINT_TO_POINT_MARGIN if case.fields.get("benchmark") in POINT_TO_POINT else COLLECTIVE_MARGIN


def compare(pairing: Pairing, metrics: Sequence[str] = (), at_least: float = 0.0) -> tuple[Comparison, ...]:
    """Compare all pairs in ``metrics`` (empty: all that are worth it), with a margin of ``at_least`` so much."""
    found = [_one(a, b, name, at_least) for a, b in pairing.pairs for name in compared(a)
             if name in b.metrics and (not metrics or name in metrics)]  # fmt: skip
    return tuple(_corrected(found))


def _one(a: SideCase, b: SideCase, name: str, at_least: float) -> tuple[Comparison, Decision]:
    """Everything but the verdict, which takes all p-values."""
    old, new = a.metrics[name], b.metrics[name]
    margin = max(least_margin(a), at_least, old.noise or 0.0)
    decision = decide(new.values, old.values, old.better, margin)
    middle = (float(np.median(old.values)), float(np.median(new.values)))
    told = (a.id, words(a), name, old.unit, old.better, *middle, (len(old.values), len(new.values)))
    ratio = _ratio(new, old)
    p = _p(new.values, old.values, margin)
    return Comparison(*told, ratio, margin, old.noise, p, decision.a12, "unknown", decision.reason), decision


def _ratio(new: Series, old: Series) -> Interval:
    sides = [[launch.drawn for launch in side.launches] for side in (new, old)]
    if old.unit != new.unit or any(x <= 0 for side in sides for launch in side for x in launch):
        return Interval(math.nan, None, None, len(new.values) + len(old.values))
    return two_level_ratio(sides[0], sides[1])


def _p(new: Sequence[float], old: Sequence[float], margin: float) -> float:
    """The two-sided p-value at the nearer edge of the margin: the largest for any difference within it."""
    for edge, sign in ((1 + margin, 1), (1 - margin, -1)):
        shifted = [x / edge for x in new]
        if sign * (a12(shifted, old) - 0.5) > 0:
            return mann_whitney_p(shifted, old)
    return 1.0


def _corrected(found: Sequence[tuple[Comparison, Decision]]) -> Iterable[Comparison]:
    """The verdicts, once all p-values are known."""
    able = [place for place, (c, _) in enumerate(found) if c.ratio.low is not None and not _too_few(c)]
    rejected = dict(zip(able, benjamini_hochberg([found[i][0].p for i in able], FALSE_DISCOVERIES), strict=True))
    for place, (c, decision) in enumerate(found):
        yield c if place not in rejected else _verdict(c, decision, rejected[place], len(able))


def _too_few(c: Comparison) -> bool:
    return math.isnan(c.ratio.value) or min(c.launches) < FEWEST_LAUNCHES


def _verdict(c: Comparison, decision: Decision, rejected: bool, family: int) -> Comparison:
    low, high = c.ratio.low or 0.0, c.ratio.high or math.inf
    beyond = low > 1 + c.margin or high < 1 - c.margin
    about = f"95 % interval {low:.4g} to {high:.4g}"
    if beyond and rejected:
        worse = (low > 1) == (c.better == "lower")
        why = f"{about} beyond 1 +- {c.margin:.2g}, p {c.p:.2g}"
        return replace(c, change="regressed" if worse else "improved", reason=why)
    if decision.verdict == "equivalent" and 1 - c.margin < low and high < 1 + c.margin:
        return replace(c, change="same", reason=f"{about} within 1 +- {c.margin:.2g}")
    if beyond:
        few = f"p {c.p:.2g} is too large among {family} comparisons: more launches could tell"
        return replace(c, reason=f"{about} beyond 1 +- {c.margin:.2g}, but {few}")
    return replace(c, reason=f"{about} neither beyond nor within 1 +- {c.margin:.2g}")
