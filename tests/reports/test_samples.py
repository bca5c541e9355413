"""Samples read back: the headline is remade as the document says, and damage tells nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from microbench.record import Record
from reports.samples import series

TIMES = np.array([[2000, 4000, 6000, 8000], [3000, 3000, 9000, 9000]], dtype="<i8")


def record(folder: Path, benchmark: str = "allreduce", valid: list[int] | None = None, **more: Any) -> Record:
    (folder / "samples").mkdir(exist_ok=True)
    data = TIMES.tobytes() + (b"" if valid is None else np.array([valid], dtype="<i8").tobytes())
    (folder / "samples/job-1.bin").write_bytes(data)
    cited = {"time": {"file": "samples/job-1.bin", "offset": 0, "shape": [2, 4], "dtype": "<i8", "unit": "ns"}}
    if valid is not None:
        cited["valid"] = {**cited["time"], "offset": TIMES.nbytes, "shape": [1, 4]}
    return Record("x", benchmark, "shm", "ok", samples=cited, **more)


def test_a_collective_is_its_slowest_rank(tmp_path: Path) -> None:
    assert series(tmp_path, record(tmp_path)) == pytest.approx([3e-6, 4e-6, 9e-6, 9e-6])
    assert series(tmp_path, record(tmp_path, reported_ranks=(0,))) == pytest.approx([2e-6, 4e-6, 6e-6, 8e-6])


def test_latency_is_half_of_a_round_trip(tmp_path: Path) -> None:
    assert series(tmp_path, record(tmp_path, "latency")) == pytest.approx([1e-6, 2e-6, 3e-6, 4e-6])


def test_a_batch_is_divided_and_what_began_late_left_out(tmp_path: Path) -> None:
    assert series(tmp_path, record(tmp_path, method={"batched": 10})) == pytest.approx([3e-7, 4e-7, 9e-7, 9e-7])
    assert series(tmp_path, record(tmp_path, valid=[1, 0, 0, 1])) == pytest.approx([3e-6, 9e-6])
    assert series(tmp_path, record(tmp_path, valid=[0, 0, 0, 0])) is None


@pytest.mark.parametrize(
    "cited",
    [{}, {"file": "samples/gone.bin"}, {"offset": 8}, {"offset": -8}, {"shape": [2]}, {"shape": "2,4"},
     {"dtype": "<i4"}, {"file": "../../etc/passwd"}, {"shape": [0, 4]}],
)  # fmt: skip
def test_damage_tells_nothing(cited: dict[str, Any], tmp_path: Path) -> None:
    good = record(tmp_path)
    time = {**good.samples["time"], **cited} if cited else {}
    assert series(tmp_path, Record("x", "allreduce", "shm", "ok", samples={"time": time})) is None
