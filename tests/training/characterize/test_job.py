"""The benchmark in real jobs over this machine's own transports."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests import jobs
from training.characterize.kernels import VARIANTS, base

JOB = str(Path(__file__).with_name("job.py"))
CPUS = sorted(os.sched_getaffinity(0))
KERNELS = "work,triad,forward,augment32,augment224"
CHOSEN = [variant for variant in VARIANTS if base(variant) in KERNELS.split(",")]
LINKS = [f"{link}.{name}" for link in ("host_host", "host_dpu", "dpu_dpu") for name in ("latency", "bandwidth")]


def told(ranks: int, *words: str) -> dict[str, Any]:
    done = jobs.mpi(ranks, JOB, *words, timeout_s=240)
    assert done.code == 0, done.err
    return json.loads(done.out.splitlines()[-1])


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    """Two hosts and two DPUs, and the kernels that what can hide is told from."""
    return told(4, "host,host,dpu,dpu", KERNELS, "0.1")


def test_all_that_is_promised_is_measured(whole: dict[str, Any]) -> None:
    assert (whole["status"], whole["roles"]) == ("ok", ["host", "host", "dpu", "dpu"])
    expected = {f"{role}.{variant}" for role in ("host", "dpu", "ratio") for variant in CHOSEN}
    hide = {f"hide.{name}" for name in ("staging", "reduction", "oda32", "oda224", "omv")}
    assert set(whole["metrics"]) == expected | set(LINKS) | hide
    for name, metric in whole["metrics"].items():
        assert metric["value"] > 0, name
        assert metric["low"] <= metric["value"] <= metric["high"], name


def test_every_rank_has_its_own_rates_and_samples(whole: dict[str, Any]) -> None:
    method = whole["method"]
    assert set(method["per_rank"]) == set(CHOSEN)
    assert all(len(rates) == 4 and min(rates) > 0 for rates in method["per_rank"].values())
    assert all(shape == [4, method["blocks"]] for shape in whole["shapes"].values())
    assert set(method["kernels"]) == set(KERNELS.split(","))
    assert set(method["links"]) == set(LINKS)
    assert [method["links"][f"{link}.latency"]["ranks"] for link in ("host_host", "host_dpu", "dpu_dpu")] == [
        [0, 1], [0, 2], [2, 3],
    ]  # fmt: skip
    assert {finding["what"] for finding in method["findings"]} >= {"allreduce", "O-DA 32px", "O-MV"}
    assert method["emulated"] is False


def test_ranks_are_left_where_they_were(whole: dict[str, Any]) -> None:
    assert whole["bound"] == [[CPUS[rank % len(CPUS)]] for rank in range(4)]


def test_one_host_and_its_dpu_have_one_link() -> None:
    got = told(2, "host,dpu", "work", "0.1")
    assert got["status"] == "ok"
    assert got["metrics"]["host_dpu.bandwidth"]["value"] > 0
    assert got["metrics"]["host_host.latency"]["note"] == "n/a: there is one host"
    assert got["metrics"]["dpu_dpu.bandwidth"]["note"] == "n/a: there is one DPU"
    assert got["metrics"]["hide.staging"]["value"] is None
    verdicts = {finding["what"]: finding["verdict"] for finding in got["method"]["findings"]}
    assert set(verdicts.values()) == {"not measured"}


def test_a_rank_without_torch_is_told_and_numpy_computes_for_all() -> None:
    got = told(2, "host,dpu", "matmul,conv", "0.1", "no torch")
    assert got["metrics"]["ratio.matmul"]["value"] > 0
    assert got["metrics"]["host.conv"] == got["metrics"]["host.conv_all"]
    assert got["metrics"]["dpu.conv"]["note"] == "n/a: no torch here"
    assert got["method"]["torch"] is None
    assert "no torch on ranks 1: numpy computes, on all ranks" in got["method"]["warnings"]


def test_a_rank_that_fails_is_named_and_nobody_waits_for_it() -> None:
    got = told(2, "host,dpu", "work,triad", "0.1", "raises")
    assert got == {"raised": "CannotRun", "said": "dpu: rank 1: ZeroDivisionError: division by zero"}


@pytest.mark.parametrize("roles", ["", "host,host"])
def test_without_dpus_it_says_what_to_give(roles: str) -> None:
    got = told(2, roles, "work", "0.1")
    assert (got["status"], got["metrics"]) == ("unsupported", {})
    assert "give each of its 2 ranks one, hosts first, such as --roles" in got["reason"]
