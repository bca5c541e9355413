"""What is said of samples, and sampling in real jobs."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from microbench.clocks import IDENTITY, ClockModel, timeline
from microbench.measure import Measured, slowest
from microbench.outcome import arrivals, outcome, rate_metric, skew_metrics, time_metrics
from microbench.pacing import TOO_SLOW
from microbench.stats import LEVEL
from microbench.timer import Timer
from tests import jobs

RNG = np.random.default_rng(5)


def measured(series_ns: Any, **more: Any) -> Measured:
    series = np.asarray(series_ns, float)
    times = series[None, :].astype("i8")
    given = {"times": times, "starts": times * 0, "warmup": times[:, :2], "valid": np.ones(series.size, "?"),
             "series": series, "method": {}}  # fmt: skip
    return Measured(**{**given, **more})


def test_units_are_exact_on_a_fake_clock() -> None:
    got = measured(np.full(400, 1e6))  # 1 MiB in 1 ms
    rate = rate_metric(1 << 20, got, "")
    assert rate.value == pytest.approx(1048.576e6, rel=1e-12)
    assert (rate.unit, rate.better, rate.n) == ("bytes/s", "higher", 400)
    times = time_metrics(got)
    assert times["time"].value == pytest.approx(1e-3)
    assert times["time_p99"].value == pytest.approx(1e-3)


def test_no_payload_no_rate() -> None:
    rate = rate_metric(0, measured(np.ones(10)), "0 B carry no bandwidth")
    assert (rate.value, rate.note) == (None, "0 B carry no bandwidth")


def test_the_headline_is_the_slowest_rank_and_then_the_quantile() -> None:
    times = np.array([[1.0, 9.0, 1.0], [8.0, 2.0, 7.0]])
    assert slowest(times).tolist() == [8, 9, 7]


def test_batches_have_no_tail() -> None:
    metrics = time_metrics(measured(np.full(4000, 10.0), batched=8))
    assert metrics["time"].value == pytest.approx(10e-9)
    assert metrics["time_p99"].value is None
    assert metrics["time_p99"].note == "batched 8: a mean has no tail"


def test_a_fake_clock_changes_nothing() -> None:
    """Rank 1's clock is 5 s ahead and 100 ppm fast; its model undoes that, and the headline never needed one."""
    starts = np.cumsum(RNG.integers(2_000_000, 3_000_000, (1, 200)), axis=1).repeat(2, axis=0) + 10**15
    starts = starts + np.array([[0], [700]])
    ends = starts + RNG.integers(900_000, 1_000_000, starts.shape)
    true = timeline(starts, ends, [IDENTITY, IDENTITY])
    epoch, offset, drift = 10**15 + 5 * 10**9, 5 * 10**9, 1e-4

    def fast(t: np.ndarray) -> np.ndarray:  # local = global + offset + drift * (local - epoch)
        return np.rint((t - (epoch - offset)) / (1 - drift)).astype("i8") + epoch

    local = [np.stack([x[0], fast(x[1])]) for x in (starts, ends)]
    seen = timeline(*local, [IDENTITY, ClockModel(epoch, offset, drift, 10.0)])
    for name in ("makespan_ns", "last_exit_ns", "entry_skew_ns"):
        assert np.abs(getattr(seen, name) - getattr(true, name)).max() <= 2
    headline, faked = (slowest((b - a).astype(float)) for a, b in ((starts, ends), local))
    assert np.allclose(headline, faked, rtol=1.1e-4)


def test_why_there_is_no_skew() -> None:
    without = skew_metrics(measured(np.ones(10), timeline=None, why_no_timeline=""))
    assert {m.value for m in without.values()} == {None}
    moved = "n/a: clocks moved 1.2 us, above 10 % of the median 3.0 us"
    starts = np.zeros((2, 10), "i8")
    whole = timeline(starts, starts + 5, [IDENTITY, IDENTITY])
    assert skew_metrics(measured(np.ones(10), timeline=whole, why_no_timeline=moved))["makespan"].note == moved
    assert skew_metrics(measured(np.ones(10), timeline=whole))["makespan"].value == pytest.approx(5e-9)
    assert arrivals(measured(np.ones(10), timeline=whole, why_no_timeline=moved)) == {}


def test_a_late_rank_is_counted_and_named() -> None:
    starts = np.zeros((3, 200), "i8")
    starts[2] = 1000
    starts[1, :5] = 2000
    whole = timeline(starts, starts + 5, [IDENTITY] * 3)
    found = arrivals(measured(np.ones(200), timeline=whole, starts=starts))
    assert found == {"last_arrivals": [0, 5, 195], "late_ranks": [2]}


def test_invalid_samples_are_kept_and_left_out() -> None:
    good = np.array([True] * 15 + [False] * 5)
    got = measured(np.full(15, 100.0), valid=good, times=np.full((2, 20), 100), warmup=np.full((2, 3), 900))
    made = outcome(got, time_metrics(got), {}, (0, 1))
    assert made.metrics["time"].n == 15
    assert made.samples["time"].shape == (2, 20)
    assert made.samples["valid"].sum() == 15


