"""Ranks that die, hang, are stopped or disagree: real jobs, told by rank, host, call and iteration."""

from __future__ import annotations

import json
import os
import re
import socket
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from fabrics.model import Fabric
from fabrics.recipes import recipe
from microbench.case import Case
from suite import launch, leftovers
from suite.placement import Seats, place
from suite.supervise import Ending, supervise
from suite.watchdog import frame
from tests import jobs

HOST = socket.gethostname()
SHM = Fabric("shm", "shm", (HOST,))
CPUS = sorted(os.sched_getaffinity(0))
LIMIT_S = 5.0  # what every case promises: it ends within its deadline and this


@dataclass
class Job:
    """What a supervised job came to, how long after its last case began, and which processes it had."""

    ending: Ending
    took_s: float
    log: list[str]
    events: list[dict[str, Any]]
    family: set[int] = field(default_factory=set)


def job(benchmark: str, ranks: int, deadline_s: float = 30, start_s: float = 30, plant: str = "tests.plant") -> Job:
    """One case of a planted benchmark in a real job on this machine."""
    cases = [asdict(Case(benchmark, "shm", ranks=ranks, deadline_s=deadline_s))]
    spec = {
        "fabric": SHM.as_dict(), "roles": ["host"] * ranks, "launch": 1, "seed": 1, "pages": "small",
        "modules": [plant], "cases": cases,
    }  # fmt: skip
    program = launch.worker_program("single", place(SHM, Seats(ranks), CPUS).cpus, start_s)
    env = {**recipe(SHM, "mpich").env, "OMP_NUM_THREADS": "1"}
    command = launch.job_command(launch.find_launcher(), ["localhost"] * ranks, program, env)
    events: list[dict[str, Any]] = []
    log: list[str] = []
    family: set[int] = set()
    began = [time.monotonic()]

    def handle(event: dict[str, Any]) -> None:
        events.append(event)
        family.update(p.pid for p in psutil.Process().children(recursive=True))
        if event["event"] == "start":
            began.append(time.monotonic())

    before = leftovers.present()
    ending = supervise(command, launch.clean_environment(), spec, handle, log.append, start_s)
    took_s = time.monotonic() - began[-1]
    leftovers.remove_new(before)
    assert len(family) >= 2 + 2 * ranks
    assert not [pid for pid in family if jobs.lives(pid)]
    return Job(ending, took_s, log, events, family)


def test_a_stopped_rank_is_told_with_its_call_and_iteration() -> None:
    done = job("plant_stop", 3, deadline_s=1.5)
    assert done.took_s < 1.5 + LIMIT_S
    assert (done.ending.status, done.ending.case) == ("timeout", 0)
    call = r"\w+ \(call [01]\) in iteration \d+ of 1000000"
    assert re.fullmatch(
        rf"passed its deadline of 1\.5 s: rank 2 on {HOST} is stopped \(last in {call}\);"
        rf" ranks 0-1 on {HOST} are in MPI_Barrier \(call 1\) in iteration \d+ of 1000000",
        done.ending.reason,
    ), done.ending.reason
    assert int(done.ending.reason.split("in iteration ")[1].split()[0]) >= 10


@pytest.mark.parametrize(
    ("plant", "how", "ranks"), [("plant_kill", "was killed by SIGKILL", 2), ("plant_exit", "exited with code 3", 3)]
)
def test_a_dead_rank_is_told_with_its_end_call_and_iteration(plant: str, how: str, ranks: int) -> None:
    done = job(plant, ranks)
    assert done.took_s < LIMIT_S
    assert (done.ending.status, done.ending.case) == ("failed", 0)
    assert re.fullmatch(
        rf"rank {ranks - 1} on {HOST} {how} \(last in \w+ \(call [01]\) in iteration \d+ of 1000000\)",
        done.ending.reason,
    ), done.ending.reason


def test_a_hang_in_python_is_told_with_function_and_line() -> None:
    done = job("plant_hang", 3, deadline_s=1)
    assert done.took_s < 1 + LIMIT_S
    assert re.fullmatch(
        rf"passed its deadline of 1 s: ranks 0-1 on {HOST} are in _hang \(tests/plant\.py:\d+\);"
        rf" rank 2 on {HOST} is in _hang \(tests/plant\.py:\d+\)",
        done.ending.reason,
    ), done.ending.reason


def test_a_hang_in_a_native_call_is_told_beside_one_in_python() -> None:
    done = job("plant_deaf", 2, deadline_s=1)
    assert re.fullmatch(
        rf"passed its deadline of 1 s: rank 0 on {HOST} is in _deaf \(tests/plant\.py:\d+\);"
        rf" rank 1 on {HOST} is in MPI_Recv \(call 1\) in iteration 0 of 3",
        done.ending.reason,
    ), done.ending.reason


def test_a_rank_that_is_stopped_with_its_watchdog_is_told() -> None:
    done = job("plant_stop_all", 2, deadline_s=1)
    assert done.took_s < 1 + LIMIT_S
    assert f"s: rank 1 on {HOST} is stopped; rank 0 on {HOST} is in MPI_Barrier" in done.ending.reason


