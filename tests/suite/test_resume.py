"""Going on with a run that was ended: real runs, killed at several points, and what must be the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from fabrics.errors import UserError
from fabrics.model import Fabric
from microbench import registry
from microbench.record import Record
from reports.load import load
from suite import resume
from suite.plan import Plan, make_plan
from suite.planfile import parse
from suite.store import TORN, RunFolder
from tests import jobs

PLAN = "launches = 2\nbudget_s = 0.05\n[plant_ok]\n[plant_slow]\n[latency]\nsizes = '0,8'\n[plant_unsupported]\n"
CASES = 5
SHM = Fabric("shm", "shm", ("vm",))
TCP = Fabric("eth10g", "tcp", ("h0", "h1"), {"h0": ("eth10g",), "h1": ("eth10g",)}, 10e9, emulated=True, lab="run1")


def arguments(folder: Path, plan: str = PLAN) -> list[str]:
    path = folder / "plan.toml"
    path.write_text(jobs.once(plan))
    return ["run", "--plan", str(path), "--fabric", "shm", "--module", "tests.plant", "-o", str(folder / "run")]


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]


def started(folder: Path, until: Callable[[Path], bool]) -> subprocess.Popen[bytes]:
    """A run that is under way, as far as ``until`` says."""
    command = [sys.executable, "-m", "suite.cli", *arguments(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    give_up = time.monotonic() + 60
    while not until(folder / "run"):
        assert time.monotonic() < give_up and process.poll() is None
        time.sleep(0.01)
    return process


def kill(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to the run; its workers end by themselves."""
    family = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait(timeout=30)
    _, alive = psutil.wait_procs(family, timeout=15)
    assert not alive


def lines(count: int) -> Callable[[Path], bool]:
    def reached(folder: Path) -> bool:
        path = folder / "records.jsonl"
        return (folder / "run.json").exists() and path.exists() and path.read_bytes().count(b"\n") >= count

    return reached


def check_samples(folder: Path) -> None:
    """Every record's samples are where it says, and are times."""
    for record in records(folder):
        for cited in record["samples"].values():
            data = (folder / cited["file"]).read_bytes()[cited["offset"] :]
            array = np.frombuffer(data, cited["dtype"], count=int(np.prod(cited["shape"])))
            assert (array > 0).all()
            if record["benchmark"].startswith("plant_"):
                assert array.tolist() == [*range(100, 110)] * 2


