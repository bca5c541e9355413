"""A real job of two hosts and their DPUs over loopback: gradients that DPUs add up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import jobs

ROLES = ["host", "host", "dpu", "dpu"]
TINY = {"model": "resnet20", "batch": 2, "image_px": 16}
CASE = {"budget_s": 0.1, "max_iterations": 2}
REQUESTS: dict[str, dict[str, Any]] = {
    "computes": {"options": TINY | {"exchanges": ["dpu", "mpi"]}, "case": CASE},
    "replayed": {
        "options": TINY | {"exchanges": ["dpu-staged", "gloo"], "peer": "replayed", "dtype": "bfloat16"},
        "case": CASE,
    },
    "no dpu": {"options": TINY},
}
OVER_LO = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo", "GLOO_SOCKET_IFNAME": "lo"}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, dict[str, Any]]:
    requests = [request | {"roles": ROLES, "emulated": True} for request in REQUESTS.values()]
    program = ("-m", "mpi4py", str(Path(__file__).with_name("ddp_job.py")), json.dumps(requests), "multiple")
    job = jobs.mpi(len(ROLES), *program, timeout_s=100, env=OVER_LO)
    assert job.code == 0, job.err
    return dict(zip(REQUESTS, json.loads(job.out), strict=True))


def test_dpus_add_up_what_both_hosts_have_and_say_that_they_did(outcomes: dict[str, dict[str, Any]]) -> None:
    """The check compares every bucket with the mean that MPI makes of the hosts' own gradients."""
    line = outcomes["computes"]
    assert (line["status"], line["reason"], line["reported_ranks"]) == ("ok", "", [0, 1])
    first, checked, timed, buckets = 1, 2, 2, 2
    asked = (first + checked + timed) * buckets
    assert (line["method"]["dpus_asked"], line["method"]["dpus_done"]) == (asked, [asked, asked])
    assert np.array(line["samples"]["dpu.step"]).shape == np.array(line["samples"]["mpi.step"]).shape == (2, 2)


def test_replayed_peer_hands_over_as_much_and_only_the_first_host_is_told(outcomes: dict[str, dict[str, Any]]) -> None:
    line = outcomes["replayed"]
    assert (line["status"], line["reason"], line["reported_ranks"]) == ("ok", "", [0])
    assert line["method"]["peer"].startswith("replayed")
    assert (line["method"]["transport"], line["method"]["dtype"]) == ("staged", "bfloat16")
    assert np.array(line["samples"]["step"]).shape == (1, 2)
    assert line["metrics"]["dpu-staged.imbalance"]["note"] == "n/a: one rank trains"


def test_dpus_that_no_exchange_uses_are_an_error(outcomes: dict[str, dict[str, Any]]) -> None:
    assert outcomes["no dpu"]["raised"] == "CannotRun"
    assert "no exchange of the case uses them: add dpu" in outcomes["no dpu"]["reason"]
