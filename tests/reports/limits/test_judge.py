"""Verdicts on planted runs: by the whole interval, over all launches, and never pass where nothing was measured."""

from __future__ import annotations

from typing import Any

import pytest

from microbench.record import Metric
from reports.limits.judge import judge
from reports.limits.model import Judged, Limits, Range, first_code
from tests.reports.folder import MIB, Folder, metric
from tests.reports.limits.planted import MB, criterion, fabric, only, rate, ruled, seen, stream


@pytest.mark.parametrize(
    ("value", "verdict", "why"),
    [
        (1020.0, "pass", "inside"),
        (1000.0, "inconclusive", "across the lower limit"),
        (985.0, "fail", "below the lower limit"),
    ],
)
def test_the_whole_interval_decides(value: float, verdict: str, why: str) -> None:
    f = Folder()
    stream(f, value)
    found = only(f, criterion(lower=1000 * MB))
    assert (found.verdict, found.reason) == (verdict, why)
    assert found.again == (verdict != "pass")


def test_bounds_are_included_and_both_hold() -> None:
    f = Folder()
    stream(f, 1000.0, half=0.0)
    assert only(f, criterion(lower=1000 * MB)).verdict == "pass"
    assert only(f, criterion(upper=1000 * MB)).verdict == "pass"
    assert only(f, criterion(lower=900 * MB, upper=999 * MB)).reason == "above the upper limit"


def test_a_miss_within_the_warn_zone_is_measured_again_and_not_a_failure() -> None:
    f = Folder()
    stream(f, 980.0, half=0.001)
    found = only(f, criterion(lower=1000 * MB, warn=0.05))
    assert (found.verdict, found.again) == ("inconclusive", True)
    assert found.reason == "beyond the lower limit by less than 5 %"
    f = Folder()
    stream(f, 940.0, half=0.001)
    assert only(f, criterion(lower=1000 * MB, warn=0.05)).verdict == "fail"


def test_launches_are_pooled_never_the_last_or_the_best() -> None:
    f = Folder(3)
    stream(f, 900.0, 905.0, 1100.0)
    found = only(f, criterion(lower=1000 * MB))
    assert (found.verdict, found.value, found.records) == ("inconclusive", 905 * MB, (1, 2, 3))
    f = Folder(7)
    stream(f, *[900.0] * 6, 1100.0)
    found = only(f, criterion(lower=1000 * MB))
    assert (found.verdict, found.basis) == ("inconclusive", "over 7 launches")  # of 7, the interval is the range
    f = Folder(9)
    stream(f, *[900.0] * 8, 1100.0)
    found = only(f, criterion(lower=1000 * MB))
    assert (found.verdict, found.again) == ("fail", False)


@pytest.mark.parametrize(("launches", "again"), [(1, True), (5, True), (6, False)])
def test_a_failure_of_few_launches_is_in_doubt(launches: int, again: bool) -> None:
    """One bad moment makes a failure of a launch, and 27 % of one project's runs failed for nothing."""
    f = Folder(launches)
    stream(f, *[900.0] * launches)
    found = only(f, criterion(lower=1000 * MB))
    assert (found.verdict, found.again) == ("fail", again)


def test_few_launches_are_as_wide_as_their_own_intervals_together() -> None:
    f = Folder(2)
    stream(f, 1020.0, 1030.0)
    found = only(f, criterion(lower=1000 * MB))
    assert (found.low, found.high) == (1020 * 0.99 * MB, 1030 * 1.01 * MB)
    assert found.basis == "intervals of 2 launches together"


def test_no_interval_is_judged_only_where_limits_ask() -> None:
    f = Folder()
    f.add("bandwidth", "roce0", MIB, metrics={"bandwidth": rate(2000.0)})
    found = only(f, criterion(lower=1000 * MB))
    assert (found.verdict, found.reason) == ("inconclusive", "no interval: nothing tells how sure the value is")
    assert only(f, criterion(lower=1000 * MB, judge=frozenset({"no interval"}))).verdict == "pass"


