"""What a report prints follows from the samples on disk by the rules that ARCHITECTURE.md gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from microbench.stats import quantile
from tests import jobs

PLAN = """
budget_s = 0.1
[latency]
sizes = "8,64K"
[bandwidth]
sizes = "64K"
[bibw]
sizes = "64K"
[allreduce]
sizes = "8,64K"
[barrier]
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("remade")
    plan = folder / "plan.toml"
    plan.write_text(jobs.once(PLAN))
    done = jobs.fabricbench("run", "--plan", str(plan), "--fabric", "shm", "-o", str(folder / "run"))
    assert done.code == 0, done.err
    return folder / "run"


def samples(run: Path, cited: dict[str, Any]) -> NDArray[Any]:
    data = (run / cited["file"]).read_bytes()[cited["offset"] :]
    return np.frombuffer(data, cited["dtype"], count=int(np.prod(cited["shape"]))).reshape(cited["shape"])


def series(run: Path, record: dict[str, Any]) -> NDArray[Any]:
    """The headline of each iteration that counts, in s."""
    times = samples(run, record["samples"]["time"])
    if "valid" in record["samples"]:
        times = times[:, samples(run, record["samples"]["valid"])[0] == 1]
    each = times[0] / 2 if record["benchmark"] == "latency" else times[list(record["reported_ranks"])].max(axis=0)
    return np.asarray(each / record["method"]["batched"] * 1e-9)


def test_every_time_and_interval_follows_from_the_samples(run: Path) -> None:
    records = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    assert len(records) == 7
    for record in records:
        told, method = record["metrics"]["time"], record["method"]
        remade = quantile(series(run, record), level=method["look_level"], series=True)
        assert told["value"] == pytest.approx(remade.value, rel=1e-12), record["id"]
        assert (told["low"], told["high"]) == pytest.approx((remade.low, remade.high), rel=1e-12), record["id"]
        assert (told["n"], method["effective_n"]) == (remade.n, remade.effective_n)
