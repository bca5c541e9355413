"""Baselines: made of several runs, read back strictly, and never moved by one lucky run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reports.comparison.baseline import NotABaseline, make, read, read_side, to_json
from reports.comparison.sides import Side
from reports.load import NotARun
from tests.reports.comparison.planted import allreduce, noisy, side

CASE = "allreduce/roce0/pure/mpi/float32/8B/2r"


def runs(*scales: float) -> list[Side]:
    return [side(allreduce(noisy(n, 3, scale)), f"run{n}") for n, scale in enumerate(scales)]


def test_a_lucky_run_does_not_become_the_bar() -> None:
    found = make(runs(1.0, 1.01, 0.5)).side.cases[CASE].metrics["time"]
    assert found.value == pytest.approx(100e-6, rel=0.02)
    assert found.noise == pytest.approx(1.02, rel=0.05)
    assert len(found.runs) == 3 and len(found.values) == 9


def test_it_reads_back_the_same(tmp_path: Path) -> None:
    made = make(runs(1.0, 1.01, 1.02))
    path = tmp_path / "b.json"
    path.write_text(to_json(made, "0.1.0", "2026-03-01T10:00:00+00:00"))
    found = read(path)
    assert found.cases == {case: replace(s, fields=dict(s.fields)) for case, s in made.side.cases.items()}
    assert [run["hostname"] for run in found.runs] == ["node1"] * 3
    assert read_side(path).name == str(path)


def test_the_same_run_twice_is_refused() -> None:
    first, second = runs(1.0, 1.0)
    with pytest.raises(NotABaseline, match="the run run0 is given twice: a baseline is made of different runs"):
        make([first, second, first])


def test_a_case_that_runs_measured_differently_is_left_out_by_name() -> None:
    good = [side(allreduce(noisy(n), 2), f"run{n}") for n in range(2)]
    f = allreduce(noisy(3), 2)
    f.records[:] = [replace(r, thread_level="multiple") if r.nbytes == 8 else r for r in f.records]
    made = make([*good, side(f, "run3")])
    assert made.left_out == {CASE: "run0 and run3 differ in thread level: single against multiple"}
    assert list(made.side.cases) == [CASE.replace("8B", "16B")]


def test_a_case_that_went_wrong_in_a_run_is_left_out() -> None:
    f = allreduce(noisy(3), 2)
    f.records[0] = replace(f.records[0], status="invalid", reason="element 3 is wrong", metrics={})
    made = make([*(side(allreduce(noisy(n), 2), f"run{n}") for n in range(2)), side(f, "run3")])
    assert made.left_out == {CASE: "in run3: launch 1 invalid: element 3 is wrong"}


def test_runs_without_a_number_in_common() -> None:
    f = allreduce(noisy(3))
    f.records[:] = [replace(r, status="failed", reason="died", metrics={}) for r in f.records]
    with pytest.raises(NotABaseline, match="no number in common"):
        make([*runs(1.0, 1.0), side(f, "run3")])


def changed(**more: Any) -> str:
    data = json.loads(to_json(make(runs(1.0, 1.01, 1.02)), "0.1.0", ""))
    return json.dumps(data | more)


def case(**more: Any) -> dict[str, Any]:
    return {"id": "x", "fields": {}, "metrics": {"time": {"unit": "s", "better": "lower", "runs": [[1]], **more}}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a baseline: make one with fabricbench baseline"),
        ('{"kind": "fabricbench baseline"}', "not a baseline"),
        (changed(schema=2), "baseline schema 2 is newer than 1: update fabricbench"),
        (changed(cases=None), "damaged (no list of cases)"),
        (changed(cases=[{"id": "x"}]), "damaged ('metrics')"),
        (changed(cases=[case(runs=[])]), "a metric without launches"),
        (changed(cases=[case(better="more")]), "better is 'more'"),
        (changed(cases=[case(runs=[["1"]])]), "'1' is no number"),
    ],
)  # fmt: skip
def test_what_is_no_baseline_is_told_in_a_line(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    path.write_text(text)
    with pytest.raises(NotABaseline) as error:
        read(path)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotABaseline, match="there is no such run or baseline"):
        read_side(tmp_path / "gone")
    with pytest.raises(NotARun, match=r"no run\.json"):
        read_side(tmp_path)
