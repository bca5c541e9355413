"""What numbers are held against: line rates, baselines, populations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reports.comparison.baseline import make
from reports.comparison.sides import Side, of_run
from tests.reports.folder import MIB, Folder
from tests.reports.limits.planted import MB, criterion, fabric, only, ruled, seen, stream

LINE = {"reference": "line rate", "lower": 0.9}


def test_a_line_rate_counts_both_ways_where_both_are_counted() -> None:
    f = Folder()
    f.run["fabrics"] = [fabric("roce0", 10e9)]
    stream(f, 1200.0)
    assert only(f, criterion(**LINE)).verdict == "pass"
    f.records.clear()
    stream(f, 1200.0, benchmark="bibw")
    names = {"benchmark": ("bibw",)}
    found = only(f, criterion(names=names, **LINE))
    assert (found.verdict, found.bar and found.bar.lower) == ("fail", 2250 * MB)


def test_no_line_rate_is_never_a_pass() -> None:
    f = Folder()
    f.run["fabrics"] = [fabric("roce0", None)]
    stream(f, 1e6)
    found = only(f, criterion(**LINE))
    assert (found.verdict, found.reason) == ("not measured", "roce0 declares no rate")


def test_what_is_inside_a_host_has_no_line() -> None:
    f = Folder()
    f.run["fabrics"] = [
        fabric("roce0", 10e9),
        fabric("shm", None, "shm"),
        fabric("tcp-lo", None, "tcp", devices={"n0": ["lo"]}),
    ]
    for name in ("roce0", "shm", "tcp-lo"):
        stream(f, 1200.0, fabric=name, proof="proved")
    found = ruled(f, criterion(**LINE))
    assert (found.verdict, [c.verdict for c in found.cases]) == ("pass", ["pass"])
    assert [out.reason for out in found.left_out] == [
        f"{n} is inside a host: it has no line" for n in ("shm", "tcp-lo")
    ]


def baseline(*runs: float) -> Side:
    """A baseline of runs of one launch each."""
    sides = []
    for number, value in enumerate(runs):
        f = Folder()
        f.run["id"] = f"run{number}"
        stream(f, value, half=0.001)
        sides.append(of_run(seen(f), f"run{number}"))
    return make(sides).side


@pytest.mark.parametrize(("value", "verdict"), [(69.0, "fail"), (70.0, "pass"), (71.0, "pass"), (130.0, "pass")])
def test_thirty_per_cent_below_a_baseline_of_100(value: float, verdict: str) -> None:
    f = Folder()
    stream(f, value, half=0.0)
    found = only(f, criterion(reference="baseline", lower=0.7), baseline(99.0, 100.0, 101.0))
    assert found.verdict == verdict
    better = "30 % above the baseline's median of 3 runs; it does not become the bar by itself"
    assert found.note == (better if value == 130 else "")
    assert found.text.endswith(better if value == 130 else found.reason)


def test_one_lucky_run_does_not_move_the_bar() -> None:
    f = Folder()
    stream(f, 98.0, half=0.001)
    found = only(f, criterion(reference="baseline", lower=0.95), baseline(99.0, 100.0, 150.0))
    assert (found.verdict, found.bar and found.bar.reference) == ("pass", 100 * MB)


@pytest.mark.parametrize("runs", [(100.0,), (100.0, 101.0)])
def test_a_baseline_of_too_few_runs_judges_nothing(runs: tuple[float, ...]) -> None:
    f = Folder()
    stream(f, 10.0, half=0.001)
    found = only(f, criterion(reference="baseline", lower=0.95), baseline(*runs))
    assert (found.verdict, found.again) == ("inconclusive", False)
    assert "3 or more are judged by" in found.reason


def test_a_baseline_of_another_kind_is_refused_by_name() -> None:
    f = Folder()
    stream(f, 100.0)
    f.records[0] = replace(f.records[0], thread_level="multiple")
    found = only(f, criterion(reference="baseline", lower=0.95), baseline(99.0, 100.0, 101.0))
    assert (found.verdict, found.reason) == (
        "not measured", "the baseline is not of its like: thread level: single against multiple",
    )  # fmt: skip


def test_a_baseline_without_the_case_or_none_is_not_measured() -> None:
    f = Folder()
    stream(f, 100.0, nbytes=2 * MIB)
    c = criterion(reference="baseline", lower=0.95)
    assert only(f, c, baseline(99.0, 100.0, 101.0)).reason == "the baseline baseline has no bandwidth of this case"
    assert only(f, c).reason == "no baseline is given"


def test_a_population_names_the_odd_one() -> None:
    f = Folder()
    f.run["fabrics"] = [fabric(f"roce{n}", 10e9) for n in range(6)]
    for n, value in enumerate((1000.0, 1005.0, 995.0, 1002.0, 998.0, 880.0)):
        stream(f, value, fabric=f"roce{n}")
    found = ruled(f, criterion(reference="population", lower=0.95))
    assert [c.verdict for c in found.cases] == ["pass"] * 5 + ["fail"]
    assert found.cases[-1].bar and found.cases[-1].bar.basis == "the median of 6 alike"


def test_of_fewer_than_five_nobody_is_the_odd_one() -> None:
    f = Folder()
    f.run["fabrics"] = [fabric(f"roce{n}", 10e9) for n in range(4)]
    for n, value in enumerate((1000.0, 1005.0, 995.0, 500.0)):
        stream(f, value, fabric=f"roce{n}")
    found = ruled(f, criterion(reference="population", lower=0.95))
    assert [c.reason for c in found.cases] == [
        "4 alike: a population takes 5 or more; give a reference, or use a baseline"
    ] * 4


def test_a_part_of_nothing_says_nothing() -> None:
    found = only(_idle(), criterion(reference="baseline", lower=0.9), _zero())
    assert (found.verdict, found.reason) == (
        "not measured", "the baseline's median of 3 runs is 0: a part of it says nothing",
    )  # fmt: skip


def _idle() -> Folder:
    f = Folder()
    stream(f, 1.0)
    return f


def _zero() -> Side:
    return baseline(0.0, 0.0, 0.0)


def test_a_baseline_from_other_hosts_is_not_measured_and_says_so() -> None:
    """Case 62: the machine's name changes, and nothing may pass or break by that."""
    f = Folder()
    stream(f, 100.0)
    f.records[0] = replace(f.records[0], hosts=("n7", "n8"))
    found = only(f, criterion(reference="baseline", lower=0.95), baseline(99.0, 100.0, 101.0))
    assert (found.verdict, found.reason) == (
        "not measured", "the baseline is not of its like: hosts: n0,n1 against n7,n8",
    )  # fmt: skip


def test_groups_have_limits_of_their_own() -> None:
    """Case 62: 10 % for one, 50 % for the other."""
    f = Folder()
    stream(f, 80.0, half=0.001)
    tight, loose = (criterion(reference="baseline", lower=part) for part in (0.9, 0.5))
    known = baseline(99.0, 100.0, 101.0)
    assert [only(f, c, known).verdict for c in (tight, loose)] == ["fail", "pass"]
