"""What reports say of a run that was ended and gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.load import load
from reports.render import render
from tests.reports.folder import Folder, metric


def _flat(f: Folder, directory: Path) -> str:
    f.add("latency", "shm", 8, metrics={"time": metric(1e-6)})
    return " ".join(render(f.write(directory)).split())


def test_a_resumed_run_says_when_and_that_its_duration_has_a_pause(tmp_path: Path) -> None:
    told = _flat(Folder(run={"resumed": ["2026-03-01T11:00:00+00:00", "2026-03-01T12:00:00+00:00"]}), tmp_path)
    assert "started 2026-03-01T10:00:00+00:00 resumed 2026-03-01T11:00:00+00:00, 2026-03-01T12:00:00+00:00" in told
    assert "duration 12 min 3 s, the time included that it stood still before it was resumed" in told


@pytest.mark.parametrize("run", [{}, {"resumed": []}, {"resumed": 3}, {"resumed": [5]}])
def test_a_run_in_one_piece_does_not(tmp_path: Path, run: dict[str, object]) -> None:
    told = _flat(Folder(run=run), tmp_path)
    assert "resumed" not in told
    assert "duration 12 min 3 s tier" in told


def test_odd_processors_of_the_plan_are_none(tmp_path: Path) -> None:
    f = Folder(run={"plan": {"jobs": [{"job": 1, "cpus": 7}]}})
    assert load(f.write(tmp_path)).plan["jobs"][0]["cpus"] == []


def test_a_spent_budget_stands_in_the_first_lines(tmp_path: Path) -> None:
    told = _flat(Folder(run={"finished": None, "ended": "budget"}), tmp_path)
    assert "NOT WHOLE: the run's budget of time had passed" in told.split("1 System and method")[0]
