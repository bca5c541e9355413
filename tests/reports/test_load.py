from __future__ import annotations

import json
from pathlib import Path

import pytest

from reports.load import INTERRUPTED, SPENT, UNFINISHED, NotARun, load
from tests.reports.folder import Folder, lab_run, metric


def _three(directory: Path, **change: object) -> Path:
    f = Folder(**change)  # type: ignore[arg-type]
    for nbytes in (8, 64, 512):
        f.add("latency", "eth10g", nbytes, metrics={"time": metric(1e-6)})
    return f.write(directory)


def test_a_whole_run_is_read_back(tmp_path: Path) -> None:
    planted = lab_run()
    data = load(planted.write(tmp_path))
    assert data.notices == ()
    assert data.finished
    assert len(data.records) == len(planted.records)
    assert data.records[0].metrics == planted.records[0].metrics
    assert [f["name"] for f in data.fabrics] == ["shm", "tcp-lo", "eth2g5", "eth10g", "roce"]


def test_a_torn_last_line_is_dropped_and_named(tmp_path: Path) -> None:
    data = load(_three(tmp_path, tail=b'{"schema": 1, "id": "latency/eth10g", "bench'))
    assert len(data.records) == 3
    assert data.notices == ("records.jsonl line 4 is torn, as a crash leaves it: dropped",)


@pytest.mark.parametrize(
    "line",
    [b"\x00\x00\x00", b"\xff\xfe", b"[]", b"null", b"{}", b'{"schema": 1}', b'{"schema": 1, "id": 3}',
     b'{"schema":1,"id":"a","benchmark":"b","fabric":"c","status":"fine"}',
     b'{"schema":1,"id":"a","benchmark":"b","fabric":"c","status":"failed"}',
     b'{"schema":1,"id":"a","benchmark":"b","fabric":"c","status":"ok","nbytes":"8"}',
     b'{"schema":1,"id":"a","benchmark":"b","fabric":"c","status":"ok","metrics":[1]}',
     b'{"schema":1,"id":"a","benchmark":"b","fabric":"c","status":"ok","metrics":{"time":{"value":"1","unit":"s","n":1}}}',
     b'{"schema":1,"id":"a","benchmark":"b","fabric":"c","status":"ok","metrics":{"time":{"speed":1}}}',
     b'{"schema":1,"id":"a","benchmark":"b","fabric":"c","status":"ok","method":[]}'],
)  # fmt: skip
def test_a_corrupt_line_costs_itself_only(tmp_path: Path, line: bytes) -> None:
    path = _three(tmp_path) / "records.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + line + b"\n" + b"".join(lines[1:]))
    data = load(tmp_path)
    assert [r.nbytes for r in data.records] == [8, 64, 512]
    (notice,) = data.notices
    assert notice.startswith("records.jsonl line 2 is corrupt (")
    assert "\n" not in notice


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_not_a_number_is_no_value(tmp_path: Path, token: str) -> None:
    line = '{"schema":1,"id":"a","benchmark":"latency","fabric":"c","status":"ok",'
    line += '"metrics":{"time":{"value":' + token + ',"unit":"s","n":1}}}'
    path = _three(tmp_path) / "records.jsonl"
    path.write_text(line + "\n", "utf-8")
    assert load(tmp_path).records[0].metrics["time"].value is None


def test_an_unfinished_run_says_so(tmp_path: Path) -> None:
    data = load(_three(tmp_path, run={"finished": None}))
    assert data.notices == (UNFINISHED,)
    assert not data.finished


@pytest.mark.parametrize(
    ("ended", "said"), [("interrupted", INTERRUPTED), ("budget", SPENT), ("", UNFINISHED), (3, UNFINISHED)]
)
def test_how_a_run_ended_is_told(tmp_path: Path, ended: object, said: str) -> None:
    assert load(_three(tmp_path, run={"finished": None, "ended": ended})).unfinished == said


def test_a_run_without_records_is_a_run(tmp_path: Path) -> None:
    (_three(tmp_path) / "records.jsonl").unlink()
    data = load(tmp_path)
    assert data.records == ()
    assert "records.jsonl is missing" in data.notices[0]


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "no run.json"), ("{", "not JSON"), ("[]", "no schema number"), ('{"a": 1}', "no schema number"),
     ('{"schema": 2}', "run schema 2 is newer than 1: update fabricbench")],
)  # fmt: skip
def test_what_is_not_a_run(tmp_path: Path, content: str | None, says: str) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content, "utf-8")
    with pytest.raises(NotARun, match=says) as caught:
        load(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_and_an_absent_folder_are_not_runs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", "utf-8")
    for name in ("file", "absent"):
        with pytest.raises(NotARun, match="give a folder"):
            load(tmp_path / name)


def test_a_newer_record_is_refused_with_its_line(tmp_path: Path) -> None:
    newer = json.dumps({"schema": 2, "id": "a"}).encode()
    with pytest.raises(NotARun, match=r"line 4: record schema 2 is newer than 1: update fabricbench"):
        load(_three(tmp_path, tail=newer + b"\n"))


def test_unknown_fields_of_a_record_are_no_fault(tmp_path: Path) -> None:
    path = _three(tmp_path) / "records.jsonl"
    lines = [json.loads(line) | {"later": 1} for line in path.read_text("utf-8").splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    assert len(load(tmp_path).records) == 3


@pytest.mark.parametrize("name", ["environment", "plan", "fabrics", "jobs"])
def test_odd_parts_of_run_json_are_empty(tmp_path: Path, name: str) -> None:
    data = load(_three(tmp_path, run={name: 3}))
    assert len(getattr(data, name)) == 0


def test_samples_that_are_gone_or_cut_off_are_told(tmp_path: Path) -> None:
    f = Folder()
    for number, offset in ((1, 0), (2, 800)):
        cited = {
            "file": f"samples/job-{number}.bin",
            "offset": offset,
            "shape": [2, 50],
            "dtype": "int64",
            "unit": "ns",
        }
        f.add("latency", "shm", 8, launch=number, samples={"time": cited})
    folder = f.write(tmp_path)
    (notice,) = load(folder).notices
    assert notice.startswith("samples/job-1.bin and 1 more cited by records, missing or cut off")
    (folder / "samples").mkdir()
    (folder / "samples" / "job-1.bin").write_bytes(bytes(800))
    (folder / "samples" / "job-2.bin").write_bytes(bytes(800))
    (notice,) = load(folder).notices
    assert notice.startswith("samples/job-2.bin cited by records, missing or cut off")
    (folder / "samples" / "job-2.bin").write_bytes(bytes(1600))
    assert load(folder).notices == ()
