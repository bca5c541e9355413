"""A rank killed or stopped at a random moment: the run names it, keeps what it had, ends in time, leaves nothing."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from suite import leftovers
from tests.figures.runs import command
from tests.figures.table import Row, figure

DEADLINE_S, ALLOWED_S = 4.0, 5.0
START_S = 90.0
LATEST_S = 8.0  # after the first job has begun; the run takes twice as long
RUN_S = 240.0
PLAN = f"""
launches = 2
deadline_s = {DEADLINE_S}
budget_s = 1.0
precision = 0
max_iterations = 100000
[latency]
sizes = "8,64K"
[allreduce]
sizes = "8,64K,1M"
[barrier]
"""


@dataclass
class Victim:
    """The rank that is hit, when, and how."""

    pid: int
    rank: int
    act: signal.Signals
    at_s: float = field(default_factory=time.monotonic)


def measure(folder: Path, lab: str, runs: int, seed: int = 7) -> tuple[list[Row], list[Row]]:
    """``runs`` runs, killed and stopped in turns, on shared memory and on the lab in turns."""
    rng = random.Random(seed)  # noqa: S311 - moments, not secrets
    rows = []
    for number in range(runs):
        act = (signal.SIGKILL, signal.SIGSTOP)[number % 2]
        fabric = ("shm", "eth2g5")[number // 2 % 2]
        rows.append({"run": number, "fabric": fabric, **_one(folder / f"killed-{number}", lab, fabric, act, rng)})
        print(f"killed: {rows[-1]}", flush=True)
    good = sum(all(row[name] for name in ("named", "kept", "in time", "clean", "rest")) for row in rows)
    worst = max(float(row["s"]) for row in rows)
    name = f"runs with a rank killed or stopped: named, nothing lost, clean, in time (slowest {worst:.1f} s)"
    return rows, [figure(name, f"= {runs}", good, runs, good == runs)]


def _one(folder: Path, lab: str, fabric: str, act: signal.Signals, rng: random.Random) -> Row:
    before, families = leftovers.present(), set[psutil.Process]()
    with (folder.with_suffix(".err")).open("w") as err:
        run = subprocess.Popen(command(folder, PLAN, lab, fabric), stdout=subprocess.DEVNULL, stderr=err)
        try:
            _wait(lambda: _workers(run.pid), START_S)
            time.sleep(rng.uniform(0.0, LATEST_S))
            _wait(lambda: _workers(run.pid), START_S)
            families |= set(psutil.Process(run.pid).children(recursive=True))
            records = _lines(folder)
            victim = _hit(run.pid, act, rng)
            _wait(lambda: _told(folder) or run.poll() is not None, START_S + ALLOWED_S + 10)
            took = time.monotonic() - victim.at_s
            families |= set(psutil.Process(run.pid).children(recursive=True))
            run.wait(timeout=RUN_S)
        finally:
            if run.poll() is None:
                run.kill()
                run.wait()
    alive = [p for p in families if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
    reasons = [str(job.get("reason")) for job in _told(folder)]
    if not reasons and len(_lines(folder)) == _planned(folder):  # hit when all was done and safe: try again
        return _one(folder.with_name(folder.name + "+"), lab, fabric, act, rng)
    return {
        "act": act.name, "rank": victim.rank, "s": round(took, 2), "reason": reasons[0] if reasons else "",
        "named": any(f"rank {victim.rank} " in reason for reason in reasons),
        "kept": _lines(folder)[: len(records)] == records, "in time": took <= _limit_s(reasons) + ALLOWED_S,
        "clean": not alive and not leftovers.remove_new(before), "rest": len(_lines(folder)) == _planned(folder),
    }  # fmt: skip


def _limit_s(reasons: list[str]) -> float:
    """The deadline of the stage that the rank was hit in, as the reason tells it; of a death, the case's."""
    found = re.search(r"(?:deadline of|within) ([0-9.]+) s", reasons[0]) if reasons else None
    return float(found[1]) if found else DEADLINE_S


def _workers(pid: int) -> Mapping[int, int]:
    """The ranks' processes below the run, by rank."""
    found = {}
    for process in psutil.Process(pid).children(recursive=True):
        try:
            if "suite.worker" in process.cmdline() and "PMI_RANK" in process.environ():
                found[int(process.environ()["PMI_RANK"])] = process.pid
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found if len(found) == 2 else {}


def _hit(pid: int, act: signal.Signals, rng: random.Random) -> Victim:
    rank, process = rng.choice(sorted(_workers(pid).items()))
    victim = Victim(process, rank, act)
    psutil.Process(process).send_signal(act)
    return victim


def _lines(folder: Path) -> list[bytes]:
    path = folder / "records.jsonl"
    return path.read_bytes().splitlines() if path.exists() else []


def _told(folder: Path) -> list[dict[str, Any]]:
    """The jobs of which the run has something to tell; one that is on counts as lost."""
    path = folder / "run.json"
    jobs = json.loads(path.read_text())["jobs"] if path.exists() else []
    return [job for job in jobs if job.get("status") != "lost" and job.get("reason")]


def _planned(folder: Path) -> int:
    plan = json.loads((folder / "run.json").read_text())["plan"]
    return sum(len(job["cases"]) for job in plan["jobs"])


def _wait(until: Callable[[], Any], limit_s: float) -> None:
    end = time.monotonic() + limit_s
    while not until():
        if time.monotonic() > end:
            raise TimeoutError(f"not within {limit_s} s")
        time.sleep(0.02)