def test_a_metric_that_is_missing_is_not_measured_with_its_reason() -> None:
    f = Folder()
    f.add("bandwidth", "roce0", MIB, metrics={"bandwidth": rate(None, note="0 B carry none")})
    assert only(f, criterion(lower=1.0)).reason == "0 B carry none"
    found = only(f, criterion("busbw", lower=1.0))
    assert (found.verdict, found.reason) == ("not measured", "no busbw was measured")
    f = Folder()
    stream(f, 1000.0)
    assert only(f, criterion("bandwidth", "us", upper=1.0)).reason == "it is in bytes/s, the limit in us"


@pytest.mark.parametrize("status", ["failed", "timeout", "invalid"])
def test_what_went_wrong_is_no_pass(status: str) -> None:
    f = Folder()
    f.add("bandwidth", "roce0", MIB, status=status, reason="rank 1 died")
    assert only(f, criterion(lower=1.0)).reason == f"{status}: rank 1 died"
    stream(f, 1000.0, 1000.0, fabric="eth0")
    f.add("bandwidth", "eth0", MIB, status=status, reason="rank 1 died", launch=3, dtype="int8", hosts=("n0", "n1"))
    found = ruled(f, criterion(lower=1.0)).cases
    assert [case.verdict for case in found] == ["not measured", "not measured"]
    assert f"but launch 3 {status}: rank 1 died" in found[0].reason


def test_what_never_ran_is_no_pass() -> None:
    f = Folder()
    stream(f, 1000.0)
    known = f.records[0].id
    other = known.replace("roce0", "roce1")
    f.run["plan"] = {"jobs": [{"launch": 1, "fabric": "roce0", "cases": [known]},
                              {"launch": 1, "fabric": "roce1", "cases": [other]}]}  # fmt: skip
    found = ruled(f, criterion(lower=1.0))
    assert [(c.case, c.verdict) for c in found.cases] == [(known, "pass"), (other, "not measured")]
    assert found.verdict == "not measured"
    assert ruled(f, criterion(lower=1.0, names={"benchmark": ("bandwidth",), "fabric": ("!roce1",)})).verdict == "pass"


def test_nothing_to_judge_is_not_measured() -> None:
    found = only(Folder(), criterion(lower=1.0))
    assert (found.verdict, found.reason) == ("not measured", "no case on disk is what it selects")


@pytest.mark.parametrize(
    ("more", "mark"),
    [
        ({"fabric": "eth10g"}, "emulated"),
        ({"oversubscribed": True}, "oversubscribed"),
        ({"proof": "unknown"}, "unproved"),
    ],
)
def test_some_are_judged_only_where_limits_ask(more: dict[str, object], mark: str) -> None:
    f = Folder()
    stream(f, 1000.0, **more)  # type: ignore[arg-type]
    found = ruled(f, criterion(lower=1.0))
    assert found.verdict == "not measured"
    assert [out.reason for out in found.left_out] == [f"{mark}: judged only where limits ask for it"]
    assert ruled(f, criterion(lower=1.0, judge=frozenset({mark}))).verdict == "pass"


def test_what_took_another_way_is_never_judged() -> None:
    f = Folder()
    stream(f, 1000.0, proof="disproved")
    found = only(f, criterion(lower=1.0, judge=frozenset({"unproved"})))
    assert (found.verdict, found.reason) == ("not measured", "its bytes left the fabric (disproved)")


def test_sizes_gate_only_what_they_name() -> None:
    f = Folder()
    stream(f, 3.0, nbytes=8)
    stream(f, 1200.0, nbytes=4 * MIB)
    found = ruled(f, criterion(lower=1000 * MB, sizes=(Range(MIB),)))
    assert [(c.verdict, c.where) for c in found.cases] == [("pass", "bandwidth 2 ranks 4 MiB on roce0, n0-n1 (int8)")]


def test_where_no_way_of_calling_is_named_only_the_usual_one_is_judged() -> None:
    f = Folder()
    for algorithm, mode in (("library", ""), ("ring", ""), ("library", "nonblocking")):
        f.add("allreduce", "shm", 8, algorithm=algorithm, mode=mode, metrics={"time": metric(1e-6)})
    names = {"benchmark": ("allreduce",)}
    assert len(ruled(f, criterion("time", "us", upper=1.0, names=names)).cases) == 1
    ring = names | {"algorithm": ("ring",)}
    assert [c.case for c in ruled(f, criterion("time", "us", upper=1.0, names=ring)).cases] == [f.records[1].id]


