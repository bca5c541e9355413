"""Overlap, progress and offload: what is too short to tell, who makes progress, which calls block, who did the work."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from collectives.overlap import schedule
from collectives.overlap.options import Options
from microbench.record import Metric
from reports.render import render
from tests.collectives.overlap.test_job import HOSTS, OFFLOAD, case, check_complete, launch
from tests.reports.folder import Folder

SEED = 11  # of the jobs
FLOATS = (0, 1, 3, 1000, 10**6)
HALF_MIB = 1 << 19


@pytest.fixture(scope="module")
def sizes() -> list[dict[str, Any]]:
    cases = [case("overlap_allgather") | {"nbytes": 4 * floats} for floats in FLOATS]
    return launch(HOSTS, *cases)


def test_nothing_overlaps_below_the_timers_noise_and_nothing_is_clamped(sizes: list[dict[str, Any]]) -> None:
    """0 bytes whose pure time is a hundredth of a microsecond printed as an overlap of 100 %, the next row as 0."""
    for told in sizes:
        metrics, noise_s = told["metrics"], told["method"]["timer_noise_s"]
        pure, compute = metrics["host.pure"]["value"], metrics["compute"]["value"]
        for mode in ("host", "probes16"):
            overall, overlap = metrics[f"{mode}.overall"]["value"], metrics[f"{mode}.overlap"]
            if min(pure, compute) < noise_s:
                assert overlap["value"] is None and "timer noise" in overlap["note"]
            elif overlap["value"] is None:
                assert re.search("noise of the times > |is little beside ", overlap["note"])
            else:
                assert overlap["value"] == pytest.approx((pure + compute - overall) / min(pure, compute))
            assert metrics[f"{mode}.exposed"]["value"] == pytest.approx(overall - compute)
            assert np.size(told["samples"][f"{mode}.overall"]) == told["method"]["iterations"]


def test_of_no_bytes_at_all_there_is_no_overlap(sizes: list[dict[str, Any]]) -> None:
    """MPI returns from an allgather of 0 bytes at once: no clock can tell what that hides."""
    none, many = (sizes[at]["metrics"]["host.overlap"] for at in (0, -1))
    assert none["value"] is None and "timer noise" in none["note"]
    assert many["value"] is not None or "timer noise" not in many["note"]


def test_who_makes_progress_is_a_mode_and_the_cores_are_told() -> None:
    """Without probes a non-blocking allreduce may do nothing until the wait: no test, tests, and a thread, each beside
    the other, against one compute that was timed without a thread.
    """
    modes = ["host", "probes4", "probes16", "probes64", "thread"]
    (told,) = launch({**HOSTS, "level": "multiple"}, case("overlap_allreduce", compare=modes) | {"nbytes": 1 << 20})
    check_complete(told, *modes)
    assert [told["method"]["modes"][mode]["probes"] for mode in modes[:4]] == [0, 4, 16, 64]
    assert [name for name in told["samples"] if name.endswith("compute")] == ["compute", "lead_in.compute"]
    assert told["method"]["best_host"] in (*modes, "blocking")
    for host, where in enumerate(told["placement"].split()[1:]):
        assert where.partition(":")[2].isdigit(), host


def test_calls_that_should_return_at_once_are_timed_apart_and_told_where_they_block() -> None:
    """A MPI_Test, or a post, that blocks until the operation is done."""
    compare = ["host", "probes4"]
    plants = ("tests block", "posts block")
    tests, posts = launch(
        HOSTS, *(case("overlap_allreduce", plant, compare=compare) | {"nbytes": HALF_MIB} for plant in plants)
    )
    for told in (tests, posts):
        check_complete(told, *compare)
        found = {name: np.array(times) for name, times in told["samples"].items()}
        parts = sum(found[f"probes4.{part}"] for part in ("post", "work", "test", "wait"))
        assert np.array_equal(parts, found["probes4.overall"])
    assert "test" in tests["method"]["blocking_calls"]["probes4"]
    assert tests["metrics"]["probes4.test_longest"]["value"] > tests["metrics"]["probes4.wait"]["value"]
    assert "post" in posts["method"]["blocking_calls"]["host"]


def test_an_offload_that_falls_back_to_the_host_is_called_that(tmp_path: Path) -> None:
    """The library is selected, its data is right, and another one carried the operation."""
    (told,) = launch(OFFLOAD, case("offload_allreduce", "falls back", compare=["host", "staged"]))
    assert told["status"] == "ok" and told["validation"]["wrong_bytes"] == 0
    assert told["method"]["used"] == {"staged": False}
    assert told["metrics"]["staged.net_gain"]["note"] == "n/a: host (offload not used)"
    assert told["metrics"]["blocking.overall"]["value"] is not None
    folder = Folder()
    metrics = {name: Metric(**metric) for name, metric in told["metrics"].items()}
    folder.add("offload_allreduce", "tcp-lo", 1 << 16, ranks=4, metrics=metrics, method=told["method"])
    assert "host (offload not used)" in render(folder.write(tmp_path), "text")


@pytest.fixture(scope="module")
def late() -> list[dict[str, Any]]:
    spec = {**HOSTS, "roles": ["host"] * 3, "cpus": [0, 1, 1]}
    cases = [case(f"overlap_{name}", skew=skew) for name in ("alltoall", "broadcast", "allreduce") for skew in (0, 8)]
    return launch(spec, *(one | {"nbytes": HALF_MIB} for one in cases))


def test_late_arrival_is_a_case_of_its_own_beside_the_balanced_one(late: list[dict[str, Any]]) -> None:
    """Applications gain by imbalance where a benchmark of balanced ranks shows parity: each operation in both ways."""
    for balanced, skewed in zip(late[::2], late[1::2], strict=True):
        for told in (balanced, skewed):
            check_complete(told, "host", "probes16", "probes64")
        assert balanced["method"]["longest_lag_s"] == 0
        assert skewed["method"]["longest_lag_s"] == pytest.approx(8 * skewed["method"]["compute_of_s"])
    assert Options.of({"skew": 8}, offload=False).label == "skew 8"


@pytest.mark.parametrize("place", [1, 5])
def test_every_mode_meets_the_same_late_ranks(late: list[dict[str, Any]], place: int) -> None:
    """What every rank needs of every other cannot end before the latest has come: by the delays that were drawn."""
    told = late[place]
    longest_ns, rounds = 1e9 * told["method"]["longest_lag_s"], told["method"]["rounds"]
    drawn = np.array([
        [schedule.lags(SEED, round_, host, 3, longest_ns)[1:] for round_ in range(rounds)] for host in range(3)
    ]).reshape(3, -1)  # fmt: skip
    least = np.maximum(drawn[1:].max(axis=0) - drawn[0], 0)
    assert least.max() > 0
    for name in ("host.pure", "host.overall", "probes16.overall"):
        times = np.array(told["samples"][name][0])
        assert np.mean(times >= 0.9 * least - 2e5) > 0.7, name  # the hosts' barrier lets them go at about one time
