"""Training that ``bench`` launches over a fabric, and a rank that dies while it trains."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import psutil

from suite import launch
from tests import jobs

TRAINED_S = 3.5
"""Of a processor's time: importing torch takes less, and nothing but steps follows."""
START_S, END_S = 100.0, 40.0
OPTIONS = ("--model", "resnet20", "--batch", "2", "--seconds", "600", "--iterations", "100000", "--precision", "0")


def worker(run: int, rank: int) -> psutil.Process | None:
    for process in psutil.Process(run).children(recursive=True):
        if "suite.worker" in process.cmdline() and process.environ().get("PMI_RANK") == str(rank):
            return process
    return None


def trains(run: int) -> psutil.Process:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        found = worker(run, 1)
        if found is not None and found.cpu_times().user > TRAINED_S:
            return found
        time.sleep(0.1)
    raise AssertionError("rank 1 does not train")


def test_rank_that_dies_in_the_middle_of_training_is_named_and_ends_the_job(tmp_path: Path) -> None:
    """The others are in an exchange with it, by gloo or by MPI, which would wait for ever."""
    words = ["-m", "suite.cli", "bench", "train", "--hook", "mpi,gloo", "--fabric", "tcp-lo", "--json", *OPTIONS]
    here = str(Path(__file__).parents[2])
    env = launch.clean_environment() | {"PYTHONPATH": here}
    with (tmp_path / "err").open("w") as err:
        run = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, stderr=err, env=env, cwd=tmp_path)
    try:
        victim = trains(run.pid)
        family = [p.pid for p in psutil.Process(run.pid).children(recursive=True)]
        victim.kill()
        out, _ = run.communicate(timeout=END_S)
    finally:
        if run.poll() is None:
            run.kill()
            run.wait()
    assert run.returncode == 4, (tmp_path / "err").read_text()
    (record,) = (json.loads(line) for line in out.splitlines())
    assert (record["status"], record["workload"]) == ("failed", "resnet20 32px batch 2, mpi/gloo")
    assert record["reason"].startswith("rank 1 on ")
    assert "was killed by SIGKILL" in record["reason"]
    assert not [pid for pid in family if jobs.lives(pid)]
    (stored,) = (tmp_path / "runs").glob("*/records.jsonl")
    assert json.loads(stored.read_text())["status"] == "failed"
