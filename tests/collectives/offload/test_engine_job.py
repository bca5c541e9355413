"""The engine in real jobs over loopback and on a lab."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from collectives.offload.channel import TRANSPORTS
from collectives.offload.pieces import OPERATIONS
from tests import jobs, labs

OVER_LO = {"MPIR_CVAR_CH4_NETMOD": "ofi", "MPIR_CVAR_NOLOCAL": "1", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo"}
COUNTS = ("1", "7", "1001")
SHAPES = {"a DPU each": (2, 1, 4), "two workers": (2, 2, 6), "two hosts a DPU": (4, 1, 6), "uneven": (3, 1, 5)}


def told(hosts: int, workers: int, ranks: int, *counts: str) -> dict[str, Any]:
    program = ("-m", "tests.collectives.offload.engine_job", str(hosts), str(workers), ",".join(TRANSPORTS))
    done = jobs.mpi(ranks, *program, ",".join(counts), env=OVER_LO)
    assert done.code == 0, done.err
    return dict(json.loads(done.out.splitlines()[-1]))


@pytest.fixture(scope="module", params=SHAPES)
def found(request: pytest.FixtureRequest) -> dict[str, Any]:
    return told(*SHAPES[request.param], *COUNTS)


def test_every_result_is_right_bit_by_bit(found: dict[str, Any]) -> None:
    """Whole, in pieces, in little memory; counts below the number of pieces; several operations in a row."""
    assert found["why_not"] == dict.fromkeys(TRANSPORTS, "")
    assert len(found["wrong"]) == len(TRANSPORTS) * (len(OPERATIONS) * len(COUNTS) * 3 + len(COUNTS) * 3 + 1)
    assert {name: wrong for name, wrong in found["wrong"].items() if wrong} == {}


def test_small_memory_is_kept_to_and_told(found: dict[str, Any]) -> None:
    for name, method in found["method"].items():
        transport, operation, _, variant = name.split()
        assert method["transport"] == transport
        assert method["among_dpus"].startswith("MPI_I")
        if transport == "window":
            assert "staging_bytes" not in method
        elif variant == "2":
            assert method["staging_bytes"] <= 1024, name
        if variant == "0":
            assert method["pieces"] <= method["workers"], (name, operation)
    small = found["method"]["staged allreduce 1001 2"]
    assert small["pieces"] > small["slots"] * small["workers"]


def test_nothing_is_left_open(found: dict[str, Any]) -> None:
    assert found["descriptors_left"] <= 0


def test_many_pieces_through_little_memory_do_not_stall() -> None:
    """More pieces than a provider has receive buffers: the host waits for places, so that none waits in MPI."""
    found = told(2, 1, 4, "20001")
    assert found["method"]["staged allreduce 20001 2"]["pieces"] > 300
    assert {name: wrong for name, wrong in found["wrong"].items() if wrong} == {}


@pytest.mark.parametrize(("scenario", "said"), [("closed", "is not found here"), ("token", "another process")])
def test_a_window_into_another_process_is_refused_on_all_ranks(scenario: str, said: str) -> None:
    done = jobs.mpi(4, "-m", "tests.collectives.offload.refused_job", scenario, env=OVER_LO)
    assert done.code == 0, done.err
    (reasons,) = [json.loads(line) for line in done.out.splitlines() if line.startswith("[")]
    assert len(set(reasons)) == 1
    assert reasons[0].startswith("host and DPU do not share a kernel: rank 2: the memory of host")
    assert said in reasons[0]


def test_on_a_lab_the_bytes_cross_the_dpus_devices() -> None:
    nbytes = 1 << 20
    with labs.or_skip("offload") as lab:
        where = ["-launcher", "ssh", "-launcher-exec", str(lab.agent), "-hosts", "h0,h1,d0,d1", "-ppn", "1", "-n", "4"]
        settings = ["-bind-to", "none", "-genv", "UCX_NET_DEVICES", "eth2g5", "-genv", "UCX_TLS", "tcp,self"]
        program = [sys.executable, "-m", "tests.collectives.offload.lab_job", "eth2g5", str(nbytes)]
        mpiexec = str(Path(sys.executable).with_name("mpiexec"))
        done = jobs.run(lab.enter("h0", [mpiexec, *where, *settings, *program, ",".join(TRANSPORTS)]))
    assert done.code == 0, done.err
    found = json.loads(done.out.splitlines()[-1])
    assert found["waiting"] == "poll"
    for transport in TRANSPORTS:
        assert found[transport]["right"], transport
        sent = [row["eth2g5"][1] / found["times"] for row in found[transport]["sent"]]
        among, back = nbytes, 0 if transport == "window" else nbytes  # of two DPUs each sends the other a vector
        assert all(among + back <= dpu < 1.3 * (among + back) + 1e5 for dpu in sent[2:]), transport
        if transport == "window":
            assert max(sent[:2]) < 0.1 * nbytes  # a host's own device carries nothing but barriers
        assert len(found[transport]["table"]) == 3  # whole, 256 KiB, 64 KiB
