"""Rows and figures of training over planted records: what is met, what is missed, and what is not there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from microbench.record import Metric
from tests.figures import endtoend_rows
from tests.figures.endtoend_rows import COSTS, Trained, find
from tests.figures.table import Row
from tests.reports import steps
from tests.reports.folder import Folder

LAUNCHES = 6
JITTER_S = 0.004  # from the lowest launch to the next


def trained(
    exchanges: dict[str, float], fabric: str = "eth2g5", launches: int = LAUNCHES, noop_s: float = 0.85, **more: Any
) -> Trained:
    """A case whose launches differ in speed: all of a launch's steps alike."""
    f = Folder(launches)
    for launch in range(launches):
        slower = 1 + JITTER_S * launch
        steps.add(f, fabric, {mode: s * slower for mode, s in exchanges.items()}, noop_s * slower, launch=launch + 1,
                  **more)  # fmt: skip
    (case,) = endtoend_rows.cases(f.records)
    return case


def broken(status: str = "timeout") -> Trained:
    f = Folder()
    f.add("train", "eth2g5", workload="resnet50 64px", status=status, reason="rank 1 did not leave step 3")
    (case,) = endtoend_rows.cases(f.records)
    return case


def test_a_row_for_every_exchange_of_every_case() -> None:
    case = trained({"gloo": 1.1, "mpi": 1.0})
    gloo, mpi = endtoend_rows.rows([case])
    assert (gloo["exchange"], mpi["exchange"], gloo["fabric"], gloo["n"]) == ("gloo", "mpi", "eth2g5", LAUNCHES)
    assert gloo["step"] == pytest.approx(1.1 * (1 + 2.5 * JITTER_S))
    assert gloo["exposed"] - mpi["exposed"] == pytest.approx(0.1 * (1 + 2.5 * JITTER_S))
    assert gloo["low"] < gloo["exposed"] < gloo["high"]
    assert (gloo["peer"], gloo["cpu_per_byte"], gloo["step alone"]) == ("computes", 1.2e-9, steps.ALONE_S)


def test_other_benchmarks_make_no_rows() -> None:
    f = Folder()
    f.add("allreduce", "eth2g5", 8)
    assert endtoend_rows.cases(f.records) == []


def test_a_case_is_found_by_model_and_fabric() -> None:
    known = [trained({"gloo": 1.1}), trained({"gloo": 1.0}, "eth10g")]
    assert find(known, "resnet50", "eth10g") is known[1]
    with pytest.raises(ValueError, match="not enough"):
        find(known, "vgg16", "eth10g")


@pytest.mark.parametrize(
    ("exposed_s", "met"), [((0.5, 0.3, 0.1), [True, True]), ((0.5, 0.3, 0.299), [True, False]),
                           ((0.1, 0.3, 0.1), [False, True])],
)  # fmt: skip
def test_fabrics_are_ordered_where_intervals_are_disjoint(exposed_s: Sequence[float], met: list[bool]) -> None:
    known = [trained({"gloo": 0.85 + s}, fabric) for s, fabric in zip(exposed_s, ("a", "b", "c"), strict=True)]
    got = endtoend_rows.ordered(known, "gloo")
    assert [row["ok"] for row in got] == met
    assert "lower end on a - upper end on b" in got[0]["figure"]
    slow, fast = exposed_s[:2]
    assert got[0]["got"] == pytest.approx(slow - fast * (1 + 5 * JITTER_S), abs=1e-3)


@pytest.mark.parametrize(("step_s", "met"), [(0.851, True), (0.87, True), (0.90, False), (0.80, False)])
def test_hidden_communication_is_small_whichever_its_sign(step_s: float, met: bool) -> None:
    row = endtoend_rows.hidden(trained({"gloo": step_s}), "gloo", 0.03)
    assert row["ok"] is met
    assert row["got"] == pytest.approx(abs(1 - 0.85 / step_s), abs=1e-4)


@pytest.mark.parametrize(("slow_s", "met"), [(2.0, True), (1.01, False), (0.5, False)])
def test_an_effect_lies_above_1_with_its_whole_interval(slow_s: float, met: bool) -> None:
    row = endtoend_rows.effect(trained({"gloo": slow_s}), trained({"gloo": 1.0}, "eth10g"), "gloo")
    assert (row["ok"], row["got"]) == (met, pytest.approx(slow_s))


