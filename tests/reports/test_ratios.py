from __future__ import annotations

import pytest

from microbench.record import Metric
from reports.ratios import ratio, side, speed, unjudged
from reports.summary import Summary, summarise
from tests.reports.folder import Folder


def _case(value: float | None, low: float | None = None, high: float | None = None, better: str = "lower") -> Summary:
    f = Folder()
    f.add("latency", "shm", 8, metrics={"m": Metric(value, "s", 30, low, high, better)})  # type: ignore[arg-type]
    return summarise(f.records)[0]


def test_the_ratio_of_medians_and_its_conservative_interval() -> None:
    got = ratio(_case(1.13, 1.10, 1.17), _case(1.00, 0.99, 1.02), "m")
    assert got is not None
    assert got.value == pytest.approx(1.13)
    assert got.low == pytest.approx(1.10 / 1.02)
    assert got.high == pytest.approx(1.17 / 0.99)
    assert got.text == "1.13x [1.08, 1.18]"
    assert got.basis == "within one launch"
    assert got.beyond_one


def test_above_one_is_faster_for_times_and_rates() -> None:
    fast, slow = _case(10.0, 9.0, 11.0), _case(20.0, 19.0, 21.0)
    got = speed(fast, slow, "m")
    assert got is not None
    assert (got.value, got.low, got.high) == (2.0, 19 / 11, 21 / 9)
    fast, slow = _case(40.0, 39.0, 41.0, "higher"), _case(10.0, 9.0, 11.0, "higher")
    got = speed(fast, slow, "m")
    assert got is not None
    assert (got.value, got.low, got.high) == (4.0, 39 / 11, 41 / 9)


def test_an_interval_across_one_is_not_beyond_it() -> None:
    got = ratio(_case(1.01, 0.99, 1.03), _case(1.0, 0.99, 1.01), "m")
    assert got is not None
    assert not got.beyond_one


def test_without_an_interval_on_a_side_there_is_none() -> None:
    got = ratio(_case(2.0), _case(1.0, 0.9, 1.1), "m")
    assert got is not None
    assert (got.value, got.low, got.high, got.interval) == (2.0, None, None, "no interval")
    assert not got.beyond_one


@pytest.mark.parametrize(("over", "under"), [(None, 1.0), (1.0, None), (1.0, 0.0), (-1.0, 1.0), (1.0, -2.0)])
def test_meaningless_ratios_are_not_formed(over: float | None, under: float | None) -> None:
    assert ratio(_case(over), _case(under), "m") is None


def test_a_bound_through_zero_leaves_no_interval() -> None:
    got = ratio(_case(1.0, 0.5, 1.5), _case(1.0, -0.5, 2.0), "m")
    assert got is not None
    assert (got.low, got.high) == (None, None)


def test_mixed_bases_are_both_named() -> None:
    f = Folder()
    for launch in (1, 2):
        f.add("latency", "shm", 8, launch=launch, metrics={"m": Metric(2.0, "s", 30, 1.9, 2.1)})
    got = ratio(summarise(f.records)[0], _case(1.0, 0.9, 1.1), "m")
    assert got is not None
    assert got.basis == "range of 2 launches and within one launch"


@pytest.mark.parametrize(
    ("launches", "step", "where", "why"),
    [(1, 1.0, 1, ""), (2, 1.0, None, "only a range of 2 launches, where a verdict takes 6"), (6, 1.0, 1, ""),
     (6, -1.0, -1, ""), (6, 0.0, 0, "")],
)  # fmt: skip
def test_only_an_interval_tells_sides_apart(launches: int, step: float, where: int | None, why: str) -> None:
    f = Folder(launches)
    for fabric, value in (("eth2g5", 2.0 + step), ("eth10g", 2.0)):
        for launch in range(1, launches + 1):
            found = {"m": Metric(value + 0.01 * launch, "s", 30, value - 0.1, value + 0.1)}
            f.add("train", fabric, launch=launch, metrics=found)
    slow, fast = summarise(f.records)
    assert side(slow, fast, "m") == where
    assert unjudged(slow, fast, "m") == why
    assert unjudged(slow, fast, "absent") == "no intervals to compare"
    found = ratio(slow, fast, "m")
    assert found is not None
    assert (found.judged, found.beyond_one) == (where is not None, bool(where))
