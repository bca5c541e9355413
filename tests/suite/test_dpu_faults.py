"""A DPU's rank that dies or stops in the middle of a collective, in runs on a lab: named, in time, nothing lost."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from fabrics.lab import cluster
from fabrics.lab.config import LabFabric
from suite import launch
from tests import jobs, labs

DEADLINE_S, ALLOWED_S = 8.0, 5.0
START_S, RUN_S = 40.0, 90.0
PLAN = f"""
launches = 1
min_iterations = 4
[[offload_allreduce]]
compare = ["host", "staged"]
sizes = "4K"
max_iterations = 4
budget_s = 0.2
[[offload_allreduce]]
compare = ["host", "staged"]
sizes = "4M"
max_iterations = 1000000
precision = 0
budget_s = {DEADLINE_S - 1}
deadline_s = {DEADLINE_S}
[[offload_allreduce]]
compare = ["host", "staged"]
sizes = "64K"
max_iterations = 4
budget_s = 0.2
"""
DPU, RANK = "d1", 3
FABRIC = LabFabric("eth500m", 500e6)  # a collective of 4 MiB takes long enough to be hit in the middle
BUSY_BYTES, LOOK_S = 200_000, 0.02


@pytest.fixture(scope="module")
def lab() -> Iterator[cluster.Lab]:
    with labs.or_skip("dpufault", fabrics=(FABRIC,)) as made:
        yield made


def hit(lab: cluster.Lab, folder: Path, act: signal.Signals) -> tuple[list[dict[str, Any]], float]:
    """The records of a run whose DPU is hit while the second case is measured, and how long its end took."""
    plan = folder / "plan.toml"
    plan.write_text(PLAN)
    words = ["run", "--plan", str(plan), "--fabric", FABRIC.name, "--lab", lab.name, "-o", str(folder / "run")]
    with (folder / "err").open("w") as err:
        run = subprocess.Popen(
            [sys.executable, "-m", "suite.cli", *words], stdout=subprocess.DEVNULL, stderr=err,
            env=launch.clean_environment(),
        )  # fmt: skip
    try:
        wait(lambda: len(records(folder)) == 1, START_S)
        victim = psutil.Process(worker(run.pid))
        time.sleep(1.0)
        wait(lambda: busy(lab), START_S)
        victim.send_signal(act)
        hit_at = time.monotonic()
        family = [p.pid for p in psutil.Process(run.pid).children(recursive=True)]
        wait(lambda: len(records(folder)) >= 2, DEADLINE_S + ALLOWED_S + 5)
        took_s = time.monotonic() - hit_at
        assert run.wait(timeout=RUN_S) == 4, (folder / "err").read_text()
    finally:
        if run.poll() is None:
            run.kill()
            run.wait()
    assert not [pid for pid in family if jobs.lives(pid)]
    return records(folder), took_s


def busy(lab: cluster.Lab) -> bool:
    """Whether the DPU is in the middle of a collective: its device sends, which it does not in the hosts' modes."""
    sent = []
    for _ in range(2):
        path = f"/sys/class/net/{FABRIC.name}/statistics/tx_bytes"
        sent.append(int(subprocess.run(lab.enter(DPU, ["cat", path]), capture_output=True, check=True).stdout))
        time.sleep(LOOK_S)
    return sent[1] - sent[0] > BUSY_BYTES


def worker(run: int) -> int:
    """The process of the DPU's rank."""
    for process in psutil.Process(run).children(recursive=True):
        if "suite.worker" in process.cmdline() and process.environ().get("PMI_RANK") == str(RANK):
            return process.pid
    raise AssertionError("the DPU's rank does not run")


def records(folder: Path) -> list[dict[str, Any]]:
    path = folder / "run" / "records.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def wait(until: Callable[[], bool], limit_s: float) -> None:
    end = time.monotonic() + limit_s
    while not until():
        assert time.monotonic() < end, f"not within {limit_s} s"
        time.sleep(0.05)


def test_a_dpu_that_dies_is_told_by_name_and_the_run_goes_on(lab: cluster.Lab, tmp_path: Path) -> None:
    found, took_s = hit(lab, tmp_path, signal.SIGKILL)
    assert [(r["nbytes"], r["status"]) for r in found] == [(4096, "ok"), (4 << 20, "failed"), (65536, "ok")]
    assert re.match(
        rf"rank {RANK} on {DPU} was killed by SIGKILL \(last in \w+ \(call \d+\) in iteration \d+ of", why(found)
    )
    assert took_s < ALLOWED_S + 1
    assert found[1]["hosts"] == ["h0", "h1", "d0", "d1"] and found[1]["roles"][RANK] == "dpu"
    assert found[2]["method"]["used"] == {"staged": True}


def test_a_dpu_that_stops_is_told_by_name_when_the_deadline_has_passed(lab: cluster.Lab, tmp_path: Path) -> None:
    found, took_s = hit(lab, tmp_path, signal.SIGSTOP)
    assert [(r["nbytes"], r["status"]) for r in found] == [(4096, "ok"), (4 << 20, "timeout"), (65536, "ok")]
    told = why(found)
    assert told.startswith(f"passed its deadline of {DEADLINE_S:g} s: ")
    assert re.search(rf"rank {RANK} on {DPU} is stopped \(last in \w+ \(call \d+\) in iteration \d+ of", told), told
    assert re.search(r"rank 0 on h0 is in|ranks 0-[12] are in", told), told
    assert took_s < DEADLINE_S + ALLOWED_S


def why(found: list[dict[str, Any]]) -> str:
    return str(found[1]["reason"])