@pytest.mark.parametrize(("mpi_s", "met"), [(0.9, True), (1.0, True), (1.02, False)])
def test_a_ratio_of_steps_is_of_the_launches_and_tells_where_time_goes(mpi_s: float, met: bool) -> None:
    row = endtoend_rows.step_ratio(trained({"gloo": 1.0, "mpi": mpi_s}), "mpi", "gloo", 1.0, 0.9)
    assert (row["ok"], row["got"]) == (met, pytest.approx(mpi_s))
    assert row["why"].startswith(f"[{mpi_s:.3f}, {mpi_s:.3f}] over 6 launches; mpi: exposed ")
    assert "cpu 1.2 ns/byte; gloo: exposed" in row["why"] and "dilation 6 %" in row["why"]


@pytest.mark.parametrize(
    ("dpu_s", "launches", "peer", "met"),
    [(0.93, 6, "replayed: asleep", True), (0.93, 5, "replayed: asleep", True), (0.93, 4, "replayed: asleep", False),
     (1.15, 6, "replayed: asleep", False), (0.93, 6, "computes", False)],
)  # fmt: skip
def test_a_gain_takes_an_interval_above_0_enough_launches_and_a_replayed_peer(
    dpu_s: float, launches: int, peer: str, met: bool
) -> None:
    pair = {"gloo": 1.13, "dpu": dpu_s}
    row = endtoend_rows.gain(trained(pair, launches=launches, method=steps.method(pair, peer=peer)), "dpu", "gloo")
    assert row["ok"] is met
    assert row["n"] == launches
    assert row["got"] == pytest.approx((1.13 - dpu_s) * (1 + JITTER_S * (launches - 1) / 2), abs=1e-4)
    assert ("peer replayed" in row["why"]) is (peer != "computes")


def test_one_launch_without_a_gain_among_six_is_enough_to_miss() -> None:
    f = Folder(LAUNCHES)
    for launch in range(LAUNCHES):
        pair = {"gloo": 1.1, "dpu": 1.2 if launch == 3 else 0.9}
        steps.add(f, "eth2g5", pair, launch=launch + 1, method=steps.method(pair, peer="replayed: asleep"))
    (case,) = endtoend_rows.cases(f.records)
    assert endtoend_rows.gain(case, "dpu", "gloo")["ok"] is False


FINDINGS = [{"chapter": 7, "values": {"slow": "eth2g5", "fast": "eth10g", "workload": "vgg16 32px batch 8",
                                      "verdict": COSTS}},
            {"chapter": 6, "values": {"workload": "vgg16 32px batch 8"}}]  # fmt: skip


@pytest.mark.parametrize(
    ("model", "expected", "ok"),
    [("vgg16", COSTS, True), ("vgg16", "NO DIFFERENCE", False), ("resnet50", COSTS, False), ("vgg16", None, None)],
)
def test_what_the_report_says_is_compared_with_what_it_should(model: str, expected: str | None, ok: Any) -> None:
    row = endtoend_rows.said(FINDINGS, model, "eth2g5", "eth10g", expected)
    assert row["ok"] is ok
    assert row["why"] == (COSTS if model == "vgg16" else "nothing")


MISSED: list[Callable[[Trained], Row]] = [
    lambda case: endtoend_rows.hidden(case, "gloo", 0.03),
    lambda case: endtoend_rows.effect(case, case, "gloo"),
    lambda case: endtoend_rows.step_ratio(case, "mpi", "gloo", 1.0, 0.9),
    lambda case: endtoend_rows.gain(case, "dpu", "gloo"),
    lambda case: endtoend_rows.ordered([case, case], "gloo")[0],
]


@pytest.mark.parametrize("judge", MISSED)
def test_what_did_not_run_is_missed_with_its_reason(judge: Callable[[Trained], Row]) -> None:
    row = judge(broken())
    assert (row["ok"], row["got"], row["why"]) == (False, None, "timeout: rank 1 did not leave step 3")
    assert endtoend_rows.rows([broken()])[0]["status"] == "timeout"


@pytest.mark.parametrize("judge", MISSED)
def test_an_exchange_that_is_not_there_is_missed(judge: Callable[[Trained], Row]) -> None:
    row = judge(trained({"mpi-ring": 1.0}))
    assert row["ok"] is False
    assert row["why"].startswith("no launch has ")


def test_a_launch_without_a_value_takes_its_pair_with_it() -> None:
    f = Folder(2)
    for launch, value in ((1, 0.2), (2, None)):
        metrics = {"gloo.exposed": Metric(0.5, "s", 8), "dpu.exposed": Metric(value, "s", 8)}
        f.add("train", "eth2g5", workload="resnet50", launch=launch, metrics=metrics)
    (case,) = endtoend_rows.cases(f.records)
    assert case.differences("gloo.exposed", "dpu.exposed") == (pytest.approx(0.3),)
