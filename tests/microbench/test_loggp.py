"""LogGP's probes: what an iteration's stamps mean, and a job that has them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from microbench.loggp import BENCHMARKS, BURST, METRICS, series, spans
from tests import jobs

(BENCHMARK,) = BENCHMARKS


def test_parts_are_told_from_stamps_alone() -> None:
    """The columns of delays, which tell how early each began, are none of the stamps."""
    calls = [(name,) for name in ("stamp", "MPI_Send", "stamp", "MPI_Send", "stamp", "stamp", "deadline", "wait_until",
                                  "stamp", "MPI_Recv", "stamp", "wait_until", "stamp")]  # fmt: skip
    columns = np.array([[100, 130, 200, 210, -7, 260, 300, -9, 340]])
    assert spans(calls, columns).tolist() == [[30, 70, 50, 40]]


def test_metrics_of_an_iteration() -> None:
    """A round trip of 40 us, 8 messages in a burst that take 7 us each, delays of 50 us, overheads of 2 and 3 us."""
    sender = [40_000, 40_000 + 7 * 7000, BURST * 52_000, BURST * 50_000]
    receiver = [0, 0, BURST * 53_000, BURST * 50_000]
    found = series(np.array([[sender], [receiver]]))
    assert {name: ns.tolist() for name, ns in found.items()} == {
        "time": [20_000], "burst": [7000], "send_overhead": [2000], "receive_overhead": [3000],
    }  # fmt: skip


def test_probes_and_a_reduction_in_a_job() -> None:
    done = jobs.mpi(2, "-m", "suite.cli", "bench", "loggp", "--sizes", "8,64K", "--seconds", "0.05", "--json")
    assert done.code == 0, done.err
    small, large = (json.loads(line) for line in done.out.splitlines())
    for record in (small, large):
        assert (record["status"], record["direction"]) == ("ok", "ping-pong")
        assert set(record["metrics"]) == set(METRICS)
        assert record["method"]["lead_s"] == pytest.approx(3 * record["method"]["delay_s"])
        assert record["validation"]["checked_bytes"] == 2 * record["nbytes"]
    times = {name: small["metrics"][name]["value"] for name in METRICS}
    assert 0 < times["send_overhead"] < times["time"]
    assert 0 < times["receive_overhead"] < 2 * times["time"]
    assert large["metrics"]["burst"]["value"] > times["burst"]


def test_a_reduction_alone() -> None:
    done = jobs.mpi(1, "-m", "suite.cli", "bench", "reduce_local", "--sizes", "8,1M", "--seconds", "0.05", "--json")
    assert done.code == 0, done.err
    small, large = (json.loads(line) for line in done.out.splitlines())
    assert large["metrics"]["time"]["value"] > 10 * small["metrics"]["time"]["value"]
    assert large["metrics"]["bandwidth"]["value"] == pytest.approx((1 << 20) / large["metrics"]["time"]["value"])
    assert large["validation"]["checked_bytes"] == 1 << 20