@pytest.mark.parametrize(("each_ns", "batch"), [(600, 1), (580, 1), (579, 2), (300, 2), (30, 32), (0, 4096)])
def test_batches_bring_an_operation_into_the_timers_reach(each_ns: float, batch: int) -> None:
    assert Timer(overhead_ns=29, tick_ns=10).batch(each_ns) == batch


def findings(ranks: int) -> dict[str, Any]:
    done = jobs.mpi(ranks, "-m", "mpi4py", "-m", "tests.microbench.measure_job", timeout_s=90)
    assert done.code == 0, done.err
    return {"ranks": ranks, **json.loads(done.out)}


@pytest.fixture(scope="module")
def pair() -> dict[str, Any]:
    """Two ranks, a core for each: their numbers mean something."""
    return findings(2)


@pytest.fixture(scope="module")
def trio() -> dict[str, Any]:
    """Three ranks on two cores."""
    return findings(3)


@pytest.fixture(params=["pair", "trio"])
def found(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.getfixturevalue(request.param)
    return found


def test_a_job_stops_at_its_precision_and_says_so(pair: dict[str, Any]) -> None:
    method = pair["precision"]["method"]
    assert method["stop_reason"] == "precision"
    assert method["iterations"] <= 400  # its most: a busy machine may need them all
    assert method["converged"] and method["half_width"] <= 0.2 == method["target_half_width"]
    assert method["look_level"] > LEVEL
    assert pair["precision"]["shapes"]["time"] == [pair["ranks"], method["iterations"]]
    assert pair["precision"]["shapes"]["warmup"][1] > method["warmup_iterations"]  # the lead-in of every block, too


def test_a_fixed_count_is_kept(pair: dict[str, Any]) -> None:
    assert pair["fixed"]["method"]["iterations"] == 50
    assert pair["fixed"]["method"]["stop_reason"] == "max_iterations"


def test_one_iteration_that_is_far_beyond_the_budget_is_warmed_up_once_and_timed_once(found: dict[str, Any]) -> None:
    """Its fewest iterations, a lead-in, and blocks to see how late ranks are, each of them as slow: minutes."""
    slow = found["slow"]
    assert slow["shapes"]["warmup"] == slow["shapes"]["time"] == [found["ranks"], 1]
    assert slow["method"]["stop_reason"] == TOO_SLOW
    if slow["method"]["sync"] == "round-time":  # how late ranks are afterwards was not to be seen
        assert 0.012 <= slow["method"]["slack_s"] <= 0.02
    assert slow["metrics"]["time"]["value"] > 1.2
    assert (slow["metrics"]["time"]["low"], slow["metrics"]["time"]["note"]) == (None, "n=1 < 6")


def test_what_the_timer_cannot_resolve_is_batched(pair: dict[str, Any]) -> None:
    batch = pair["batched"]["method"]["batched"]
    assert batch > 1
    assert pair["batched"]["metrics"]["time_p99"]["note"] == f"batched {batch}: a mean has no tail"


def test_a_planted_skew_is_laid_to_its_rank(pair: dict[str, Any]) -> None:
    late = pair["late"]
    assert late["metrics"]["entry_skew"]["value"] > 1.9e-3  # and more where cores are busy
    assert late["method"]["late_ranks"] == [pair["ranks"] - 1]
    assert late["metrics"]["last_exit"]["value"] < late["metrics"]["makespan"]["value"]
    assert late["method"]["clock_discrepancy_s"] == 0  # one host, one clock


def test_round_time_tells_its_slack_and_what_was_in_time(pair: dict[str, Any]) -> None:
    method = pair["round-time"]["method"]
    assert method["sync"] == "round-time"
    assert method["slack_s"] > 0
    assert 0 < method["valid_fraction"] <= 1


def test_where_nearly_all_begin_late_all_are_kept_and_it_is_said(found: dict[str, Any]) -> None:
    method = found["never"]["method"]
    assert method["valid_fraction"] < 0.5
    assert found["never"]["metrics"]["time"]["n"] == method["iterations"] == 50
    assert method["warnings"] == ["most iterations began late on some rank: all are kept, as after a barrier"]


def test_a_clock_that_steps_back_makes_the_case_invalid(found: dict[str, Any]) -> None:
    assert found["backwards"].startswith("a clock went backwards by ")


def test_ranks_that_disagree_are_told_before_the_loop(found: dict[str, Any]) -> None:
    said = found["disagreement"]
    assert said.startswith("CannotRun: ")
    assert "8" in said and "4" in said and f"rank {found['ranks'] - 1}" in said


def test_large_counts_take_the_large_calls_or_are_unsupported(found: dict[str, Any]) -> None:
    large = found["large"]
    assert large["allreduce"] == "ok ['MPI_Allreduce_c']"
    assert large["broadcast"] == "ok ['MPI_Bcast_c']"
    if found["ranks"] == 2:
        assert large["latency"] == "ok ['MPI_Recv_c', 'MPI_Send_c']"
        assert large["bandwidth"] in ("ok ['MPI_Irecv_c']", "ok ['MPI_Isend_c']")
    assert large["without"] == "16 elements are more than an int holds, and this MPI has no MPI_Allreduce_c"
