"""Tests of a cluster's MPI and fabric, to copy and to change: what must hold, and what is to be watched over time.

Run them as pytest launches a job a test, or inside one job of your own, where the ranks of pytest measure:

    pytest examples/pytest
    mpiexec -n 2 pytest examples/pytest

    pytest examples/pytest --benchmark-save=before
    pytest examples/pytest --benchmark-compare=0001 --benchmark-compare-fail=median:10%
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from microbench.record import Record

Measure = Callable[..., Record]


def test_a_small_message_arrives_within_a_millisecond(fabric_case: Measure) -> None:
    """A limit: the upper end of the interval has to keep it, so that luck does not."""
    record = fabric_case("latency", ranks=2, size=8, seconds=0.2)
    high = record.metrics["time"].high
    assert high is None or high < 1e-3


def test_sums_are_right(fabric_case: Measure) -> None:
    """Data is checked in every case; one that comes back wrong fails the test by itself."""
    assert fabric_case("allreduce", size="64K", dtype="float32", seconds=0.1).validation["checked_bytes"]


@pytest.mark.benchmark(group="allreduce")
@pytest.mark.parametrize("size", ["8", "64K"])
def test_allreduce(fabric_benchmark: Measure, size: str) -> None:
    """A benchmark: pytest-benchmark's statistics are of the samples that the native loop took."""
    fabric_benchmark("allreduce", size=size, seconds=0.2)
