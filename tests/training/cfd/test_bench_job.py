"""The cfd benchmark in a real job: what it tells, and what it tells when something goes wrong."""

from __future__ import annotations

import pytest

from microbench.record import Record
from tests import jobs
from tests.training.cfd.bench_job import PLANTS

SLICES = 13 * 8 * 6 * 5 * 8  # bytes of the grid


@pytest.fixture(scope="module")
def records() -> dict[str, Record]:
    import json

    done = jobs.mpi(2, "-m", "tests.training.cfd.bench_job")
    assert done.code == 0, done.err
    found = [Record.from_dict(json.loads(line)) for line in done.out.splitlines()]
    return dict(zip(PLANTS, found, strict=True))


def test_it_tells_every_part_and_what_follows(records: dict[str, Record]) -> None:
    usual = records["usual"]
    assert (usual.status, usual.workload, usual.reported_ranks) == ("ok", "euler 13x8x6", (0, 1))
    t = {part: usual.metrics[f"{part}.step"].value or 0 for part in ("blocking", "probes", "silent", "alone", "one")}
    assert min(t.values()) > 0
    value = {name: metric.value for name, metric in usual.metrics.items()}
    cells = 13 * 8 * 6
    assert value["probes.cells_per_s"] == pytest.approx(cells / t["probes"])
    assert value["probes.cells_per_s_core"] == pytest.approx(cells / 2 / t["probes"])
    assert value["blocking.exposed"] == pytest.approx(t["blocking"] - t["silent"])
    assert value["blocking.exposed_fraction"] == pytest.approx(1 - t["silent"] / t["blocking"])
    assert value["blocking.speedup"] == pytest.approx(t["one"] / t["blocking"])
    assert value["blocking.efficiency"] == pytest.approx(t["one"] / t["blocking"] / 2)
    alone = 6 * 8 * 6 / t["alone"]  # rank 0 has 6 of the 13 layers
    assert value["blocking.weak_efficiency"] == pytest.approx(cells / 2 / t["blocking"] / alone)


def test_it_tells_how_it_was_measured(records: dict[str, Record]) -> None:
    method = records["usual"].method
    assert (method["grid"], method["split"], method["cells"]) == ("13x8x6", "2x1", 13 * 8 * 6)
    assert method["halo_bytes"] == 2 * 2 * 8 * 6 * 5 * 8
    assert method["rounds"] == 2
    assert records["usual"].validation["like"] == "one rank's bits"
    assert records["usual"].validation["compared_bytes"] == 3 * SLICES
    assert 0 <= records["usual"].validation["conserved_within"] < 1e-14


def test_it_leaves_out_what_is_not_asked_for(records: dict[str, Record]) -> None:
    weak, one = records["weak"], records["one mode"]
    parts = [{name.partition(".")[0] for name in record.metrics} for record in (weak, one)]
    assert parts == [{"blocking", "overlapped", "silent", "alone"}, {"probes", "silent"}]
    assert weak.validation["like"] == "the same bits in every mode"
    assert (weak.validation["compared_bytes"], one.validation["compared_bytes"]) == (2 * SLICES, SLICES)


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("unstable", "failed", ("unstable in step", "cfl 8", "the first cell that is no gas is (")),
        ("split", "unsupported", ("split 1x3", "2 ranks")),
        ("no share", "unsupported", ("3x3x6", "fewer than two layers")),
        ("too large", "skipped", ("MiB are available",)),
        ("lost halo", "invalid", ("blocking, after 2 steps on 2 ranks: wrong data",)),
        ("leak", "invalid", ("density is not conserved",)),
    ],
)
def test_what_goes_wrong_is_told_and_gives_no_number(
    records: dict[str, Record], name: str, status: str, said: tuple[str, ...]
) -> None:
    record = records[name]
    assert record.status == status
    assert all(text in record.reason for text in said), record.reason
    assert not record.metrics
