"""The comparator, both ways: what regressed is told, what did not is not, whatever the number of metrics."""

from __future__ import annotations

import math

import pytest

from microbench.record import Metric
from reports.comparison import baseline
from reports.comparison.alike import pair
from reports.comparison.sides import Side
from reports.comparison.verdicts import Comparison, compare, compared
from tests.reports.comparison.planted import allreduce, noisy, side
from tests.reports.folder import MIB, Folder, metric


def one(old: Side, new: Side, at_least: float = 0.0) -> Comparison:
    (found,) = compare(pair(old, new), at_least=at_least)
    return found


def times(old: list[float], new: list[float], at_least: float = 0.0) -> Comparison:
    return one(side(allreduce(old)), side(allreduce(new)), at_least)


@pytest.mark.parametrize(("scale", "change"), [(1.1, "regressed"), (0.9, "improved"), (1.0, "same")])
def test_ten_per_cent_is_seen_both_ways(scale: float, change: str) -> None:
    found = times(noisy(1), noisy(2, scale=scale))
    assert found.change == change
    assert found.ratio.value == pytest.approx(scale, rel=0.01)
    assert found.a12 == pytest.approx({1.1: 1.0, 0.9: 0.0}.get(scale, found.a12))


def rates(f: Folder, value: float) -> Folder:
    for launch in range(1, 9):
        got = Metric(value * (1 + launch / 1000), "bytes/s", 9, better="higher")
        f.add("bandwidth", "roce0", MIB, launch=launch, metrics={"bandwidth": got, "time": metric(1e9 / value)})
    return f


def test_less_of_a_rate_is_worse() -> None:
    old = side(rates(Folder(), 1e9))
    assert one(old, side(rates(Folder(), 0.9e9))).change == "regressed"
    assert one(old, side(rates(Folder(), 1.1e9))).change == "improved"


def test_what_is_within_the_margin_is_the_same_however_significant() -> None:
    """Case 56's other half: a difference of 2 % that every launch shows is no regression of a collective."""
    found = times(noisy(1, spread=1e-4), noisy(2, scale=1.02, spread=1e-4))
    assert (found.change, found.margin) == ("same", 0.03)
    found = times(noisy(1, spread=1e-4), noisy(2, scale=1.04, spread=1e-4), at_least=0.05)
    assert (found.change, found.margin) == ("same", 0.05)


def test_point_to_point_has_a_margin_of_one_per_cent() -> None:
    old = side(rates(Folder(), 1e9))
    assert one(old, side(rates(Folder(), 0.98e9))).change == "regressed"
    assert one(old, old).margin == 0.01


@pytest.mark.parametrize("launches", [1, 3, 5])
def test_few_launches_tell_nothing(launches: int) -> None:
    found = times(noisy(1, launches), noisy(2, launches, scale=2.0))
    assert found.change == "unknown"
    assert found.reason.startswith(f"{launches} launch") and found.reason.endswith("< 6")


def test_one_outlying_launch_is_no_regression() -> None:
    new = noisy(2)
    new[3] *= 5
    assert times(noisy(1), new).change == "same"


def test_how_far_a_baselines_runs_lie_apart_is_the_least_margin() -> None:
    sides = [
        side(allreduce(noisy(seed, scale=scale)), f"run{seed}") for seed, scale in ((1, 1.0), (2, 1.08), (3, 1.04))
    ]
    old = baseline.make(sides).side
    found = one(old, side(allreduce(noisy(4, scale=1.1))))
    assert found.noise == pytest.approx(0.08, abs=0.01) and found.margin == found.noise
    assert found.change != "regressed"
    assert one(old, side(allreduce(noisy(4, scale=1.25)))).change == "regressed"


def test_nothing_is_different_where_nothing_differs_however_many_metrics() -> None:
    """8 pairs of runs of 10 metrics: chance alone shows one that differs at 5 %, as its p-value tells."""
    found = [compare(pair(*(many(2 * seed + which, 10, spread=0.1) for which in (0, 1)))) for seed in range(8)]
    assert not [c for run in found for c in run if c.change in ("regressed", "improved")]
    assert [c.p < 0.05 for run in found for c in run].count(True) >= 1


def many(seed: int, cases: int = 15, scale: float = 1.0, spread: float = 0.03) -> Side:
    f = Folder(8)
    for case in range(cases):
        for launch, t in enumerate(noisy(1000 * seed + case, scale=scale if case == 0 else 1.0, spread=spread), 1):
            f.add("allreduce", "roce0", 8 << case, launch=launch, metrics={"time": metric(t)})
    return side(f)


def test_one_that_differs_among_many_is_still_found() -> None:
    found = compare(pair(many(1), many(2, scale=1.3)))
    assert [c.change for c in found].count("regressed") == 1 and found[0].change == "regressed"


def test_what_has_no_ratio_is_unknown() -> None:
    found = times([0.0] * 8, noisy(1))
    assert found.change == "unknown" and math.isnan(found.ratio.value)
    assert found.reason == "values that are not positive have no ratio"


def test_each_number_is_compared_once() -> None:
    (case,) = side(rates(Folder(), 1e9)).cases.values()
    assert compared(case) == ["bandwidth"]
    f = Folder()
    got = {"time": metric(1.0), "busbw": metric(1.0, "bytes/s", better="higher"), "overlap": metric(0.5, "1"),
           "entry_skew": metric(1e-6, better="none")}  # fmt: skip
    f.add("allreduce", "shm", 8, metrics=got)
    (case,) = side(f).cases.values()
    assert compared(case) == ["time"]


def test_only_some_metrics() -> None:
    pairing = pair(many(1, 2), many(2, 2))
    assert not compare(pairing, ["bandwidth"])
    assert len(compare(pairing, ["time"])) == 2
