"""``fabricbench compare`` and ``fabricbench baseline`` on planted runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from suite.cli import main
from tests.reports.comparison.planted import allreduce, noisy
from tests.reports.folder import Folder

CASE = "allreduce/roce0/pure/mpi/float32/8B/2r"


def run(folder: Path, name: str, seed: int, scale: float = 1.0, cases: int = 1) -> Path:
    f = allreduce(noisy(seed, scale=scale), cases)
    f.run["id"] = name
    return f.write(folder / name)


def text(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(("scale", "code", "word"), [(1.0, 0, "same"), (1.1, 1, "regressed"), (0.9, 0, "improved")])
def test_exit_codes(scale: float, code: int, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = run(tmp_path, "a", 1), run(tmp_path, "b", 2, scale)
    assert main(["compare", str(old), str(new)]) == code
    out = text(capsys)
    assert f"1 metric: 1 {word}." in out and f"{word.capitalize()}: 1" in out
    assert "The old side is 1 run: how far runs lie apart by themselves is not known" in out


def test_too_few_launches_are_told_and_exit_with_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = (allreduce(noisy(seed, 2)).write(tmp_path / str(seed)) for seed in (1, 2))
    assert main(["compare", str(one), str(two)]) == 3
    assert "- allreduce 2 ranks 8 B on roce0, time: 2 launches < 6" in text(capsys)


def test_apples_and_oranges_exit_with_4_and_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = run(tmp_path, "a", 1)
    f = allreduce(noisy(2))
    f.records[:] = [replace(r, thread_level="multiple", proof="unknown") for r in f.records]
    new = f.write(tmp_path / "b")
    assert main(["compare", str(old), str(new)]) == 4
    out = text(capsys)
    assert f"- {CASE}: proof: proved against unknown; thread level: single against multiple" in out


@pytest.mark.parametrize("how", ["failed", "gone"])
def test_what_went_wrong_on_the_new_side_is_no_pass(
    how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = run(tmp_path, "a", 1, cases=2)
    f = allreduce(noisy(2), 2)
    f.run["plan"] = {"jobs": [{"launch": n, "fabric": "roce0", "cases": [CASE]} for n in range(1, 9)]}
    bad = replace(f.records[0], status="failed", reason="rank 1 died", metrics={})
    f.records[:8] = [replace(bad, launch=n) for n in range(1, 9)] if how == "failed" else []
    assert main(["compare", str(old), str(f.write(tmp_path / "b"))]) == 4
    out = text(capsys)
    why = "failed: rank 1 died" if how == "failed" else "planned, but there is no record of it"
    assert f"Went wrong in {tmp_path / 'b'}: 1 case - {CASE}: {why}" in out


def test_json_is_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = run(tmp_path, "a", 1), run(tmp_path, "b", 2, 1.1)
    assert main(["compare", str(old), str(new), "--format", "json"]) == 1
    data = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    (found,) = data["comparisons"]
    assert (found["case"], found["metric"], found["change"], data["exit_code"]) == (CASE, "time", "regressed", 1)
    assert found["ratio"]["low"] < 1.1 < found["ratio"]["high"] or found["ratio"]["value"] == pytest.approx(1.1, 0.01)


def test_a_baseline_of_three_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = [
        str(run(tmp_path, name, seed, scale))
        for seed, (name, scale) in enumerate((("a", 1.0), ("b", 1.02), ("c", 0.8)))
    ]
    path = tmp_path / "base.json"
    assert main(["baseline", *made, "-o", str(path)]) == 0
    assert f"{path}: 1 case of 3 runs" in text(capsys)
    new = run(tmp_path, "d", 7, 1.02)
    assert main(["compare", str(path), str(new), "--format", "json"]) in (0, 3)
    (found,) = json.loads(capsys.readouterr().out)["comparisons"]
    assert found["change"] != "regressed" and found["margin"] > 0.2
    limits = tmp_path / "limits.toml"
    limits.write_text('baseline = "base.json"\n[[criterion]]\nmetric = "time"\nbenchmark = "allreduce"\n'
                      'reference = "baseline"\nupper = 1.1\n')  # fmt: skip
    assert main(["accept", str(new), "--limits", str(limits)]) == 0
    assert main(["accept", str(run(tmp_path, "e", 8, 1.3)), "--limits", str(limits)]) == 1
    assert "1.1 x the baseline's median of 3 runs" in text(capsys)


def test_only_accepted_runs_enter_a_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = [str(run(tmp_path, name, seed)) for seed, name in enumerate("abc")]
    limits = tmp_path / "limits.toml"
    common = '[[criterion]]\nmetric = "time"\nbenchmark = "allreduce"\nunit = "us"\nname = "quick"\nupper = '
    limits.write_text(f"{common}200")
    assert main(["baseline", *made, "-o", str(tmp_path / "one.json"), "--limits", str(limits)]) == 0
    limits.write_text(f"{common}50")
    assert main(["baseline", *made, "-o", str(tmp_path / "two.json"), "--limits", str(limits)]) == 2
    assert f"{made[0]} is not accepted by limits {limits} (quick)" in capsys.readouterr().err
    assert not (tmp_path / "two.json").exists()


def test_wrong_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b, c = (str(run(tmp_path, name, seed)) for seed, name in enumerate("abc"))
    (tmp_path / "there.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    new = str(tmp_path / "new.json")
    for arguments, said in (
        (["compare", a], "the following arguments are required: NEW"),
        (["compare", a, str(tmp_path / "gone")], "gone: there is no such run or baseline"),
        (["compare", a, str(tmp_path / "empty")], "no run.json"),
        (["compare", a, str(tmp_path / "there.json")], "not a baseline"),
        (["compare", a, b, "--metric", "tyme"], "--metric tyme: neither side has it; there are time"),
        (["compare", a, b, "--margin", "5"], "'5' is not a part from 0 to below 1, such as 0.01"),
        (["baseline", a, b, "-o", new], "a baseline takes 3 runs or more, not 2"),
        (["baseline", a, b, a, "-o", new], "the run a is given twice"),
        (["baseline", a, b, c, "-o", str(tmp_path / "there.json")], "exists already: choose another name with -o"),
        (["baseline", a, b, c], "the following arguments are required: -o/--output"),
        (["baseline", a, b, str(tmp_path / "empty"), "-o", new], "no run.json"),
    ):
        assert main(arguments) == 2, arguments
        error = capsys.readouterr().err
        assert said in error and error.count("\n") == 1, arguments


def test_nothing_in_common_cannot_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = run(tmp_path, "a", 1)
    assert main(["compare", str(old), str(Folder().write(tmp_path / "b"))]) == 4
    out = text(capsys)
    assert "0 metrics: nothing compared." in out and f"Only in {old}: 1 case: {CASE}" in out
