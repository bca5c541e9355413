"""The command as a user runs it: real jobs, planted faults, wrong arguments."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from suite import leftovers, neighbours
from tests import jobs

PLAN = """
budget_s = 0.05
[plant_ok]
[latency]
sizes = "0,8"
[plant_raise]
[allreduce]
sizes = "8"
[plant_die]
[plant_wrong]
[plant_unsupported]
[plant_loop_error]
[plant_chatter]
"""


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]


def run(folder: Path, plan: str, *more: str, timeout_s: float = 120) -> jobs.Done:
    path = folder / "plan.toml"
    path.write_text(jobs.once(plan))
    where = ("--fabric", "shm", "--module", "tests.plant", "-o", str(folder / "run"))
    return jobs.fabricbench("run", "--plan", str(path), *where, *more, timeout_s=timeout_s)


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> tuple[jobs.Done, Path]:
    folder = tmp_path_factory.mktemp("faults")
    before = leftovers.present()
    done = run(folder, PLAN)
    assert leftovers.present() <= before  # a run also removes what others left long ago
    return done, folder / "run"


def test_statuses_and_reasons(faults: tuple[jobs.Done, Path]) -> None:
    done, folder = faults
    assert done.code == 4, done.err
    found = [(r["benchmark"], r["status"]) for r in records(folder)]
    assert found == [
        ("plant_ok", "ok"), ("latency", "ok"), ("latency", "ok"), ("plant_raise", "failed"), ("allreduce", "ok"),
        ("plant_die", "failed"), ("plant_wrong", "invalid"), ("plant_unsupported", "unsupported"),
        ("plant_loop_error", "failed"), ("plant_chatter", "ok"),
    ]  # fmt: skip
    reasons = {r["benchmark"]: r["reason"] for r in records(folder)}
    assert reasons["plant_raise"].endswith("raised RuntimeError: planted: this rank raises")
    assert reasons["plant_raise"].startswith("rank 1 on ")
    assert re.fullmatch(r"rank 1 on \S+ exited with code 3 \(last in Python code of the case\)", reasons["plant_die"])
    assert "MPI_Send (call 1) failed in iteration 0 on rank" in reasons["plant_loop_error"]


def test_the_traceback_is_told_once(faults: tuple[jobs.Done, Path]) -> None:
    done, _ = faults
    assert done.err.count("RuntimeError: planted: this rank raises\n") == 2  # the traceback's end, and the summary
    assert done.err.count("Traceback") == 2  # plant_raise and plant_loop_error


def test_a_wrong_result_publishes_no_time(faults: tuple[jobs.Done, Path]) -> None:
    (wrong,) = (r for r in records(faults[1]) if r["benchmark"] == "plant_wrong")
    assert wrong["metrics"] == {}


def test_shared_memory_is_proved_and_data_checked(faults: tuple[jobs.Done, Path]) -> None:
    (allreduce,) = (r for r in records(faults[1]) if r["benchmark"] == "allreduce")
    assert allreduce["proof"] == "proved"
    assert allreduce["validation"]["flipped_bit_caught"] is True
    assert allreduce["validation"]["checked_bytes"] == 2 * 8
    assert allreduce["method"]["sync"] == "round-time"
    assert allreduce["samples"]["time"]["shape"][0] == 2


def test_the_report_is_printed_stored_and_remade(faults: tuple[jobs.Done, Path]) -> None:
    done, folder = faults
    again = jobs.fabricbench("report", str(folder))
    assert again.code == 0
    assert again.out == done.out == (folder / "report.txt").read_text()
    for format_ in ("json", "csv"):
        assert jobs.inside("report", str(folder), "--format", format_).code == 0


def test_the_environment_is_kept(faults: tuple[jobs.Done, Path]) -> None:
    data = json.loads((faults[1] / "run.json").read_text())
    assert data["finished"]
    assert data["environment"]["mpi"].startswith("MPICH")
    assert data["jobs"][0]["thread_level"] == "single"
    assert data["jobs"][0]["cpus"][0] != [] and data["jobs"][0]["proof"]["verdict"] == "proved"
    assert [job["status"] for job in data["jobs"]].count("failed") == 3


@pytest.fixture(scope="module")
def left_out(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The records of a run of which some cases are left out, each with its reason."""
    folder = tmp_path_factory.mktemp("left-out")
    latency = "[latency]\nsizes = '8'\ndevices = ['cpu', 'cuda', 'cuda-staged']"
    done = run(folder, f"budget_s = 0.02\n{latency}\n[plant_unsupported]\n[allreduce]\nsizes = '8,1024G'")
    assert done.code == 0, done.err  # what is left out has its reason, and there are numbers beside it
    return records(folder / "run")


