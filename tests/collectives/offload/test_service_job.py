"""Requests to the DPUs' service in real jobs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import jobs
from tests.collectives.offload.test_engine_job import OVER_LO


def rows(ranks: int, *words: str) -> Any:
    done = jobs.mpi(ranks, "-m", "tests.collectives.offload.service_job", *words, env=OVER_LO)
    return done, [json.loads(line) for line in done.out.splitlines() if line[:1] in "[{"]


@pytest.mark.parametrize(
    ("ranks", "hosts", "workers", "transport"),
    [(4, 2, 1, "staged"), (4, 2, 1, "window"), (4, 2, 1, "rma"), (6, 4, 1, "staged"), (6, 2, 2, "window")],
)
def test_sums_of_many_sizes_at_once_are_right(ranks: int, hosts: int, workers: int, transport: str) -> None:
    done, told = rows(ranks, str(hosts), str(workers), transport, "sums")
    assert done.code == 0, done.err
    (found,) = told
    for host in found[:hosts]:
        assert host["wrong"] == 0
    for dpu in found[hosts:]:
        assert dpu["done"] == found[0]["operations"]
        assert dpu["cpu_share"] < 0.5  # it sleeps while there is nothing to do


@pytest.mark.parametrize("transport", ["staged", "window"])
def test_a_dpu_that_stops_is_named_within_the_deadline(transport: str) -> None:
    done, told = rows(4, "2", "1", transport, "stopped")
    assert done.code != 0
    (first,) = [row for row in told if row["rank"] == 0]
    assert first["error"].startswith("DPU ")
    assert "(rank 2) did not " in first["error"]
    assert "an allreduce of 200000 elements within" in first["error"]
    assert first["after_s"] < 10


def test_hosts_of_one_dpu_that_ask_for_different_things_are_named() -> None:
    done, told = rows(6, "4", "1", "staged", "differing")
    assert done.code != 0
    errors = [row["error"] for row in told if row["rank"] >= 4]
    assert errors
    assert "order different things from one DPU" in errors[0]
