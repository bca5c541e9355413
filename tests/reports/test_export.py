from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from microbench.record import Record
from reports.export import COLUMNS
from reports.render import render
from reports.summary import summarise
from tests.reports.folder import Folder, lab_run, metric


def _refuse(token: str) -> Any:
    raise AssertionError(f"not strict JSON: {token}")


def _json(directory: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(render(directory, "json"), parse_constant=_refuse)
    return data


def test_json_holds_run_records_summaries_and_findings(tmp_path: Path) -> None:
    f = lab_run(3)
    data = _json(f.write(tmp_path))
    assert list(data) == ["run", "records", "summaries", "findings"]
    assert data["run"] == json.loads((tmp_path / "run.json").read_text("utf-8"))
    assert [Record.from_dict(r) for r in data["records"]] == [
        Record.from_dict(json.loads(r.to_json())) for r in f.records
    ]
    summaries = summarise(f.records)
    assert [s["id"] for s in data["summaries"]] == [s.id for s in summaries]
    assert data["summaries"][0]["metrics"]["time"]["value"] == summaries[0].value("time")
    assert data["summaries"][0]["spread"]["time"]["launches"] == 3


def test_findings_are_data(tmp_path: Path) -> None:
    found = _json(lab_run().write(tmp_path))["findings"]
    assert {f["chapter"] for f in found} == {2, 3, 4, 5, 6, 7, 8}
    (matter,) = [f for f in found if f["chapter"] == 7 and f["values"]["workload"].startswith("resnet50")]
    assert matter["values"]["step"]["value"] == pytest.approx(1.13)
    assert matter["values"]["step"]["low"] == pytest.approx(1.13 * 0.985 / 1.015)
    assert matter["values"]["bandwidth"]["value"] == pytest.approx(3.958, abs=0.01)
    assert matter["values"]["control"]["value"] == pytest.approx(1.0)


def test_infinities_become_null(tmp_path: Path) -> None:
    f = Folder()
    f.add("latency", "shm", 8, metrics={"time": metric(float("inf"), half=None)}, method={"r1": float("nan")})
    data = _json(f.write(tmp_path))
    assert data["summaries"][0]["metrics"]["time"]["value"] is None
    assert data["records"][0]["method"]["r1"] is None


def test_csv_has_a_row_per_summary_and_metric(tmp_path: Path) -> None:
    f = lab_run(3)
    text = render(f.write(tmp_path), "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    summaries = summarise(f.records)
    assert len(rows) == sum(max(1, len(s.metrics)) for s in summaries)
    by_key = {(row["id"], row["metric"]): row for row in rows}
    for s in summaries:
        for name, m in s.metrics.items():
            row = by_key[s.id, name]
            assert (float(row["value"]) if row["value"] else None) == m.value
            assert int(row["n"]) == m.n
            assert row["unit"] == m.unit
    first = by_key[summaries[0].id, "time"]
    assert first["basis"] == "range of 3 launches"
    assert (first["low"], first["high"]) == ("", "")
    assert float(first["launches_low"]) < float(first["value"]) < float(first["launches_high"])
    assert (first["emulated"], first["nbytes"]) == ("false", "0")


def test_csv_of_a_case_without_metrics_and_of_text_with_commas(tmp_path: Path) -> None:
    f = Folder()
    f.add("latency", "shm", 8, status="failed", reason='rank 1, "h1"\nline two')
    text = render(f.write(tmp_path), "csv")
    header, row = csv.reader(io.StringIO(text))
    assert tuple(header) == COLUMNS
    assert len(row) == len(COLUMNS)
    assert row[COLUMNS.index("reason")] == 'rank 1, "h1"\nline two'
    assert row[COLUMNS.index("metric")] == ""
    assert ", " not in text.splitlines()[0]


def test_the_empty_run_exports(tmp_path: Path) -> None:
    Folder().write(tmp_path)
    assert _json(tmp_path)["summaries"] == []
    assert render(tmp_path, "csv") == ",".join(COLUMNS) + "\n"


def test_csv_gives_no_status_ok_to_what_went_elsewhere(tmp_path: Path) -> None:
    f = Folder()
    f.add("latency", "eth2g5", 8, proof="disproved", metrics={"time": metric(1e-5)})
    f.add("latency", "eth10g", 8, metrics={"time": metric(1e-5)})
    rows = csv.DictReader(io.StringIO(render(f.write(tmp_path), "csv")))
    assert {row["fabric"]: row["status"] for row in rows} == {"eth2g5": "disproved", "eth10g": "ok"}