def test_the_devices_of_a_plan_are_measured_or_skipped_with_the_reason(left_out: list[dict[str, Any]]) -> None:
    """Numbers of the host's memory came out."""
    found = [record for record in left_out if record["benchmark"] != "allreduce"]
    assert sorted((r["benchmark"], r["device"], r["status"]) for r in found) == [
        ("latency", "cpu", "ok"),
        ("latency", "cuda", "skipped"),
        ("latency", "cuda-staged", "skipped"),
        ("plant_unsupported", "cpu", "unsupported"),
    ]
    assert all("no CUDA device: " in r["reason"] for r in found if r["status"] == "skipped")


def test_what_does_not_fit_into_memory_is_skipped_with_both_figures(left_out: list[dict[str, Any]]) -> None:
    small, large = (record for record in left_out if record["benchmark"] == "allreduce")
    assert (small["status"], large["status"]) == ("ok", "skipped")
    assert "GB for 2 ranks on a host, of which" in large["reason"]


def test_every_rank_raising_tells_one_traceback(tmp_path: Path) -> None:
    done = run(tmp_path, "[plant_raise_all]\nranks = [3]")
    assert done.code == 4
    assert done.err.count("Traceback") == 1
    assert "[rank 0 on" in done.err


def test_a_fabric_whose_bytes_went_elsewhere_is_told_and_not_published(tmp_path: Path) -> None:
    code = (
        "import sys, fabrics.recipes as r; r._ENVIRONMENTS['mpich'] = lambda fabric, devices: {'UCX_TLS': 'sm,self'};"
        "import suite.cli; sys.exit(suite.cli.main(sys.argv[1:]))"
    )
    plan = tmp_path / "plan.toml"
    plan.write_text("launches = 1\nbudget_s = 0.05\n[barrier]\n")
    where = ("--plan", str(plan), "--fabric", "tcp-lo", "-o", str(tmp_path / "run"))
    done = jobs.python("-c", code, "run", *where)
    assert done.code == 4
    assert "tcp-lo: disproved: " in done.err
    assert "shared memory" in done.err
    (record,) = records(tmp_path / "run")
    assert (record["status"], record["proof"]) == ("ok", "disproved")
    chapter = done.out.split("4 Allreduce and other collectives")[1].split("5 Overlap")[0]
    assert "tcp-lo" not in chapter


