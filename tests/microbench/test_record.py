"""Records survive the way to disk and back, and stay strict JSON."""

from __future__ import annotations

import json

import pytest

from microbench.case import Case
from microbench.record import SCHEMA, Metric, Record


def record(**more: object) -> Record:
    return Record(**{"id": "x", "benchmark": "latency", "fabric": "shm", "status": "ok", **more})  # type: ignore[arg-type]


def test_round_trip() -> None:
    before = record(
        metrics={"time": Metric(1.5e-6, "s", 30, 1e-6, 2e-6)}, hosts=("h0", "h1"), reported_ranks=(0,), nbytes=0
    )
    assert Record.from_dict(json.loads(before.to_json())) == before


def test_no_bare_nan() -> None:
    line = record(metrics={"time": Metric(float("nan"), "s", 1)}, method={"x": [float("inf")]}).to_json()
    data = json.loads(line, parse_constant=lambda c: pytest.fail(f"bare {c}"))
    assert data["metrics"]["time"]["value"] is None
    assert data["method"]["x"] == [None]


def test_a_status_other_than_ok_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="without a reason"):
        record(status="failed")


@pytest.mark.parametrize("data", [{}, [], "x", {"schema": SCHEMA + 1}, {"schema": SCHEMA, "id": "x"}])
def test_what_is_no_record_is_told(data: object) -> None:
    with pytest.raises(ValueError, match=r"record"):
        Record.from_dict(data)  # type: ignore[arg-type]


def test_ids_tell_cases_apart_and_launches_not() -> None:
    case = Case("allreduce", "shm", nbytes=8, dtype="float32", ranks=3)
    assert case.id == "allreduce/shm/pure/mpi/library/float32/8B/3r"
    assert Case(**case.as_dict()) == case
