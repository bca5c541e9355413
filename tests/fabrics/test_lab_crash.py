"""Labs whose making was killed: whatever is left is seen, replaced and removed. They need root; else they skip."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fabrics.errors import UserError
from fabrics.lab import cleanup, cluster, groups, slurm
from fabrics.lab.config import LabConfig
from fabrics.lab.enter import BASE, NETNS, namespace
from tests.fabrics.conftest import DEADLINE_S, ROOT
from tests.fabrics.test_lab import host_says, traces

SEED = 20200922
MAKE = """
from fabrics.lab import cluster, config
cluster.up(config.LabConfig({name!r}, {nodes}, slurm={slurm}))
"""


def making(name: str, nodes: int, with_slurm: bool = False) -> subprocess.Popen[bytes]:
    """A process that makes a lab, to be killed."""
    program = MAKE.format(name=name, nodes=nodes, slurm=with_slurm)
    return subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)


@pytest.mark.parametrize("stage", ["namespaces", "members", "links"])
def test_a_killed_up_is_cleaned_up(spare: str, stage: str) -> None:
    signs = {
        "namespaces": Path(NETNS, namespace(spare, "h0")),
        "members": Path(BASE, spare, "h0", "boot_id"),
        "links": Path(BASE, spare, "d19", "boot_id"),
    }
    process = making(spare, 20)
    deadline = time.monotonic() + DEADLINE_S
    while not signs[stage].exists() and time.monotonic() < deadline:
        time.sleep(0.0005)
    process.kill()
    assert process.wait(timeout=DEADLINE_S) == -signal.SIGKILL
    with pytest.raises(UserError, match="is not up"):
        cluster.load(spare)
    assert next(status for status in cluster.status() if status.name == spare).lab is None
    lab = cluster.up(LabConfig(spare))
    assert host_says(lab, "h1", "hostname") == "h1"
    assert cluster.down(spare)
    assert traces(spare) == []


@pytest.mark.parametrize("turn", range(8))
def test_an_up_killed_at_a_random_time_leaves_what_down_removes(spare: str, turn: int) -> None:
    delays = np.random.default_rng(SEED + turn)
    took_s = _time_to_make(spare, 4)
    for _ in range(3):
        _kill_after(making(spare, 4), delays.uniform(0.2, 1.0) * took_s)
        cluster.down(spare)
        assert traces(spare) == []
        assert cleanup.processes(spare) == []


@pytest.mark.parametrize("turn", range(4))
def test_an_up_with_slurm_killed_at_a_random_time_leaves_what_down_removes(spare: str, turn: int) -> None:
    if reason := slurm.why_not():
        pytest.skip(reason)
    delays = np.random.default_rng(SEED + turn)
    took_s = _time_to_make(spare, 2, with_slurm=True)
    _kill_after(making(spare, 2, with_slurm=True), delays.uniform(0.2, 1.0) * took_s)
    running = set(_daemons_of(spare))
    cluster.down(spare)
    assert traces(spare) == []
    assert not running & set(_daemons_of(spare))


def _time_to_make(name: str, nodes: int, with_slurm: bool = False) -> float:
    start = time.monotonic()
    assert making(name, nodes, with_slurm).wait(timeout=DEADLINE_S) == 0
    took_s = time.monotonic() - start
    assert cluster.down(name)
    return took_s


def _kill_after(process: subprocess.Popen[bytes], delay_s: float) -> None:
    try:
        process.wait(timeout=delay_s)
    except subprocess.TimeoutExpired:
        process.kill()
    assert process.wait(timeout=DEADLINE_S) in {0, -signal.SIGKILL}


def _daemons_of(name: str) -> list[int]:
    """The processes that were started with a path of the lab's Slurm."""
    home, found = str(slurm.folder(name)).encode(), []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue  # it has ended
            found += [int(entry.name)] * (home in words)
    return found


def test_a_down_that_was_killed_is_finished_by_the_next(spare: str) -> None:
    cluster.limit_cpu(cluster.up(LabConfig(spare)), 0.5, "h0")
    cleanup._unmake(spare, Path(BASE, spare))  # all but the control group
    assert groups.folders(spare)
    assert spare in [status.name for status in cluster.status()]
    assert cluster.down(spare)
    assert traces(spare) == []


@pytest.mark.parametrize("left", ["file", "folder", "mount"])
def test_what_else_may_be_left(spare: str, left: str) -> None:
    lab = cluster.up(LabConfig(spare, dpus=False))
    if left == "file":
        (lab.home / "lab.json").unlink()
    elif left == "folder":
        Path(NETNS, namespace(spare, "extra")).touch()  # a pin without its namespace
    else:
        cleanup._unpin(Path(NETNS, namespace(spare, "h1")))
    assert next(status for status in cluster.status() if status.name == spare).lab is None or left == "folder"
    assert cluster.down(spare)
    assert traces(spare) == []
