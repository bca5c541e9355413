"""A lab of this test run's own, and two ranks launched in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fabrics.lab import cluster
from fabrics.lab.check import why_not
from tests import labs

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(ROOT / "tests/fabrics/probe_program.py")
MPIEXEC = Path(sys.executable).with_name("mpiexec")
DEADLINE_S = 60


@pytest.fixture(scope="session")
def can_lab() -> None:
    """Skip, with the reason, where no lab can be made."""
    if reason := why_not():
        pytest.skip(reason)


@pytest.fixture(scope="session")
def lab(can_lab: None) -> Iterator[cluster.Lab]:
    """The default lab under a name of this process."""
    with labs.made("test") as made:
        yield made


@pytest.fixture
def spare(can_lab: None) -> Iterator[str]:
    """A lab name to make and break; whatever is left of it is removed."""
    name = f"spare{os.getpid()}"
    try:
        yield name
    finally:
        cluster.down(name)


def run_in(lab: cluster.Lab, host: str, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        lab.enter(host, command), capture_output=True, text=True, timeout=DEADLINE_S, check=False, cwd=ROOT
    )


def sleeper(lab: cluster.Lab, host: str, trap: str = "") -> subprocess.Popen[str]:
    """A process that has arrived in ``host`` and stays there for a minute."""
    command = lab.enter(host, ["sh", "-c", f"{trap}echo on; exec sleep 60"])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "on\n"
    return process


def output(*command: str) -> str:
    """What a command on this machine prints; it must succeed."""
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=True).stdout


def mpich_ranks(lab: cluster.Lab, hosts: tuple[str, str], env: Mapping[str, str], payload: int) -> list[dict[str, Any]]:
    """The rows of two MPI ranks on ``hosts`` of ``lab``, with recipe ``env``."""
    variables = [word for name, value in {**env, "PYTHONPATH": str(ROOT)}.items() for word in ("-genv", name, value)]
    command = [str(MPIEXEC), "-launcher", "ssh", "-launcher-exec", str(lab.agent), "-bind-to", "none", "-n", "2"]
    command += ["-hosts", ",".join(dict.fromkeys(hosts)), "-ppn", "1" if hosts[0] != hosts[1] else "2"]
    command += [*variables, sys.executable, PROGRAM, "mpich", str(payload)]
    return rows(run_in(lab, hosts[0], *command))


def gloo_ranks(lab: cluster.Lab, hosts: tuple[str, str], env: Mapping[str, str], payload: int) -> list[dict[str, Any]]:
    """The rows of two gloo ranks on ``hosts`` of ``lab``, with recipe ``env``."""
    common = {"MASTER_ADDR": lab.address(hosts[0], "mgmt"), "MASTER_PORT": "29571", "PYTHONPATH": str(ROOT), **env}
    ranks = [
        subprocess.Popen(
            lab.enter(host, [sys.executable, PROGRAM, "gloo", str(payload)]),
            env={**os.environ, **common, "RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, host in enumerate(hosts)
    ]
    found = []
    try:
        for rank in ranks:
            out, err = rank.communicate(timeout=DEADLINE_S)
            found += rows(subprocess.CompletedProcess(rank.args, rank.returncode, out, err))
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    return found


def rows(result: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """What the ranks printed; a job that failed fails the test with what it said."""
    assert result.returncode == 0, result.stderr[-2000:]
    return [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
