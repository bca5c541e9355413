"""A run as one side: the launches of each metric, with what their samples look like."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reports.comparison.baseline import read_side
from reports.load import load
from reports.view import view
from tests.reports.comparison.planted import allreduce, noisy, side
from tests.reports.folder import Folder, metric

CASE = "allreduce/roce0/pure/mpi/float32/8B/2r"


def test_a_launch_each_and_what_the_case_is() -> None:
    found = side(allreduce([1e-6, 3e-6, 2e-6])).cases[CASE]
    assert found.metrics["time"].values == [1e-6, 3e-6, 2e-6] and found.metrics["time"].value == 2e-6
    assert found.metrics["time"].noise is None
    told = {key: found.fields[key] for key in ("proof", "recipe", "pages", "sync", "hosts", "thread_level")}
    assert told == {"proof": "proved", "recipe": "pure", "pages": "small", "sync": "barrier",
                    "hosts": ["localhost"] * 2, "thread_level": "single"}  # fmt: skip


def test_a_percentile_that_not_every_launch_can_tell_is_none() -> None:
    """The launches that can are the quick ones."""
    f = Folder(2)
    for launch, tail in enumerate((2e-6, None), 1):
        got = {"time": metric(1e-6), "time_p99": metric(tail, note="n=9 < 368" if tail is None else "")}
        f.add("allreduce", "roce0", 8, launch=launch, dtype="float32", metrics=got)
    assert list(side(f).cases[CASE].metrics) == ["time"]


@pytest.mark.parametrize(
    ("status", "why"), [("timeout", "timeout: rank 1 hung"), ("ok", "its bytes left the fabric (disproved)")]
)
def test_what_has_no_number_says_why(status: str, why: str) -> None:
    f = Folder()
    reason = "" if status == "ok" else "rank 1 hung"
    f.add("allreduce", "roce0", 8, dtype="float32", status=status, reason=reason, proof="disproved")
    found = side(f)
    assert not found.cases and found.wrong == {CASE: why}


def test_samples_are_blocks_around_each_launchs_value(tmp_path: Path) -> None:
    f = Folder(1)
    times = (np.random.default_rng(1).normal(10_000, 100, 400)).astype("<i8")[None, :]
    cited = {"time": {"file": "samples/job-1.bin", "offset": 0, "shape": [1, 400], "dtype": "<i8", "unit": "ns"}}
    f.add("allreduce", "roce0", 8, dtype="float32", samples=cited,
          metrics={"time": metric(10e-6), "busbw": metric(1e6, "bytes/s", better="higher"),
                   "entry_skew": metric(1e-7)})  # fmt: skip
    f.write(tmp_path)
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples/job-1.bin").write_bytes(times.tobytes())
    metrics = read_side(tmp_path).cases[CASE].metrics
    (time,), (rate,), (skew,) = (metrics[name].launches for name in ("time", "busbw", "entry_skew"))
    assert len(time.blocks) == len(rate.blocks) > 1 and skew.blocks == ()
    assert np.median(time.blocks) == pytest.approx(10e-6, rel=0.01)
    assert time.blocks[0] / 10e-6 == pytest.approx(1e6 / rate.blocks[0])
    assert read_side(tmp_path, samples=False).cases[CASE].metrics["time"].launches[0].drawn == (10e-6,)


def test_several_cases_of_a_lab(tmp_path: Path) -> None:
    allreduce(noisy(1), 3).write(tmp_path)
    assert len(read_side(tmp_path).cases) == 3
    assert view(load(tmp_path)).summaries[0].id == CASE
