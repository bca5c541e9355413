"""``fabricbench accept`` on planted runs: what it prints, writes and returns."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from suite.cli import main
from tests.reports.folder import Folder, lab_run
from tests.reports.limits.planted import stream

LIMITS = '[[criterion]]\nmetric = "bandwidth"\nbenchmark = "bandwidth"\nsizes = "1M:"\nlower = {}\nunit = "MB/s"\n'


def accept(folder: Path, limits: str, *more: str) -> int:
    path = folder.parent / "limits.toml"
    path.write_text(limits)
    return main(["accept", str(folder), "--limits", str(path), *more])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    f = Folder()
    stream(f, 1000.0)
    return f.write(tmp_path / "run")


@pytest.mark.parametrize(("lower", "code"), [(900, 0), (1100, 1), (1000, 3)])
def test_exit_codes(folder: Path, lower: int, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert accept(folder, LIMITS.format(lower)) == code
    assert f"(exit code {code})" in " ".join(capsys.readouterr().out.split())


def test_what_is_not_there_is_not_measured(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert accept(folder, LIMITS.format(1).replace('"bandwidth"\ns', '"bibw"\ns')) == 4
    assert "no case on disk is what it selects" in capsys.readouterr().out


def test_nothing_is_measured_or_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    accept(folder, LIMITS.format(1))
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_a_profile_judges_a_lab(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = lab_run().write(tmp_path / "run")
    assert main(["accept", str(folder), "--limits", "lab"]) == 1  # planted: two-way streams at half rate, slow latency
    assert main(["accept", str(folder), "--limits", "lan-10g"]) == 4
    out = capsys.readouterr().out
    assert "emulated: judged only where limits ask for it" in " ".join(out.split())


def test_formats(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert accept(folder, LIMITS.format(900), "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["criteria"][0]["verdict"] == "pass"
    xml = folder.parent / "out.xml"
    assert accept(folder, LIMITS.format(1100), "--junit", str(xml)) == 1
    assert "fail" in capsys.readouterr().out
    assert [suite.get("failures") for suite in ET.parse(xml).getroot()] == ["1"]  # noqa: S314 - our own
    accept(folder, LIMITS.format(900), "--format", "junit")
    assert capsys.readouterr().out.startswith("<?xml")


def test_one_record_that_is_damaged_costs_its_own_case_alone(tmp_path: Path) -> None:
    f = Folder()
    stream(f, 1000.0)
    stream(f, 1000.0, fabric="roce1")
    f.run["plan"] = {"jobs": [{"launch": 1, "fabric": r.fabric, "cases": [r.id]} for r in f.records]}
    lost = f.records.pop()
    f.tail = lost.to_json().replace("1000000000.0", "NaN,").encode() + b"\n"
    folder = f.write(tmp_path / "run")
    (tmp_path / "limits.toml").write_text(LIMITS.format(900))
    assert main(["accept", str(folder), "--limits", str(tmp_path / "limits.toml"), "--format", "json"]) == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["accept", "DIR"], "the following arguments are required: --limits"),
        (["accept", "nowhere", "--limits", "lab"], "nowhere: no run.json"),
        (["accept", "DIR", "--limits", "lan"], "--limits lan: neither a file nor one of the profiles"),
        (
            ["accept", "DIR", "--limits", "lab", "--baseline", "b.json"],
            'no criterion of limits lab has reference = "bas',
        ),
        (["accept", "DIR", "--limits", "lab", "--format", "csv"], "invalid choice: 'csv'"),
        (["report", "DIR", "--baseline", "b.json"], "--baseline is what limits rest on: name them with --limits L"),
        (["report", "DIR", "--format", "junit"], "--format junit is for verdicts: name limits with --limits L"),
    ],
)
def test_wrong_arguments(folder: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(folder) if word == "DIR" else word for word in arguments]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


def test_a_baseline_is_read_only_where_a_criterion_needs_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert accept(folder, f'baseline = "gone.json"\n{LIMITS.format(900)}') == 0
    needs = LIMITS.format(0.9).replace('unit = "MB/s"', 'reference = "baseline"')
    assert accept(folder, f'baseline = "gone.json"\n{needs}') == 2
    assert "gone.json: there is no such run or baseline" in capsys.readouterr().err
    assert accept(folder, needs) == 4
    assert "no baseline is given" in capsys.readouterr().out


def test_a_report_with_verdicts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder.parent / "limits.toml").write_text(LIMITS.format(1100))
    common = ["report", str(folder), "--limits", str(folder.parent / "limits.toml")]
    assert main(common) == 0
    assert "1 criterion: 1 fail (exit code 1)" in " ".join(capsys.readouterr().out.split())
    assert main([*common, "--format", "junit"]) == 0
    assert capsys.readouterr().out.startswith("<?xml")
