"""What is in doubt is measured again in fresh launches, at most twice, and all launches are judged together."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fabrics.model import Fabric
from microbench.case import Case
from microbench.record import Record
from reports.limits.model import Limits
from suite import again
from suite.gate import Gate
from suite.plan import JobPlan, Plan
from tests import jobs
from tests.reports.folder import MIB, Folder
from tests.reports.limits.planted import MB, criterion, rate

ROCE = Fabric("roce0", "roce", ("n0", "n1"))
CASES = tuple(Case("bandwidth", "roce0", ranks=2, dtype="int8", nbytes=size) for size in (MIB, 2 * MIB))
AT_LEAST = Gate(Limits("x", (criterion(lower=1000 * MB),)))


def planned(launches: int = 1, budget_s: float | None = None) -> Plan:
    made = (JobPlan(n, n, ROCE, ("n0", "n1"), ("host",) * 2, ((0,), (1,)), CASES) for n in range(1, launches + 1))
    return Plan("x", launches, tuple(made), (), budget_s)


@dataclass
class Planted:
    """Stands for a run: writes what each launch would have measured, by ``measures``: a rate in MB/s, and its +-."""

    directory: Path
    measures: Callable[[Case, int], tuple[float, float]]
    plan: Plan = field(default_factory=planned)
    todo: Plan = field(init=False)
    launched: list[tuple[int, str]] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    seed: int = 1
    until: float | None = None
    records: Folder = field(default_factory=Folder)
    codes: list[int] = field(default_factory=lambda: [0])

    def __post_init__(self) -> None:
        self.todo, self.folder = self.plan, SimpleNamespace(directory=self.directory)

    def execute(self) -> int:
        for job in self.todo.jobs:
            self.jobs.append({"job": job.number})
            for case in job.cases:
                value, half = self.measures(case, job.launch)
                got = {"bandwidth": rate(value, value - half, value + half)}
                told = {**case.identity(), "proof": "proved", "hosts": job.hosts, "ranks": 2}
                self.records.records.append(Record(**told, status="ok", launch=job.launch, metrics=got))
                self.launched.append((job.launch, case.id))
        self.records.write(self.directory)
        return self.codes.pop(0) if self.codes else 0


def executed(run: Planted, gate: Gate = AT_LEAST) -> tuple[int, list[str]]:
    told: list[str] = []
    return again.execute(run, gate, told.append), told  # type: ignore[arg-type]


def beyond(run: Planted) -> list[int]:
    return [launch for launch, _ in run.launched if launch > run.plan.launches]


def test_what_is_sure_is_not_measured_again(tmp_path: Path) -> None:
    run = Planted(tmp_path, lambda case, launch: (1100.0, 10.0))
    assert executed(run) == (0, []) and beyond(run) == []
    run = Planted(tmp_path / "b", lambda case, launch: (900.0, 10.0), planned(6))
    assert executed(run) == (0, []) and beyond(run) == []


def test_one_bad_moment_is_no_failure(tmp_path: Path) -> None:
    run = Planted(tmp_path, lambda case, launch: (900.0 if launch == 1 else 1100.0, 10.0))
    executed(run)
    assert again.judged(run, AT_LEAST).code == 0  # type: ignore[arg-type]
    assert max(beyond(run)) == 13  # of 7 launches the interval is all there is, of 13 the bad one lies outside
    run = Planted(tmp_path / "b", lambda case, launch: (900.0, 10.0))
    executed(run)
    assert (again.judged(run, AT_LEAST).code, max(beyond(run))) == (1, 7)  # type: ignore[arg-type]


def test_a_doubtful_case_alone_gets_six_fresh_launches_and_all_are_judged(tmp_path: Path) -> None:
    run = Planted(tmp_path, lambda case, launch: (1010.0, 20.0) if case.nbytes == MIB else (1100.0, 10.0))
    code, told = executed(run)
    assert (code, told) == (0, ["1 case in doubt: measured again in 6 jobs"])
    assert [entry for entry in run.launched if entry[0] > 1] == [(n, CASES[0].id) for n in range(2, 8)]
    first, _ = again.judged(run, AT_LEAST).rulings[0].cases  # type: ignore[arg-type]
    assert (first.verdict, first.records) == ("pass", (1, 2, 3, 4, 5, 6, 7))
    numbers = [job["job"] for job in run.jobs]
    assert numbers == sorted(set(numbers))


def test_at_most_twice_and_neither_the_last_nor_the_best_decides(tmp_path: Path) -> None:
    run = Planted(tmp_path, lambda case, launch: (980.0 if launch % 2 else 1020.0, 30.0))
    executed(run)
    assert sorted(set(beyond(run))) == list(range(2, 14))
    found = again.judged(run, AT_LEAST)  # type: ignore[arg-type]
    assert found.code == 3 and {len(case.records) for case in found.rulings[0].cases} == {13}
    run.todo = replace(run.plan, jobs=())
    assert executed(run)[1] == [] and len(set(beyond(run))) == 12  # a resumed run goes not beyond that, either


def test_launches_that_a_run_lost_are_made_up_for(tmp_path: Path) -> None:
    done = {(CASES[0].id, n) for n in (2, 3, 5)}
    found = list(again.fresh(planned(), [CASES[0].id], done, 40, 1))
    assert [job.launch for job in found] == [4, 6, 7, 8, 9, 10]
    assert [job.number for job in found] == list(range(41, 47))


def test_rounds_of_several_cases_share_jobs_in_orders_of_their_own() -> None:
    ids = [case.id for case in CASES]
    found = list(again.fresh(planned(3), ids, (), 3, 1))
    assert [job.launch for job in found] == list(range(4, 10))
    assert {tuple(case.id for case in job.cases) for job in found} == {tuple(ids), tuple(reversed(ids))}
    assert found == list(again.fresh(planned(3), ids, (), 3, 1))


@pytest.mark.parametrize(("code", "until"), [(124, None), (0, 0.1)])
def test_a_budget_is_kept(code: int, until: float | None, tmp_path: Path) -> None:
    run = Planted(tmp_path, lambda case, launch: (1000.0, 10.0), codes=[code])
    run.until = None if until is None else time.monotonic() + until
    got, told = executed(run)
    assert got == code and beyond(run) == []
    assert [text.partition(":")[0] for text in told] == (["what is in doubt is not measured again"] if until else [])


LIMITS = """
[[criterion]]
metric = "time"
benchmark = "plant_unsure"
upper = 150
unit = "ns"
[[criterion]]
metric = "time"
benchmark = "plant_ok"
upper = 150
unit = "ns"
"""


def test_a_run_with_limits_goes_on_where_it_is_in_doubt(tmp_path: Path) -> None:
    """A run, of which a case has been in doubt for all launches but one that it may have beside the plan's."""
    (tmp_path / "plan.toml").write_text(jobs.once("budget_s = 0.02\n[plant_unsure]\n[plant_ok]"))
    (tmp_path / "limits.toml").write_text(LIMITS)
    command = ("run", "--plan", str(tmp_path / "plan.toml"), "--fabric", "shm", "--module", "tests.plant")
    command += ("-o", str(tmp_path / "run"))
    assert jobs.fabricbench(*command).code == 0
    path = tmp_path / "run/records.jsonl"
    unsure = path.read_text().splitlines()[0]
    with path.open("a") as file:
        for launch in range(2, 13):
            text = unsure.replace('"launch":1,', f'"launch":{launch},')
            file.write((text if launch % 2 else text.replace('"value":1e-07', '"value":2e-07')) + "\n")
    done = jobs.fabricbench(*command, "--limits", str(tmp_path / "limits.toml"), "--resume")
    assert done.code == 3, done.err
    assert "1 case in doubt: measured again in 1 job\n" in done.err
    found = [(r["benchmark"], r["launch"]) for r in map(json.loads, path.read_text().splitlines())]
    assert found == [("plant_unsure", 1), ("plant_ok", 1), *(("plant_unsure", n) for n in range(2, 14))]
    for text in (done.out, (tmp_path / "run/report.txt").read_text()):
        assert "2 criteria: 1 pass, 1 inconclusive (exit code 3)" in " ".join(text.split())
    known = json.loads((tmp_path / "run/run.json").read_text())
    assert known["finished"] and known["plan"]["launches"] == 1 and len(known["jobs"]) == 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--limits", "lan"), "--limits lan: neither a file nor one of the profiles"),
        (("--baseline", "b.json"), "--baseline is what limits rest on: name them with --limits L"),
    ],
)
def test_wrong_limits_end_a_run_before_it_begins(
    more: Collection[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from suite.cli import main

    assert main(["run", "--quick", "--fabric", "shm", "-o", str(tmp_path / "run"), *more]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1 and not (tmp_path / "run").exists()