def _heed_interrupts() -> None:
    """What a shell starts in the background ignores SIGINT, and so do its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def started(tmp_path: Path) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """A run that hangs in its second case, and all its descendants."""
    plan = tmp_path / "plan.toml"
    plan.write_text("launches = 1\nbudget_s = 0.05\n[plant_ok]\n[plant_hang]\n")
    where = ("--fabric", "shm", "--module", "tests.plant", "-o", str(tmp_path / "run"))
    command = [sys.executable, "-m", "suite.cli", "run", "--plan", str(plan), *where]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, **pipes, text=True, preexec_fn=_heed_interrupts)  # noqa: PLW1509 - no threads
    until = time.monotonic() + 60
    while not ((tmp_path / "run" / "records.jsonl").exists() and records(tmp_path / "run")):
        assert time.monotonic() < until
        time.sleep(0.1)
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) >= 6  # mpiexec, its proxy, two watchdogs, two ranks
    return process, family


@pytest.mark.parametrize("act", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_workers_and_keeps_records(tmp_path: Path, act: signal.Signals) -> None:
    process, family = started(tmp_path)
    process.send_signal(act)
    try:
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "interrupted" in err
    assert "Traceback" not in err
    assert not [p for p in family if p.is_running()]
    assert [r["status"] for r in records(tmp_path / "run")] == ["ok"]
    assert f"interrupted: what was measured is in {tmp_path / 'run'}" in err
    assert "the run was interrupted" in (tmp_path / "run" / "report.txt").read_text()
    assert json.loads((tmp_path / "run" / "run.json").read_text())["finished"] is None


def test_a_killed_supervisor_leaves_no_job_behind(tmp_path: Path) -> None:
    process, family = started(tmp_path)
    process.kill()
    process.communicate(timeout=30)
    _, alive = psutil.wait_procs(family, timeout=15)
    assert not alive


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("run", "--quick", "--fabric", "eth9"), 2, "'eth9'"),
        (("run", "--quick", "--full"), 2, "not allowed with"),
        (("run", "--plan", "nope.toml"), 2, "cannot read plan nope.toml"),
        (("run", "--quick", "--pages", "giant"), 2, "giant"),
        (("run", "--quick", "--module", "no.such"), 2, "no module 'no'"),
        (("bench", "latncy"), 2, "unknown benchmark 'latncy': one of allgather"),
        (("bench", "latency", "--sizes", "12junk"), 2, "'12junk'"),
        (("bench", "allreduce", "--dtype", "float99"), 2, "'float99': one of float32"),
        (("bench", "allreduce", "--sizes", "10"), 2, "not a multiple of 4 B"),
        (("bench",), 2, "bench needs a NAME"),
        (("bench", "latency"), 4, "latency needs 2 ranks: this job has 1"),
        (("bench", "allreduce", "--iterations", "0"), 2, "'0' is not a whole number from 1 on"),
        (("bench", "allreduce", "--iterations", "-1"), 2, "'-1' is not a whole number"),
        (("bench", "allreduce", "--seconds", "nan"), 2, "'nan' is not a number of seconds above 0"),
        (("bench", "allreduce", "--seconds", "0"), 2, "'0' is not a number of seconds above 0"),
        (("bench", "allreduce", "--seconds", "1e400"), 2, "'1e400'"),
        (("bench", "allreduce", "--dtype", ""), 2, "unknown dtype ''"),
        (("bench", "allreduce", "--sizes", ""), 2, "malformed size ''"),
        (("bench", "barrier", "--sizes", "8"), 2, "barrier moves no data: leave out --sizes"),
        (("bench", "barrier", "--dtype", "int8"), 2, "barrier moves no data: leave out --dtype"),
        (("run", "--quick", "-o", ""), 2, "the folder's name is empty"),
        (("run", "--quick", "--fabric", "shm", "-o", "/proc/x"), 4, "cannot write the run into /proc/x"),
        (("run", "--quick", "--fabric", "shm", "-o", "/etc"), 2, "/etc is not empty"),
        (("run", "--quick", "--lab", "no-such-lab"), 2, "no-such-lab"),
        (("report", "no-such-run"), 2, "no-such-run"),
        (("frobnicate",), 2, "frobnicate"),
        ((), 2, "COMMAND"),
        (("lab", "exec", "h9", "true"), 2, ""),
    ],
)
def test_mistakes_are_one_line(arguments: tuple[str, ...], code: int, said: str) -> None:
    command = jobs.fabricbench if arguments == ("bench", "latency") else jobs.inside  # that one starts MPI
    done = command(*arguments)
    assert (done.code, done.out) == (code, ""), done.err
    assert said in done.err
    assert len(done.err.splitlines()) == 1, done.err


@pytest.mark.parametrize("command", ["run", "bench", "fabrics", "lab", "report"])
def test_help_has_an_example(command: str) -> None:
    done = jobs.inside(command, "--help")
    assert done.code == 0
    assert "example" in done.out
    assert f"fabricbench {command}" in done.out or f"fabricbench bench {command}" in done.out


def test_a_dry_run_says_what_and_how_long_and_writes_nothing(tmp_path: Path) -> None:
    done = jobs.inside("run", "--quick", "--dry-run", "--fabric", "shm", "-o", str(tmp_path / "run"))
    assert done.code == 0, done.err
    assert "minutes" in done.out
    assert "allreduce" in done.out
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "arguments",
    [("fabrics",), ("run", "--quick", "--dry-run", "--fabric", "shm"), ("bench", "barrier", "--seconds", "0.01")],
)
def test_an_output_that_takes_nothing_is_one_line(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "suite.cli", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 4
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [("fabrics",), ("bench", "allreduce", "--sizes", "8:1M", "--seconds", "0.01")])
def test_a_reader_that_leaves_is_no_fault(arguments: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "suite.cli", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=60) in (0, 4)
    told = process.stderr.read()
    process.stderr.close()
    assert "Traceback" not in told


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")
def test_a_full_disk_is_one_line_and_keeps_what_there_is(tmp_path: Path) -> None:
    with jobs.disk(tmp_path / "disk", "size=40k") as disk:
        plan = tmp_path / "plan.toml"
        plan.write_text("launches = 1\nbudget_s = 0.02\n[plant_ok]\n[latency]\nsizes = '0,1:64K'\n")
        where = ("--fabric", "shm", "--module", "tests.plant", "-o", str(disk / "run"))
        done = jobs.fabricbench("run", "--plan", str(plan), *where)
        assert done.code == 4
        assert "Traceback" not in done.err
        assert "cannot write: No space left on device; what was stored is kept" in done.err.splitlines()[-1]
        assert (disk / "run" / "records.jsonl").read_text().startswith('{"id":"plant_ok')


def test_two_runs_at_once_are_told(tmp_path: Path) -> None:
    with neighbours.watch() as first:
        assert not first.disturbed
        done = run(tmp_path, "[plant_ok]")
        assert first.disturbed  # the first one finds out too
    assert done.code == 0
    assert f"warning: {neighbours.WARNING}" in done.err
    assert f"WARNING: {neighbours.WARNING}" in " ".join(done.out.split())


@pytest.mark.parametrize("arguments", [("fabrics",), ("bench", "--list"), ("bench", "barrier", "--seconds", "0.01")])
def test_a_closed_output_is_one_line(arguments: tuple[str, ...]) -> None:
    done = jobs.run(["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "suite.cli", *arguments])
    assert (done.code, done.err.splitlines()) == (4, ["fabricbench: standard output is closed: nothing could be told"])


def test_a_run_without_a_number_is_not_called_good(tmp_path: Path) -> None:
    done = run(tmp_path, "[plant_unsupported]")
    assert done.code == 4
    assert [r["status"] for r in records(tmp_path / "run")] == ["unsupported"]