@pytest.mark.parametrize("count", [0, CASES + 2])
def test_a_killed_run_goes_on_with_what_is_missing(tmp_path: Path, count: int) -> None:
    folder = tmp_path / "run"
    kill(started(tmp_path, lines(count)))
    left, first = (folder / "records.jsonl").read_text(), json.loads((folder / "run.json").read_text())
    done = jobs.fabricbench(*arguments(tmp_path), "--resume")
    assert done.code == 0, done.err
    assert (folder / "records.jsonl").read_text().startswith(left)
    pairs = [(record["id"], record["launch"]) for record in records(folder)]
    assert len(pairs) == len(set(pairs)) == 2 * CASES
    check_samples(folder)
    run = json.loads((folder / "run.json").read_text())
    assert (run["id"], run["started"], run["command"]) == (first["id"], first["started"], first["command"])
    assert run["finished"] and run["ended"] == "finished"
    (when,) = run["resumed"]
    assert f"resumed      {when}" in done.out
    assert "NOT WHOLE" not in done.out
    numbers = [job["job"] for job in run["jobs"]]
    assert len(set(numbers)) == len(numbers)
    if count:  # the job that was killed is known, with the proof of its records
        assert [job["status"] for job in run["jobs"]].count("lost") == 1
        assert "lost: the run ended before this job did" in " ".join(done.out.split())
    again = jobs.inside(*arguments(tmp_path), "--resume")
    assert (again.code, again.out) == (0, done.out)
    assert again.err.splitlines()[-1] == f"fabricbench: nothing is missing of the run in {folder}"
    assert json.loads((folder / "run.json").read_text()) == run


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run that came to its end, with a case that failed."""
    folder = tmp_path_factory.mktemp("whole")
    plan = "budget_s = 0.05\n[plant_ok]\n[plant_raise]\n[latency]\nsizes = '0,8'\n"
    assert jobs.fabricbench(*arguments(folder, plan)).code == 4
    return folder


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    """It, to be damaged."""
    subprocess.run(["cp", "-r", f"{whole}/.", tmp_path], check=True)
    return tmp_path


def again(folder: Path, *more: str) -> jobs.Done:
    command = arguments(folder, (folder / "plan.toml").read_text())
    return jobs.fabricbench(*command, "--resume", *more)


def told_by(folder: Path, *more: str) -> jobs.Done:
    """What it says where it starts no job."""
    command = arguments(folder, (folder / "plan.toml").read_text())
    return jobs.inside(*command, "--resume", *more)


def test_a_failed_case_is_not_missing_and_still_told(copy: Path) -> None:
    before = (copy / "run" / "records.jsonl").read_bytes()
    done = told_by(copy)
    assert done.code == 4, done.err
    assert f"nothing is missing of the run in {copy / 'run'}" in done.err
    assert (copy / "run" / "records.jsonl").read_bytes() == before
    assert "raised RuntimeError: planted: this rank raises" in " ".join(done.out.split())


def test_what_failed_is_measured_again_if_asked(copy: Path) -> None:
    before = records(copy / "run")
    done = again(copy, "--retry")
    assert done.code == 4, done.err  # it fails again
    stay, new = records(copy / "run")[: len(before)], records(copy / "run")[len(before) :]
    assert stay == before
    assert [(record["benchmark"], record["status"]) for record in new] == [("plant_raise", "failed")]


def test_a_run_whose_failures_were_mended_counts_as_good(tmp_path: Path) -> None:
    plan = "budget_s = 0.05\n[plant_ok]\n[latency]\nsizes = '0,8'\n"
    assert jobs.fabricbench(*arguments(tmp_path, plan)).code == 0
    path, run = tmp_path / "run" / "records.jsonl", tmp_path / "run" / "run.json"
    good = path.read_text().splitlines()
    bad = {"status": "timeout", "reason": "rank 1 was silent", "metrics": {}, "samples": {}}
    path.write_text("\n".join([json.dumps({**json.loads(good[0]), **bad}), *good[1:]]) + "\n")
    told = json.loads(run.read_text())
    told["jobs"][0] |= {"status": "timeout", "reason": "rank 1 was silent"}
    run.write_text(json.dumps(told))
    assert told_by(tmp_path).code == 4
    done = again(tmp_path, "--retry")
    assert done.code == 0, done.err
    last = records(tmp_path / "run")[-1]
    assert (last["id"], last["status"]) == (json.loads(good[0])["id"], "ok")
    assert [job.get("retried") for job in json.loads(run.read_text())["jobs"]] == [True, None]
    for more in ((), ("--retry",)):
        done = told_by(tmp_path, *more)
        assert (done.code, "nothing is missing" in done.err) == (0, True)


def test_a_torn_line_is_cut_off_and_its_case_measured_again(copy: Path) -> None:
    path = copy / "run" / "records.jsonl"
    kept, last = path.read_bytes()[:-200], records(copy / "run")[-1]
    path.write_bytes(kept)
    done = again(copy)
    assert done.code == 4, done.err  # for the case that failed before
    assert f"warning: {TORN}" in done.err
    assert TORN in json.loads((copy / "run" / "run.json").read_text())["warnings"]
    assert TORN in " ".join(done.out.split())
    assert path.read_bytes().startswith(kept[: kept.rindex(b"\n") + 1])
    assert [record["id"] for record in records(copy / "run")].count(last["id"]) == 1
    assert load(copy / "run").notices == ()


def test_a_corrupt_line_stays_and_its_case_is_measured_again(copy: Path) -> None:
    path = copy / "run" / "records.jsonl"
    first, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"\x00" * 40 + b"\n" + b"".join(rest))
    assert again(copy).code == 4
    assert path.read_bytes().startswith(b"\x00" * 40 + b"\n" + b"".join(rest))
    assert json.loads(path.read_bytes().splitlines()[-1])["id"] == json.loads(first)["id"]
    (notice,) = load(copy / "run").notices
    assert "line 1 is corrupt" in notice


def test_a_whole_line_without_its_end_is_kept(tmp_path: Path) -> None:
    record = Record("x", "latency", "shm", "ok")
    with RunFolder(tmp_path) as folder:
        folder.write_run({"schema": 1})
        folder.add(record, {}, 1)
    path = tmp_path / "records.jsonl"
    path.write_bytes(path.read_bytes()[:-1])
    with RunFolder(tmp_path, resume=True) as folder:
        assert folder.mend() == ""
        folder.add(replace(record, launch=2), {}, 1)
    assert [r.launch for r in load(tmp_path).records] == [1, 2]


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".run.json.123").write_text('{"sche')
    with RunFolder(tmp_path) as folder:
        folder.write_run({"schema": 1})
    (tmp_path / ".report.txt.9").write_text("fab")
    with RunFolder(tmp_path, resume=True):
        assert not [path for path in tmp_path.iterdir() if path.name.startswith((".run", ".report"))]


def test_differing_options_are_named_and_nothing_is_touched(copy: Path) -> None:
    before = {path: path.read_bytes() for path in (copy / "run").iterdir() if path.is_file()}
    done = told_by(copy, "--seed", "2", "--pages", "huge")
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines() == [
        f"fabricbench: cannot resume {copy / 'run'}: seed was 1, now 2; pages was small, now huge;"
        " choose another folder or the same options"
    ]
    assert {path: path.read_bytes() for path in (copy / "run").iterdir() if path.is_file()} == before


def test_a_differing_environment_is_named(copy: Path) -> None:
    path = copy / "run" / "run.json"
    run = json.loads(path.read_text())
    now = run["environment"]["mpi"]
    run["environment"] |= {"mpi": "MPICH 4.0", "load_average": [9, 9, 9]}
    path.write_text(json.dumps(run))
    done = told_by(copy)
    assert done.code == 2
    assert f": MPI was MPICH 4.0, now {now}; choose" in done.err
    assert len(done.err.splitlines()) == 1


def test_the_second_of_two_runs_is_refused(tmp_path: Path) -> None:
    process = started(tmp_path, lines(1))
    try:
        done = jobs.inside(*arguments(tmp_path), "--resume")
    finally:
        kill(process)
    assert done.code == 2
    assert f"{tmp_path / 'run'} is in use by another run" in done.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--resume",), "--resume goes on with a run: say in which folder it is with -o DIR"),
        (("--resume", "-o", "no-such"), "no-such holds no run to go on with: leave out --resume to begin one"),
        (("--retry", "-o", "x"), "--retry measures again what went wrong in a run: name it with -o DIR --resume"),
        (("--resume", "-o", "no-such", "--dry-run"), "--dry-run tells what a whole run does: leave out --resume"),
    ],
)
def test_mistakes_are_one_line(more: tuple[str, ...], said: str) -> None:
    done = jobs.inside("run", "--quick", "--fabric", "shm", *more)
    assert (done.code, done.out, done.err) == (2, "", f"fabricbench: {said}\n")
    assert not Path("no-such").exists()


def test_a_damaged_run_is_one_line(copy: Path) -> None:
    (copy / "run" / "run.json").write_text("{")
    done = told_by(copy)
    assert done.code == 2
    assert "cannot resume: " in done.err and "not JSON" in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")
def test_a_run_that_filled_its_disk_goes_on_when_there_is_room(tmp_path: Path) -> None:
    with jobs.disk(tmp_path / "disk", "size=64k") as disk:
        command = arguments(disk, "budget_s = 0.02\n[plant_ok]\n[latency]\nsizes = '0,1:64K'\n")
        full = jobs.fabricbench(*command)
        assert full.code == 4
        assert "No space left on device; what was stored is kept" in full.err.splitlines()[-1]
        stored = (disk / "run" / "records.jsonl").read_bytes()
        assert stored.endswith(b"\n")
        assert jobs.inside("report", str(disk / "run")).code == 0
        subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)
        done = jobs.fabricbench(*command, "--resume")
        assert done.code == 0, done.err
        assert (disk / "run" / "records.jsonl").read_bytes().startswith(stored)
        assert len(records(disk / "run")) == 19
        check_samples(disk / "run")


def plan(text: str, *fabrics: Fabric, seed: int = 1, cpus: tuple[int, ...] = (0, 1)) -> Plan:
    return make_plan(parse(jobs.once(text), "x", registry.load()), fabrics, cpus, seed)


def described(made: Plan, fabrics: tuple[Fabric, ...], **environment: Any) -> dict[str, Any]:
    """As much of ``run.json`` as is compared."""
    known = {"memory_bytes": 8e9, "packages": {"numpy": "2.4"}, "cores": 2, **environment}
    run = {
        "fabricbench": "0.1.0",
        "plan": {"launches": made.launches, "seed": 1, "pages": "small", "cases": resume.definitions(made),
                 "jobs": [job.summary() for job in made.jobs]},
        "environment": known,
        "fabrics": [fabric.as_dict() for fabric in fabrics],
    }  # fmt: skip
    return dict(json.loads(json.dumps(run)))


TEXT = "launches = 2\n[barrier]\n[latency]\nsizes = '0,8'"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEXT, []),
        (TEXT.replace("2", "3", 1), ["launches was 2, now 3"]),
        (TEXT.replace("0,8", "8,16"), ["1 case gone (latency/eth10g/pure/mpi/library/int8/0B/2r)",
                                       "1 case new (latency/eth10g/pure/mpi/library/int8/16B/2r)"]),
        (TEXT + "\nmax_iterations = 77", ["of 2 cases max_iterations was 1000, now 77"]),
        (TEXT + "\nbudget_s = 0.75", ["of 2 cases budget_s was 0.5, now 0.75"]),
    ],
)  # fmt: skip
def test_differences_of_plans(text: str, said: list[str]) -> None:
    before, now = described(plan(TEXT, TCP), (TCP,)), described(plan(text, TCP), (TCP,))
    assert [told for told in resume.differences(before, now) if "deadline_s" not in told] == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEXT.replace("2", "3", 1), []),
        (TEXT.replace("0,8", "0,8,16"), []),
        (TEXT.replace("2", "1", 1), ["launches was 2, now 1"]),
        (TEXT.replace("0,8", "8"), ["1 case gone (latency/eth10g/pure/mpi/library/int8/0B/2r)"]),
    ],
)
def test_what_a_budget_dropped_may_come_back(text: str, said: list[str]) -> None:
    before, now = described(plan(TEXT, TCP), (TCP,)), described(plan(text, TCP), (TCP,))
    before["plan"]["budget_s"] = 60.0
    assert list(resume.differences(before, now)) == said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lab": "run2"}, []),
        ({"rate_bits_per_s": 2.5e9, "note": "other"}, ["rate of fabric eth10g was 10 Gbit/s, now 2.5 Gbit/s"]),
        ({"note": "burst 1 KiB"}, ["note of fabric eth10g was absent, now burst 1 KiB"]),
    ],
)
def test_differences_of_fabrics(change: dict[str, Any], said: list[str]) -> None:
    other = replace(TCP, **change)
    before, now = described(plan(TEXT, TCP), (TCP,)), described(plan(TEXT, other), (other,))
    told = [text for text in resume.differences(before, now) if "deadline_s" not in text]
    assert told == said


def test_differences_of_systems() -> None:
    made = plan(TEXT, TCP)
    before = described(made, (TCP,))
    assert not list(resume.differences(before, described(made, (TCP,), memory_bytes=8.01e9, load_average=[7])))
    now = described(made, (TCP,), memory_bytes=4e9, packages={"torch": "2.7"}, cores=4)
    assert list(resume.differences(before, now)) == [
        "cores was 2, now 4", "memory was 8.0 GB, now 4.0 GB", "numpy was 2.4, now absent", "torch was absent, now 2.7",
    ]  # fmt: skip
    elsewhere = described(plan(TEXT, TCP, cpus=(2, 3)), (TCP,))
    assert list(resume.differences(before, elsewhere)) == ["processors was [0, 1], now [2, 3]"]


def test_only_a_few_differences_are_told(tmp_path: Path) -> None:
    before, now = described(plan(TEXT, TCP), (TCP,)), described(plan(TEXT, TCP), (TCP,))
    now["environment"] |= {"kernel": "b", "cpu": "b", "python": "b", "mpi": "b", "mpiexec": "b", "hostname": "b"}
    with pytest.raises(UserError, match=r"hostname was absent, now b; .*; and 1 more; choose another folder"):
        resume.check(tmp_path, before, now)
    with pytest.raises(UserError, match="does not say how its cases were to be measured"):
        resume.check(tmp_path, {"schema": 1}, now)


def test_what_is_missing_is_in_jobs_with_new_numbers(tmp_path: Path) -> None:
    made = plan(TEXT + "\n[[broadcast]]\nranks = [3]\nsizes = '8'", SHM, TCP)
    done = [case.id for case in made.jobs[0].cases]
    with RunFolder(tmp_path) as folder:
        folder.write_run({"schema": 1, "plan": {"jobs": [job.summary() for job in made.jobs]}, "jobs": [{"job": 9}]})
        for case in (*made.jobs[0].cases, made.skips[0].case):
            folder.add(Record(case.id, case.benchmark, case.fabric, "failed", "x"), {}, 1)
    earlier = resume.read(tmp_path)
    left = resume.missing(made, earlier)
    assert (earlier.wrong, earlier.measured) == (True, False)
    assert left.skips == ()
    assert [job.number for job in left.jobs] == [*range(10, 10 + len(left.jobs))]
    assert {(c.id, j.launch) for j in left.jobs for c in j.cases} == {
        (c.id, j.launch) for j in made.jobs for c in j.cases if j.launch == 2 or c.id not in done
    }