def test_a_line_tells_metric_case_size_hosts_value_limits_and_side() -> None:
    f = Folder()
    f.run["fabrics"] = [fabric("roce0", 10e9)]
    stream(f, 1000.0)
    assert only(f, criterion(reference="line rate", lower=0.9)).text == (
        "bandwidth of bandwidth 2 ranks 1 MiB on roce0, n0-n1 (int8): fail: 1000.000 [990.000, 1010.000] MB/s"
        " (n 100, within one launch) against at least 1125.000 MB/s = 0.9 x the line rate 10 Gbit/s;"
        " below the lower limit"
    )


def test_a_failing_metric_is_named_even_behind_one_without_a_bar() -> None:
    """The first criterion has no reference; the second fails: it is the second that is named."""
    f = Folder()
    f.add("latency", "roce0", 8, hosts=("n0", "n1"), metrics={"time": metric(9e-6), "time_p99": metric(50e-6)})
    names = {"benchmark": ("latency",)}
    both = Limits("x", (criterion("time", "", names=names, reference="baseline", upper=1.1),
                        criterion("time_p99", "us", name="tail", names=names, upper=20e-6)))  # fmt: skip
    first, second = judge(seen(f), both).rulings
    assert (first.verdict, first.cases[0].reason) == ("not measured", "no baseline is given")
    assert second.verdict == "fail"
    assert second.cases[0].text.startswith("time_p99 of latency 2 ranks 8 B on roce0, n0-n1: fail: 50.00 [")
    assert second.cases[0].text.endswith("against at most 20.00 us; above the upper limit")


@pytest.mark.parametrize(
    ("codes", "first"),
    [((0, 3, 1), 1), ((1, 4), 4), ((3, 0), 3), ((), 0), ((124, 4), 124), ((2, 4), 2), ((130, 2), 130)],
)
def test_of_several_exit_codes_the_first_in_order_counts(codes: tuple[int, ...], first: int) -> None:
    assert first_code(*codes) == first


def test_the_exit_code_is_that_of_all_cases_together() -> None:
    f = Folder()
    stream(f, 900.0)
    fails = criterion(lower=1000 * MB)
    assert judge(seen(f), Limits("x", (fails,))).code == 1
    assert judge(seen(f), Limits("x", (fails, criterion("busbw", lower=1.0)))).code == 4
    stream(f, 1000.0, fabric="roce1")
    found = judge(seen(f), Limits("x", (fails,)))
    assert (found.code, found.doubtful) == (1, (f.records[0].id, f.records[1].id))
    assert judge(seen(f), Limits("x", (criterion(lower=1.0),))).code == 0


def test_an_offload_is_judged_only_where_the_report_claims_a_side() -> None:
    def gain(compute_s: float, metric: str = "window.net_gain", **more: Any) -> Judged:
        f = Folder()
        shares = {"window.net_gain": 0.3, "window.overlap": 0.9}
        times = {"compute": compute_s, "host.overall": 60.0, "probes16.overall": 60.0, "window.overall": 40.0}
        metrics = {name: Metric(x, "s", 12, x, x) for name, x in times.items()}
        metrics |= {name: Metric(x, "1", 12, x - 0.05, x + 0.05) for name, x in shares.items()}
        f.add("offload_allreduce", "roce0", MIB, metrics=metrics, **more)
        return only(f, criterion(metric, "1", names={"benchmark": ("offload_allreduce",)}, lower=0.2))

    assert gain(36.0).verdict == "pass"
    assert (gain(50.0).verdict, gain(50.0).reason) == (
        "inconclusive", "the compute baseline was disturbed: window with compute took 20.0 % less than compute alone",
    )  # fmt: skip
    assert gain(50.0, "window.overlap").verdict == "inconclusive"
    shared = gain(36.0, hosts=("vm", "vm", "vm"), roles=("host", "host", "dpu"))
    assert (shared.verdict, shared.reason) == ("inconclusive", "DPU ranks share machine vm with hosts: not a DPU")
