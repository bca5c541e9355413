"""Budgets of time and disk: what is dropped, in which order, and what happens when the time has passed."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fabrics.errors import CannotRun, UserError
from fabrics.model import Fabric
from microbench import registry
from suite import budget
from suite.arguments import duration
from suite.plan import Plan, make_plan
from suite.planfile import parse
from suite.supervise import supervise
from tests import jobs

SHM = Fabric("shm", "shm", ("vm",))
TCP = Fabric("tcp-lo", "tcp", ("vm",), {"vm": ("lo",)})


def plan(text: str, *fabrics: Fabric) -> Plan:
    return make_plan(parse(jobs.once(text), "x", registry.load()), fabrics or (SHM,), (0, 1))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("1h30m15s", 5415), ("2h5s", 7205), ("90m", 5400)],
)
def test_a_budget_is_read(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "90", "s", "0s", "0h0m", "-5m", "1.5h", "30m1h", "30 m", "30min", "1e3s", "٣s"])
def test_what_is_no_budget_is_named(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a time such as 90s, 30m, 2h or 1h30m"):
        duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"), [(90, "1 min 30 s"), (1800, "30 min"), (5400, "1 h 30 min"), (12, "12 s")]
)
def test_a_budget_is_told(seconds: float, text: str) -> None:
    assert budget.budget_text(seconds) == text


def test_a_plan_that_fits_is_left_alone() -> None:
    made = plan("launches = 2\n[barrier]\n[latency]\nsizes = '8'")
    cut = budget.fit(made, made.estimate_s)
    assert (cut.jobs, cut.skips, cut.launches, cut.notes) == (made.jobs, made.skips, 2, ())
    assert cut.budget_s == made.estimate_s


def test_whole_launches_are_dropped_from_the_last() -> None:
    made = plan("launches = 6\nbudget_s = 10\n[barrier]\n[latency]\nsizes = '8'", SHM, TCP)
    each_s = made.estimate_s / 6
    cut = budget.fit(made, 2.5 * each_s)
    assert cut.launches == 2
    assert cut.jobs == tuple(job for job in made.jobs if job.launch <= 2)
    assert cut.skips == ()
    (note,) = cut.notes
    assert note.startswith("dropped to keep the budget of 2 min 11 s: launches 3 to 6 of 6, each at most about 52 s")
    assert "launch 6 of 6" in budget.fit(made, 5.5 * each_s).notes[0]


def test_the_dearest_cases_are_dropped_and_told_once() -> None:
    text = "launches = 3\nbudget_s = 2\n[barrier]\nbudget_s = 9\n[latency]\nsizes = '0,8,16'"
    made = plan(text)
    cut = budget.fit(made, 8)  # the job's start 3 s, the barrier over 10 s, each latency over 2 s
    assert cut.launches == 1
    assert [(case.benchmark, case.nbytes) for job in cut.jobs for case in job.cases] == [("latency", 0), ("latency", 8)]
    assert [(s.case.benchmark, s.case.nbytes, s.status) for s in cut.skips] == [
        ("barrier", None, "skipped"), ("latency", 16, "skipped"),
    ]  # fmt: skip
    assert cut.skips[0].reason == "dropped to keep the budget of 8 s: at most about 10 s"
    assert cut.estimate_s <= 8


def test_fabrics_keep_the_same_cases_and_empty_jobs_go() -> None:
    made = plan("budget_s = 2\n[latency]\nsizes = '0,8,16'\n[[barrier]]\nbudget_s = 9\nranks = [3]", SHM, TCP)
    cut = budget.fit(made, 16)
    assert [job.number for job in cut.jobs] == [1, 2]
    assert {job.fabric.name: [case.nbytes for case in job.cases] for job in cut.jobs} == {
        "shm": [0, 8], "tcp-lo": [0, 8],
    }  # fmt: skip
    assert sorted((s.case.benchmark, s.case.fabric) for s in cut.skips) == [
        ("barrier", "shm"), ("barrier", "tcp-lo"), ("latency", "shm"), ("latency", "tcp-lo"),
    ]  # fmt: skip


def test_what_holds_nothing_names_the_least() -> None:
    with pytest.raises(UserError, match=r"a budget of 3 s holds nothing of plan x: its shortest case may take 4 s"):
        budget.fit(plan("[barrier]\n[latency]\nsizes = '8'\nbudget_s = 0.3"), 3)


@pytest.mark.parametrize("budget_s", [4, 6, 9, 20, 60, 200])
def test_what_is_left_fits_and_nothing_is_lost(budget_s: float) -> None:
    made = plan("launches = 2\nbudget_s = 3\n[barrier]\nbudget_s=0.5\n[allreduce]\nsizes = '8:64M'", SHM, TCP)
    cut = budget.fit(made, budget_s)
    assert cut.estimate_s <= budget_s
    assert {c.id for j in cut.jobs for c in j.cases} | {s.case.id for s in cut.skips} == {
        c.id for j in made.jobs for c in j.cases
    }


def test_space_is_a_record_and_samples_of_every_rank() -> None:
    text = "[allreduce]\nsizes = '8'\nranks = [3]\nmin_iterations = 10\nmax_iterations = 1000\nbudget_s = "
    one = budget.space(plan(text + "1").jobs)
    assert (one.least, one.most) == (1024 + 10 * 3 * 16, 4096 + 1100 * 3 * 16)
    brief = budget.space(plan("launches = 2\n" + text.replace("1000", "9999") + "0.002").jobs)  # 2000 of 1 us fit
    assert (brief.least, brief.most) == (2 * one.least, 2 * (4096 + 2100 * 3 * 16))


def test_room_for_the_least_is_needed_and_for_the_most_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = plan("[latency]\nsizes = '8'\nmin_iterations = 10\nmax_iterations = 100000")
    need, usage = budget.space(made.jobs), type(budget.shutil.disk_usage(tmp_path))

    def with_room(free: int, total: int = 1 << 40) -> str:
        monkeypatch.setattr(budget.shutil, "disk_usage", lambda path: usage(total, total - free, free))
        return budget.check_space(made.jobs, tmp_path)

    assert with_room(need.most) == ""
    assert with_room(need.least) == (
        f"warning: {tmp_path} may fill up: 1 record with samples: 1.3 kB to 3.2 MB, 1.3 kB are free"
    )
    assert with_room(0, total=0) == ""
    with pytest.raises(
        CannotRun, match=r"not enough room for the run in .*: 1 record with samples: 1\.3 kB to 3\.2 MB, 1\.3 kB"
    ):
        with_room(need.least - 1)


def test_a_job_in_flight_is_ended_when_the_runs_time_has_passed() -> None:
    spec = {"roles": ["host"], "cases": [{"deadline_s": 60}]}
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    began = time.monotonic()
    ending = supervise(command, os.environ, spec, lambda event: None, lambda text: None, until=began + 0.5)
    assert (ending.status, ending.case) == ("ended", None)
    assert 0.5 < time.monotonic() - began < 30


def command(folder: Path, text: str) -> list[str]:
    path = folder / "plan.toml"
    path.write_text(jobs.once(text))
    return ["run", "--plan", str(path), "--fabric", "shm", "--module", "tests.plant"]


def fabricbench(folder: Path, text: str, *more: str) -> jobs.Done:
    return jobs.fabricbench(*command(folder, text), *more)


def run_json(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "run.json").read_text()))


def test_when_the_time_has_passed_the_run_ends_and_can_be_gone_on_with(tmp_path: Path) -> None:
    where, text = ("-o", str(tmp_path / "run")), "budget_s = 0.01\n[plant_ok]\n[plant_hang]\n"
    began = time.monotonic()
    done = fabricbench(tmp_path, text, *where, "--budget", "6s")
    assert time.monotonic() - began < 30  # the hang's own deadline is beyond that
    assert done.code == 124, done.err
    assert "fabricbench: the budget of 6 s has passed: what is missing was not measured" in done.err
    assert "NOT WHOLE: the run's budget of time had passed" in done.out.split("1 System and method")[0]
    assert done.out == (tmp_path / "run" / "report.txt").read_text()
    told = run_json(tmp_path / "run")
    assert (told["ended"], told["finished"], told["plan"]["budget_s"]) == ("budget", None, 6.0)
    lines = (tmp_path / "run" / "records.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"].split("/")[0] for line in lines] == ["plant_ok"]
    again = fabricbench(tmp_path, text, *where, "--budget", "7s", "--resume")
    assert again.code == 124, again.err
    assert (tmp_path / "run" / "records.jsonl").read_text().splitlines() == lines
    assert len(run_json(tmp_path / "run")["resumed"]) == 1


TEXT = "launches = 2\nbudget_s = 0.01\n[plant_ok]\n[latency]\nsizes = '8'\nbudget_s = 40\nmax_iterations = 50\n"


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, jobs.Done]:
    """A run that was cut down to its budget, and its folder's parent."""
    folder = tmp_path_factory.mktemp("cut")
    done = fabricbench(folder, TEXT, "-o", str(folder / "run"), "--budget", "30s")
    assert done.code == 0, done.err
    return folder, done


