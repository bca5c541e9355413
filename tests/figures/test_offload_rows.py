"""Rows and figures of offload over planted records: which are met, which missed, and what holds them back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from microbench.record import Metric
from tests.figures import offload_rows
from tests.figures.offload_rows import Case, at_least, at_most, find
from tests.figures.table import Row
from tests.reports.folder import MIB, Folder, metric

ALLREDUCE = "offload_allreduce"
LAUNCHES = 6
PURE_S, COMPUTE_S, BEST_S = 0.036, 0.036, 0.060
HOST_S = {"host": 0.066, "probes16": BEST_S, "blocking": 0.072}


def record(f: Folder, launch: int, gains: dict[str, float], best_s: float = BEST_S, **more: Any) -> None:
    """A launch whose best host mode takes ``best_s``; an offload what its gain leaves of that."""
    metrics = {"compute": metric(COMPUTE_S, n=12)}
    times = HOST_S | {"probes16": best_s} | {mode: best_s * (1 - gain) for mode, gain in gains.items()}
    for mode, overall in times.items():
        parts = {"overall": overall, "pure": PURE_S, "exposed": overall - COMPUTE_S, "post": 0.001, "wait": 0.004}
        metrics |= {f"{mode}.{name}": metric(value, n=12) for name, value in parts.items()}
        metrics |= {f"{mode}.overlap": metric((PURE_S + COMPUTE_S - overall) / PURE_S, "1", 12),
                    f"{mode}.dilation": metric(0.02, "1", 12)}  # fmt: skip
    metrics |= {f"{mode}.net_gain": metric(gain, "1", 12) for mode, gain in gains.items()}
    given = {"ranks": 4, "launch": launch, "metrics": metrics, "nbytes": 4 * MIB} | more
    f.add(given.pop("benchmark", ALLREDUCE), "eth1g", given.pop("nbytes"), **given)


def case(gains: dict[str, float], launches: int = LAUNCHES, jitter: float = 0.01, **more: Any) -> Case:
    """One case whose gains differ by ``jitter`` from launch to launch, about those given."""
    f = Folder(launches)
    for launch in range(launches):
        off = jitter * (launch - (launches - 1) / 2)
        record(f, launch + 1, {mode: gain + off for mode, gain in gains.items()}, **more)
    (found,) = offload_rows.cases(f.records)
    return found


def broken() -> Case:
    f = Folder()
    f.add(ALLREDUCE, "eth1g", 4 * MIB, ranks=4, status="timeout", reason="rank 2 did not leave MPI_Test")
    (found,) = offload_rows.cases(f.records)
    return found


def test_a_row_for_every_mode_but_the_blocking_one() -> None:
    known = case({"staged": 0.1, "window": 0.3})
    rows = {row["mode"]: row for row in offload_rows.rows([known])}
    assert list(rows) == ["host", "probes16", "staged", "window"]
    window = rows["window"]
    assert (window["case"], window["best host"], window["n"]) == ("allreduce 4 MiB on eth1g", "probes16", LAUNCHES)
    assert window["net_gain"] == pytest.approx(0.3)
    assert window["low"] < 0.3 < window["high"]
    assert (rows["host"]["net_gain"], rows["host"]["low"]) == (None, None)


def test_a_case_is_found_by_benchmark_size_and_what_is_computed() -> None:
    f = Folder()
    record(f, 1, {"window": 0.3})
    record(f, 1, {"window": 0.2}, workload="compute 2x")
    record(f, 1, {"window": 0.1}, nbytes=4096)
    known = offload_rows.cases(f.records)
    assert find(known, ALLREDUCE, 4 * MIB) is known[0]
    assert find(known, ALLREDUCE, 4 * MIB, "compute 2x") is known[1]
    assert known[1].name == "allreduce 4 MiB on eth1g, compute 2x"
    with pytest.raises(ValueError, match="not enough"):
        find(known, ALLREDUCE, 1)


@pytest.mark.parametrize(("gain", "met"), [(0.20, True), (0.25, True), (0.19, False)])
def test_a_median_that_shall_reach_a_limit(gain: float, met: bool) -> None:
    row = at_least(case({"window": gain}), "window", "net_gain", 0.20)
    assert (row["ok"], row["got"], row["n"]) == (met, pytest.approx(gain), LAUNCHES)
    floor = "the best host mode, probes16, hides 33% itself, so that 40.0% is all there is to gain"
    assert row["why"] == ("" if met else floor)


@pytest.mark.parametrize(("limit", "met"), [(0.02, True), (0.01, False)])
def test_a_median_that_shall_not_pass_a_limit(limit: float, met: bool) -> None:
    row = at_most(case({"window": 0.3}), "window", "dilation", limit)
    assert row["ok"] is met
    assert row["why"] == ("" if met else "dilation 2.0%, post 2.8% of pure, wait 11.1% of pure, pure 1.00 of the "
                          "hosts' own")  # fmt: skip


def test_exposed_time_is_a_share_of_the_hosts_pure_time_and_its_worst_launch_counts() -> None:
    middle, worst = offload_rows.exposed(case({"window": 0.35}, jitter=0.02), "window", 0.10, 0.15)
    assert middle["got"] == pytest.approx((BEST_S * 0.65 - COMPUTE_S) / PURE_S, abs=1e-4)
    assert worst["got"] == pytest.approx((BEST_S * 0.70 - COMPUTE_S) / PURE_S, abs=1e-4)
    assert (middle["ok"], worst["ok"]) == (True, False)
    assert worst["figure"].endswith("window exposed of the hosts' pure time, worst launch")


@pytest.mark.parametrize(
    ("gain", "sign", "met", "side"),
    [(0.2, 1, True, "gain"), (-0.2, -1, True, "LOSS"), (0.2, -1, False, "gain"), (0.01, 1, False, "undecided")],
)
def test_a_sign_takes_the_whole_interval(gain: float, sign: int, met: bool, side: str) -> None:
    row = offload_rows.signed(case({"window": gain}), sign)
    assert (row["ok"], row["got"]) == (met, pytest.approx(gain))
    assert row["why"].startswith(f"{side} [")


def test_the_fastest_offload_that_dpus_carried_in_every_launch_is_the_best() -> None:
    assert case({"staged": 0.1, "window": 0.3}).best == "window"
    f = Folder(2)
    for launch in (1, 2):
        record(f, launch, {"staged": 0.1, "window": 0.3}, method={"used": {"staged": True, "window": launch == 1}})
    (known,) = offload_rows.cases(f.records)
    assert known.best == "staged"
    assert known.missing("window") == "host (offload not used)"


def test_no_offload_that_dpus_carried_is_a_missed_figure_with_each_reason() -> None:
    known = case({"staged": 0.1}, method={"used": {"staged": False}, "left_out": {"window": "no shared kernel"}})
    row = offload_rows.signed(known, 1)
    assert (row["ok"], row["got"]) == (False, None)
    assert row["why"] == (
        "none was carried by the DPUs: staged: host (offload not used); window: left out: no shared kernel"
    )


def test_a_gain_over_some_modes_is_shown_and_not_judged() -> None:
    row = offload_rows.gain_over(case({"window": 0.25}, jitter=0.0), "window", ("host", "blocking"))
    assert row["ok"] is None
    assert row["got"] == pytest.approx(1 - BEST_S * 0.75 / HOST_S["host"], abs=1e-4)
    assert row["why"] == "[0.318, 0.318]"


def test_a_gain_is_shown_with_its_interval() -> None:
    row = offload_rows.gain_shown(case({"window": 0.25}), "window")
    assert (row["ok"], row["got"], row["why"]) == (None, 0.25, "gain [0.225, 0.275]")


@pytest.mark.parametrize(("lost", "told", "met"), [(1, 1, True), (1, 2, False), (1, 0, False)])
def test_losses_are_counted_and_compared_with_what_a_report_tells(lost: int, told: int, met: bool) -> None:
    known = [case({"staged": -0.2, "window": 0.3}), case({"staged": 0.01})]
    row = offload_rows.losses(known, told)
    assert (row["ok"], row["target"], row["got"]) == (met, str(lost), told)


@pytest.mark.parametrize(
    ("shares", "met", "got"), [([0.01, 0.015], True, 0.015), ([0.01, 0.03], False, 0.03), (None, False, None)]
)
def test_an_idle_dpu_is_told_by_its_busiest_rank(shares: Any, met: bool, got: float | None) -> None:
    method = {"waiting": {"strategy": "poll"}} | ({"idle_dpu_cpu_share": shares} if shares else {})
    row = offload_rows.idle(case({"window": 0.2}, method=method), 0.02)
    assert (row["ok"], row["got"]) == (met, got)
    assert row["why"] == ("waiting: poll" if shares else "no launch tells it")


def test_disturbed_launches_are_told_with_a_figure_that_is_missed() -> None:
    known = case({"window": 0.1}, method={"warnings": ["rank 0 took 1.4 times its calibrated time", "other"]})
    assert known.disturbed == LAUNCHES
    assert at_least(known, "window", "net_gain", 0.2)["why"].endswith("compute was disturbed in 6 of 6 launches")


MISSED: list[Callable[[Case], Row]] = [
    lambda known: at_least(known, "window", "overlap", 0.9),
    lambda known: at_most(known, "window", "dilation", 0.9),
    lambda known: offload_rows.exposed(known, "window", 0.1, 0.2)[0],
    lambda known: offload_rows.signed(known, 1),
    lambda known: offload_rows.idle(known, 0.02),
]


@pytest.mark.parametrize("judge", MISSED)
def test_a_case_that_did_not_run_is_missed(judge: Callable[[Case], Row]) -> None:
    row = judge(broken())
    assert (row["ok"], row["got"]) == (False, None)
    assert row["why"]


def test_what_is_shown_of_a_case_that_did_not_run_says_why() -> None:
    for row in (offload_rows.gain_over(broken(), "window"), offload_rows.gain_shown(broken(), "window")):
        assert (row["ok"], row["got"], row["why"]) == (None, None, "timeout: rank 2 did not leave MPI_Test")


def test_an_offload_without_a_net_gain_is_not_judged() -> None:
    f = Folder()
    times = {f"{mode}.{part}": metric(0.1) for mode in ("host", "window") for part in ("overall", "pure")}
    f.add(ALLREDUCE, "eth1g", 8, ranks=4, metrics=times | {"window.net_gain": Metric(None, "1", 9, note="n/a")})
    (known,) = offload_rows.cases(f.records)
    assert offload_rows.signed(known, 1)["why"] == "no launch has a net gain"
    assert offload_rows.gain_shown(known, "window")["why"] == "no launch has a net gain"
