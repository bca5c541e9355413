"""``bench --format osu``: OSU's columns to the letter, with its own statistics of our samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fabrics.errors import UserError
from microbench import registry
from microbench.record import Metric, Record
from suite import osuformat
from suite.imported.formats import read
from tests import jobs

SAMPLES = Path(__file__).parent / "imported" / "samples"
OSU_TITLES = {
    "latency": "osu_latency.txt", "bandwidth": "osu_bw.txt", "bibw": "osu_bibw.txt", "message_rate": "osu_mbw_mr.txt",
    "allreduce": "osu_allreduce.txt", "alltoall": "osu_alltoall.txt", "barrier": "osu_barrier.txt",
    "overlap_allreduce": "osu_iallreduce.txt",
}  # fmt: skip
TIMES = np.array([[10_000, 30_000, 20_000], [20_000, 40_000, 60_000]])  # ns, of two ranks


def record(benchmark: str, nbytes: int | None = 4096, **more: object) -> Record:
    return Record("x", benchmark, "shm", "ok", nbytes=nbytes, ranks=2, reported_ranks=(0, 1), **more)  # type: ignore[arg-type]


def row(benchmark: str, record: Record, **samples: object) -> str:
    table = osuformat.table(registry.load().get(benchmark), None)
    return osuformat.row(table, record, {"time": TIMES, **samples})  # type: ignore[dict-item]


@pytest.mark.parametrize("name", OSU_TITLES)
def test_titles_and_headings_are_osus_own(name: str) -> None:
    table = osuformat.table(registry.load().get(name), None)
    theirs = (SAMPLES / OSU_TITLES[name]).read_text().splitlines()
    ours = osuformat.title(table, record(name), "0.1.0")
    heading = next(line for line in reversed(theirs) if line.startswith("#"))
    assert ours[-1] == heading
    assert ours[1].startswith(next(line for line in theirs if line.startswith("# OSU")).rpartition(" v")[0])


def test_rows_are_as_wide_as_osus_and_hold_its_statistics() -> None:
    theirs = (SAMPLES / "osu_allreduce.txt").read_text().splitlines()[-1]
    ours = row("allreduce", record("allreduce"))
    assert ours == "4096                   30.00"
    assert len(ours) == len(theirs)
    assert row("latency", record("latency")) == "4096                   10.00"  # half of rank 0's mean
    window = record("bandwidth", method={"window": 64})
    assert row("bandwidth", window) == f"4096      {64 * 4096 / 40e-6 / 1e6:18.2f}"
    assert row("bibw", record("bibw", method={"window": 64})) == f"4096      {2 * 64 * 4096 / 40e-6 / 1e6:18.2f}"
    pairs = record("message_rate", method={"window": 64, "pairs": 1})
    assert row("message_rate", pairs).split()[2] == f"{64 / 40e-6:.2f}"
    assert row("barrier", record("barrier", None)) == "            30.00"


def test_late_iterations_and_batches_are_as_in_our_own_numbers() -> None:
    late = np.array([[1, 0, 1]])
    assert row("allreduce", record("allreduce"), valid=late).split() == ["4096", "27.50"]
    assert row("allreduce", record("allreduce", method={"batched": 10})).split() == ["4096", "3.00"]


def test_sizes_of_alltoall_go_to_each_peer() -> None:
    assert row("alltoall", record("alltoall")).split() == ["2048", "30.00"]
    assert row("alltoall", record("alltoall", 5)) == "# 5 B over 2 ranks is no size that every peer gets"


def test_overlap_is_clipped_as_osu_does() -> None:
    times = {"host.overall": 30e-6, "compute": 10e-6, "host.pure": 10e-6}
    metrics = {name: Metric(value, "s", 30) for name, value in times.items()}
    assert row("overlap_allreduce", record("overlap_allreduce", metrics=metrics)).split()[1:] == [
        "30.00",
        "10.00",
        "10.00",
        "0.00",
    ]
    metrics["host.overall"] = Metric(12.5e-6, "s", 30)
    assert row("overlap_allreduce", record("overlap_allreduce", metrics=metrics)).split()[-1] == "75.00"


def test_what_has_no_result_is_a_comment() -> None:
    failed = Record("x", "allreduce", "shm", "skipped", "does not fit", nbytes=8, ranks=2)
    assert row("allreduce", failed) == "# 8 skipped: does not fit"


@pytest.mark.parametrize("name", ["offload_allreduce", "dpu", "train"])
def test_what_osu_has_not_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="OSU has no test like"):
        osuformat.table(registry.load().get(name), None)


def test_a_nonblocking_call_is_measured_beside_compute() -> None:
    with pytest.raises(UserError, match="give overlap_allreduce"):
        osuformat.table(registry.load().get("allreduce"), "nonblocking")


def test_what_bench_prints_is_read_as_osus() -> None:
    few = ("--seconds", "0.02", "--iterations", "20")
    done = jobs.mpi(2, "-m", "suite.cli", "bench", "allreduce", "--sizes", "8,1K", "--format", "osu", *few)
    assert done.code == 0, done.err
    title = next(line for line in done.out.splitlines() if line.startswith("# OSU"))
    (log,) = read(done.out.replace(title, title.partition(":")[0]))
    assert [(f.benchmark, f.nbytes, f.dtype) for f in log.found] == [
        ("allreduce", 8, "float32"),
        ("allreduce", 1024, "float32"),
    ]
    assert all((f.metrics["time"].value or 0) > 0 for f in log.found)
    assert not log.troubles