def test_what_was_dropped_is_told_everywhere(cut: tuple[Path, jobs.Done]) -> None:
    folder, done = cut
    launches = "dropped to keep the budget of 30 s: launch 2 of 2, each at most about 49 s"
    assert launches in done.err
    assert "1 case dropped to keep the budget of 30 s" in done.err
    assert launches in run_json(folder / "run")["warnings"]
    flat = " ".join(done.out.split())
    assert f"WARNING: {launches}." in flat
    assert "launch 1: dropped to keep the budget of 30 s: at most about 46 s" in flat
    dry = jobs.inside(*command(folder, TEXT), "--budget", "30s", "--dry-run")
    assert dry.code == 0
    assert launches in dry.out
    assert "skipped: latency/shm/pure/mpi/library/int8/8B/2r: dropped to keep the budget of 30 s" in dry.out


def test_without_the_budget_a_resumed_run_measures_what_was_dropped(
    cut: tuple[Path, jobs.Done], tmp_path: Path
) -> None:
    shutil.copytree(cut[0] / "run", tmp_path / "run")
    whole = fabricbench(tmp_path, TEXT, "-o", str(tmp_path / "run"), "--resume")
    assert whole.code == 0, whole.err
    run = run_json(tmp_path / "run")
    assert (run["plan"]["launches"], run["plan"]["budget_s"], run["warnings"]) == (2, None, [])
    stored = [json.loads(line) for line in (tmp_path / "run" / "records.jsonl").read_text().splitlines()]
    good = sorted((record["benchmark"], record["launch"]) for record in stored if record["status"] == "ok")
    assert good == [("latency", 1), ("latency", 2), ("plant_ok", 1), ("plant_ok", 2)]
    assert "dropped to keep" not in whole.out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--budget", "90"), "'90' is not a time such as 90s, 30m, 2h or 1h30m"),
        (("--budget", "1s"), "a budget of 1 s holds nothing of plan quick: its shortest case may take 4 s"),
    ],
)
def test_mistakes_are_one_line(more: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = jobs.inside("run", "--quick", "--fabric", "shm", "-o", str(tmp_path / "run"), *more)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert len(done.err.splitlines()) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")
@pytest.mark.parametrize(
    ("options", "said"),
    [("ro,size=1m", "Read-only file system; choose another folder"), ("size=16k", "not enough room for the run in")],
)
def test_a_disk_that_cannot_take_the_run_is_told_before_measuring(tmp_path: Path, options: str, said: str) -> None:
    with jobs.disk(tmp_path / "disk", options) as disk:
        done = fabricbench(tmp_path, "[latency]\nsizes = '0,1:64K'", "-o", str(disk / "run"))
    assert (done.code, done.out) == (4, "")
    assert said in done.err
    assert len(done.err.splitlines()) == 1, done.err