def test_a_rank_whose_watchdog_is_killed_dies_and_is_told() -> None:
    done = job("plant_kill_watchdog", 2)
    assert done.took_s < LIMIT_S
    assert done.ending == Ending("failed", f"rank 1 on {HOST} ended without a word", 0)


def test_a_rank_that_is_stopped_during_the_start_is_told() -> None:
    done = job("plant_ok", 2, start_s=3, plant="tests.plant_start")
    assert done.took_s < 3 + LIMIT_S
    assert (done.ending.status, done.ending.case) == ("timeout", None)
    stopped = f"rank 1 on {HOST} is stopped (last in MPI's start)"
    assert done.ending.reason.startswith(f"the start passed its deadline of 3 s: {stopped}; rank 0 on {HOST} is in ")


def test_the_first_rank_that_raises_is_told_and_the_job_ends() -> None:
    done = job("plant_raise_at_10", 3)
    assert done.took_s < LIMIT_S
    assert done.ending == Ending(
        "failed", f"rank 1 on {HOST} raised RuntimeError: planted: rank 1 raises in iteration 10", 0
    )
    assert [line for line in done.log if line.startswith("[rank 1") and "Traceback" in line]


def test_ranks_that_disagree_are_named_with_both_values() -> None:
    done = job("plant_mismatch", 3)
    assert done.took_s < LIMIT_S
    said = "ranks disagree on allreduce: rank 0 has count 8 of float32, rank 1 has count 4 of float32"
    assert done.ending.status == "failed"
    assert done.ending.reason.endswith(f" on {HOST}: {said}")


DIFFERING = [
    (("allreduce", "--sizes", "32"), ("allreduce", "--sizes", "16"),
     "ranks disagree on allreduce: rank 0 has sizes 32 of float32, rank 1 has sizes 16 of float32"),
    (("allreduce", "--sizes", "8"), ("allreduce", "--sizes", "8", "--sync", "barrier"),
     "ranks disagree on allreduce: rank 0 has sync auto, rank 1 has sync barrier"),
    (("allreduce", "--sizes", "32"), ("barrier",),
     "ranks disagree: rank 0 runs allreduce with sizes 32 of float32,"),
]  # fmt: skip


def test_commands_that_differ_in_one_job_are_told_in_a_line_each() -> None:
    """The ranks of one job have several pairs of commands to disagree on, one after the other."""
    program = [launch.worker_program("single", ())[0], "-m", "tests.suite.bench_job"]
    one, other = (json.dumps([pair[rank] for pair in DIFFERING]) for rank in (0, 1))
    command = [launch.find_launcher().path, "-n", "1", *program, one, ":", "-n", "1", *program, other]
    done = jobs.run(command, timeout_s=30)
    assert (done.code, done.out) == (0, "exit 4\n" * len(DIFFERING)), done.err
    lines = [line for line in done.err.splitlines() if line.startswith("fabricbench")]
    for line, (_, _, said) in zip(lines, DIFFERING, strict=True):
        assert line.startswith(f"fabricbench: {said}"), line


def test_a_shutdown_that_hangs_is_cut_off_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.supervise.BETWEEN_S", 1.0)
    done = job("plant_late", 2)
    assert (done.ending.status, done.ending.case) == ("ok", None)
    assert [e["event"] for e in done.events][-1] == "end"
    assert f"was ended: ranks 0-1 on {HOST} are silent; its results are safe" in done.log[-1]


def test_a_size_that_hangs_takes_no_other_with_it(tmp_path: Path) -> None:
    """Rows that are done stay, the hanging one says so, and the rest goes on in a fresh job."""
    plan = tmp_path / "plan.toml"
    plan.write_text(
        "launches = 1\n[plant_sized]\nranks = [3]\nsizes = '1K,1M,4M'\ndeadline_s = 1\n[plant_ok]\nranks = [3]\n"
    )
    before = leftovers.present()
    where = ("--fabric", "shm", "--module", "tests.plant", "-o", str(tmp_path / "run"))
    done = jobs.fabricbench("run", "--plan", str(plan), *where)
    assert done.code == 4, done.err
    records = [json.loads(line) for line in (tmp_path / "run" / "records.jsonl").read_text().splitlines()]
    assert [(r["benchmark"], r["nbytes"], r["status"]) for r in records] == [
        ("plant_sized", 1 << 10, "ok"), ("plant_sized", 1 << 20, "ok"), ("plant_sized", 4 << 20, "timeout"),
        ("plant_ok", None, "ok"),
    ]  # fmt: skip
    assert records[2]["reason"].startswith("passed its deadline of 1 s: rank")
    assert leftovers.remove_new(before) == []


def test_the_innermost_frame_of_our_own_is_told() -> None:
    stack = (
        "Stack (most recent call first):\n"
        f'  File "{os.__file__}", line 5 in waits\n'
        '  File "<frozen runpy>", line 88 in _run_code\n'
        '  File "/home/user/bench/mine.py", line 7 in measure\n'
        '  File "/home/user/bench/outer.py", line 8 in run\n'
    )
    assert frame(stack) == "measure (bench/mine.py:7)"
    assert frame("Stack (most recent call first):\n") == ""
