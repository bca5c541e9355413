"""A run's folder: one writer, whole files, samples that can be found again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fabrics.errors import CannotRun, UserError
from microbench.record import Record
from suite.store import RunFolder, write_whole

RECORD = Record("x", "latency", "shm", "ok")


def test_records_cite_their_samples(tmp_path: Path) -> None:
    samples = [np.arange(6, dtype="i8").reshape(2, 3), np.arange(4, dtype="i8").reshape(2, 2)]
    with RunFolder(tmp_path / "run") as folder:
        for array in samples:
            folder.add(RECORD, {"time": array}, job=3)
    lines = (tmp_path / "run" / "records.jsonl").read_text().splitlines()
    for line, array in zip(lines, samples, strict=True):
        cited = json.loads(line)["samples"]["time"]
        data = (tmp_path / "run" / cited["file"]).read_bytes()[cited["offset"] :]
        found = np.frombuffer(data[: array.nbytes], cited["dtype"]).reshape(cited["shape"])
        assert np.array_equal(found, array)
        assert cited["unit"] == "ns"


def test_the_second_writer_is_refused(tmp_path: Path) -> None:
    with RunFolder(tmp_path), pytest.raises(UserError, match="in use by another run"):
        RunFolder(tmp_path)


def test_a_folder_that_holds_a_run_is_refused(tmp_path: Path) -> None:
    with RunFolder(tmp_path) as folder:
        folder.write_run({"schema": 1})
    with pytest.raises(UserError, match="holds a run already"):
        RunFolder(tmp_path)


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(UserError, match=r"is not empty \(thesis.tex\): choose another folder"):
        RunFolder(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotRun, match="cannot write the run into"):
        RunFolder(tmp_path / "file" / "run")


def test_files_are_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_whole(path, "old")
    write_whole(path, "new")
    assert path.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


def test_run_json_has_no_nan(tmp_path: Path) -> None:
    with RunFolder(tmp_path) as folder:
        folder.write_run({"x": float("inf")})
    assert json.loads((tmp_path / "run.json").read_text()) == {"x": None}
