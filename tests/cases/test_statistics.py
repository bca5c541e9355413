"""What a number is a statistic of: no first call, no late start, the slowest rank, and a percentile that n supports."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from microbench.stats import metric, quantile
from tests import jobs
from tests.cases.plants import PLANTED_S, SIZES

ALIKE = 2.0  # medians of the same thing in one job: generous, for other work on the machine


def measured() -> dict[str, Any]:
    done = jobs.mpi(2, "-m", "tests.cases.loop_job")
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return measured()


def slowest(case: dict[str, Any]) -> Any:
    """Per kept iteration the longest time of any rank, in s."""
    return np.asarray(case["samples"]["time"]).max(axis=0)


@pytest.mark.parametrize("variant", ["first", "second variant"])
def test_the_first_call_is_in_no_statistic(found: dict[str, Any], variant: str) -> None:
    """An operation that looks fine from its second call only, and a later variant that nobody warmed up."""
    case = found[variant]
    warmup, times = np.asarray(case["samples"]["warmup"])[0], slowest(case)
    assert case["runs"] == [warmup.size + times.size]  # none is lost,
    assert warmup[0] >= PLANTED_S  # so that the one that was slow is kept apart
    assert times.size >= 368
    assert np.median(times) == pytest.approx(case["metrics"]["time"]["value"])
    assert np.quantile(times, 0.99) < PLANTED_S / 2
    tail = case["metrics"]["time_p99"]
    assert tail["value"] is None or tail["value"] < PLANTED_S / 2


def test_a_rank_that_comes_late_to_the_loop_is_in_no_statistic(found: dict[str, Any]) -> None:
    """No barrier before the loop: rank 0 sleeps, and the first iteration of rank 1 lasts that long."""
    case = found["delayed"]
    waited = np.asarray(case["samples"]["warmup"])[1]
    assert waited[0] >= PLANTED_S * 0.9
    assert np.quantile(slowest(case), 0.99) < PLANTED_S / 2


def test_the_headline_is_the_slowest_ranks(found: dict[str, Any]) -> None:
    """Only rank 0 timed: the last rank is 2 ms late into each allreduce; others wait in it, and itself sees none."""
    metrics = {name: m["value"] for name, m in found["late"]["metrics"].items()}
    samples = np.asarray(found["late"]["samples"]["time"])
    assert metrics["time"] == pytest.approx(np.median(samples.max(axis=0)))
    assert metrics["time_fastest"] == pytest.approx(np.median(samples.min(axis=0)))
    assert metrics["time"] > 1.9e-3 > 2 * samples.min()  # of all, for on busy cores even an allreduce may last
    assert metrics["entry_skew"] > 1.9e-3
    assert metrics["last_exit"] < metrics["makespan"]
    assert found["late"]["method"]["late_ranks"] == [1]


def places(sweeps: list[tuple[int, float]]) -> dict[str, float]:
    """The median at 1024 B by its place among others: the least of three, since other work only ever adds."""
    n, mid = len(sweeps) // 3, SIZES.index(1024)
    at = {"first": 0, "upward": 1 + mid, "downward": 2 * len(SIZES) - mid, "last": n - 1}
    assert all(sweeps[place][0] == 1024 for place in at.values())
    return {name: min(sweeps[k * n + place][1] for k in range(3)) for name, place in at.items()}


def alone() -> float:
    program = ("-m", "suite.cli", "bench", "latency", "--sizes", "1024", "--seconds", "0.2", "--json")
    done = jobs.mpi(2, *program)
    assert done.code == 0, done.err
    return float(json.loads(done.out)["metrics"]["time"]["value"])


def test_a_case_has_one_value_wherever_it_stands(found: dict[str, Any]) -> None:
    """A size that is six times slower in a sweep than alone, and a first case that is always slower than a last one."""
    seen = places(found["sweeps"]) | {"alone": alone()}
    for _ in range(4):
        if max(seen.values()) < ALIKE * min(seen.values()):
            break
        once_more = places(measured()["sweeps"]) | {"alone": alone()}
        seen = {place: min(median, once_more[place]) for place, median in seen.items()}
    assert max(seen.values()) < ALIKE * min(seen.values()), seen


def test_a_percentile_that_n_does_not_support_is_not_given() -> None:
    """A p99 of nine samples, which is but the largest; percentiles themselves are linear, known on 1 ... 100."""
    few = metric(quantile(np.arange(9.0), 0.99), "s", q=0.99)
    assert (few.value, few.low, few.high, few.note) == (None, None, None, "n=9 < 368")
    known = np.arange(1.0, 101.0)
    assert quantile(known).value == 50.5
    assert quantile(known, 0.95).value == pytest.approx(95.05) != known.max()
