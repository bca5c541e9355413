"""``fabricbench import``: exit codes, what is told, and that report, JSON and CSV read what it wrote."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from reports.load import load
from reports.render import render
from suite import store
from suite.cli import main

SAMPLES = Path(__file__).parent / "imported" / "samples"


def imported(directory: Path, *arguments: str) -> int:
    return main(["import", *arguments, "--out", str(directory)])


def sample(name: str) -> str:
    return str(SAMPLES / name)


def flat(text: str) -> str:
    return " ".join(text.split())


def run_json(directory: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((directory / "run.json").read_text())
    return found


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("all") / "run"
    files = [str(path) for path in sorted(SAMPLES.iterdir()) if path.name != "nccl_unnamed.txt"]
    assert imported(directory, *files, "--ranks", "2", "--fabric", "eth0", "--rate", "100gbit") == 0
    return directory


def test_the_report_says_plainly_what_imported_numbers_are_not(everything: Path) -> None:
    text = flat(render(everything))
    assert "IMPORTED: eth0: what other suites printed; nothing vouches for the way of the bytes." in text
    assert "no proof of the way, no samples, and of one launch no interval" in text
    assert "n/a: imported: no samples, so no interval (all)" in text
    assert "Allreduce, time as its suite tells it: 2 ranks, mpi, library algorithm, IMB-MPI1, float32" in text
    assert "time of the slowest rank: 2 ranks, mpi, library algorithm, IMB" not in text
    assert "no interval, as n is too small" not in text
    assert "UNPROVED" not in text
    assert "The run does not describe its machine" in text
    assert "eth0 not told 100 Gbit/s" in text
    tables = render(everything).partition("3 Point to point")[2].partition("5 Overlap")[0]
    rows = [line for line in tables.splitlines() if " eth0 " in line and "GB/s" not in line]
    assert rows
    assert all("imported" in row for row in rows)


def test_json_and_csv_of_what_was_imported_can_be_read(everything: Path) -> None:
    """A public case: CSV with blanks after commas, JSON that is no document, NaN as a bare token."""
    data = json.loads(render(everything, "json"), parse_constant=pytest.fail)
    assert {r["proof"] for r in data["records"]} == {"imported"}
    assert [f["values"]["verdict"] for f in data["findings"] if f["chapter"] == 2] == ["imported"]
    rows = list(csv.DictReader(io.StringIO(render(everything, "csv"))))
    assert {row["proof"] for row in rows} == {"imported"}
    latency = next(r for r in rows if r["benchmark"] == "latency" and r["mode"] == "OSU" and r["nbytes"] == "65536")
    assert (latency["metric"], latency["low"], latency["kind"]) == ("time", "", "imported")
    assert float(latency["value"]) == pytest.approx(13.59e-6)


def test_what_is_not_understood_is_named_by_line_and_the_rest_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, unknown = tmp_path / "cut.txt", tmp_path / "unknown.txt"
    log.write_text((SAMPLES / "imb_mpi1.txt").read_text()[:2500])
    unknown.write_text("hello\n")
    assert imported(tmp_path / "run", str(log), str(unknown)) == 4
    out, err = capsys.readouterr()
    assert f"{log}: IMB-MPI1 2021.11: " in out
    assert f"{unknown}: no suite recognised: 0 records" in out
    assert f"{log}: line 63: the line has no end: cut off" in err or "cut off" in err
    assert f"{unknown}: line 1: not understood: 'hello'" in err
    assert len(load(tmp_path / "run").records) > 20
    entry = run_json(tmp_path / "run")["imported"][1]
    assert entry["not_understood"] == [{"line": 1, "last": 1, "why": "not understood: 'hello'"}]
    assert "was not understood as a whole" in flat(render(tmp_path / "run"))


def test_nothing_understood_leaves_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unknown = tmp_path / "unknown.txt"
    unknown.write_text("hello\n")
    assert imported(tmp_path / "run", str(unknown)) == 4
    assert "nothing was imported" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_folder_takes_more_and_the_same_case_again_is_another_launch(tmp_path: Path) -> None:
    """Launches of other suites have no samples, but six of them have an interval over launches."""
    text = (SAMPLES / "osu_latency.txt").read_text()
    for number in range(6):
        log = tmp_path / f"{number}.txt"
        log.write_text(text.replace("13.59", f"13.5{number}"))
        assert imported(tmp_path / "run", str(log), "--fabric", "eth0") == 0
    summary = next(s for s in json.loads(render(tmp_path / "run", "json"))["summaries"] if s["nbytes"] == 65536)
    time = summary["metrics"]["time"]
    assert summary["launches"] == 6
    assert (time["value"], time["low"], time["high"]) == pytest.approx((13.525e-6, 13.50e-6, 13.55e-6))
    assert imported(tmp_path / "run", sample("osu_latency.txt"), "--fabric", "ib0") == 0
    assert [f["name"] for f in run_json(tmp_path / "run")["fabrics"]] == ["eth0", "ib0"]


def test_the_same_content_again_is_no_launch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(tmp_path / "run", sample("osu_latency.txt"), sample("osu_latency.txt")) == 0
    copy = tmp_path / "copy.txt"
    copy.write_text((SAMPLES / "osu_latency.txt").read_text())
    assert imported(tmp_path / "run", str(copy), sample("osu_bw.txt")) == 4
    assert "imported already" in capsys.readouterr().err
    assert len(load(tmp_path / "run").records) == 17 + 21


def test_a_run_that_was_measured_takes_no_imports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with store.RunFolder(tmp_path / "run") as folder:
        folder.write_run({"schema": 1, "finished": "2026-03-01T10:00:00+00:00"})
    assert imported(tmp_path / "run", sample("osu_latency.txt")) == 2
    assert "holds a run that was measured" in capsys.readouterr().err


def test_what_the_user_tells_fills_in_what_a_log_does_not(tmp_path: Path) -> None:
    told = ("--hosts", "h0:2,h1:2", "--mpi", "Open MPI 5.0.11", "--emulated")
    assert imported(tmp_path / "run", sample("osu_allreduce.txt"), sample("nccl_all_reduce.txt"), *told) == 0
    by_mode = {r.mode: r for r in load(tmp_path / "run").records}
    assert by_mode["OSU"].hosts == ("h0", "h0", "h1", "h1")
    assert (by_mode["OSU"].ranks, by_mode["OSU"].ranks_per_host, by_mode["OSU"].mpi) == (4, 2, "Open MPI 5.0.11")
    assert by_mode["nccl-tests"].hosts == ("node-a", "node-a", "node-b", "node-b")
    assert by_mode["nccl-tests"].mpi == ""
    assert all(r.emulated for r in by_mode.values())
    assert "EMULATED" in render(tmp_path / "run")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--hosts", "h0,h1", "--ranks", "3"), "--hosts has 2 ranks and --ranks 3"),
        (("--hosts", "h0:x"), "a host's name, or NAME:N"),
        (("--fabric", " "), "the fabric's name is empty"),
        (("--rate", "fast"), "fast"),
        (("--ranks", "0"), "--ranks"),
        (("--as", "tea"), "--as"),
        (("/nonexistent",), "/nonexistent: cannot be read"),
    ],
)
def test_mistakes_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    assert imported(tmp_path / "run", sample("osu_latency.txt"), *arguments) == 2
    err = capsys.readouterr().err
    assert said in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()
