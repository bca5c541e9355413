"""What the report says of allreduces: the formula that explains the library's, and how near the simulator comes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from collectives.schedules import ALGORITHMS
from collectives.simulate import Network, simulate
from reports.chapters import costs, simulated
from reports.load import load
from reports.models import cost
from reports.view import View, view
from tests.reports.folder import Folder, metric

A, B, C = 20e-6, 0.8e-9, 0.25e-9
SIZES = [1 << k for k in range(3, 26, 2)]
OWN = ("ring", "recursive-doubling")
FABRIC = "eth10g"


def time_s(algorithm: str, ranks: int, nbytes: int) -> float:
    """By the formula, which a run is planted with."""
    return float(cost.columns(algorithm, [(ranks, 1)], np.array([float(nbytes)]))[0] @ np.array([A, B, C, 0, 0]))


def run(folder: Path, slower: float = 1.0) -> View:
    """The library does recursive doubling to 4 KiB, then a ring; schedules take ``slower`` times as long as planted."""
    f = Folder()
    for nbytes in [0, *(1 << k for k in range(3, 26))]:
        f.add("latency", FABRIC, nbytes, dtype="int8", metrics={"time": metric(A + B * nbytes)})
        f.add("reduce_local", FABRIC, nbytes, dtype="float32", metrics={"time": metric(C * nbytes + 1e-7)})
    for ranks in (2, 3, 4):
        hosts = tuple(f"h{k}" for k in range(ranks))
        for nbytes in SIZES:
            usual = OWN[1] if nbytes <= 4096 else OWN[0]
            for algorithm in ("library", *OWN):
                t = time_s(usual if algorithm == "library" else algorithm, ranks, nbytes)
                t *= 1.0 if algorithm == "library" else slower
                f.add("allreduce", FABRIC, nbytes, ranks=ranks, ranks_per_host=1, hosts=hosts, dtype="float32",
                      algorithm=algorithm, metrics={"time": metric(t)})  # fmt: skip
    return view(load(f.write(folder / "run")))


def test_the_report_names_what_the_library_does_and_where_schedules_cross(tmp_path: Path) -> None:
    text = " ".join("\n".join(costs.blocks(run(tmp_path))).split())
    assert "to 4 KiB: the library seems to use recursive-doubling: 100 % of draws choose it" in text
    assert "above 256 KiB: the library seems to use ring: 100 % of draws choose it" in text
    assert "to 4 KiB: the library takes as long as recursive-doubling (0.0 % apart), in 15 cells" in text
    assert "4 ranks, by formula the fastest: recursive-doubling from 8 B, ring from " in text
    assert "reducing a byte takes 0.250 ns" in text


def test_schedules_that_take_what_the_network_does_are_simulated_without_error(tmp_path: Path) -> None:
    rows = simulated.of_fabric(run(tmp_path), FABRIC)
    assert {(row.summary.algorithm, row.summary.ranks) for row in rows} == {(a, p) for a in OWN for p in (2, 3, 4)}
    assert all(row.summary.nbytes >= 1 << 20 for row in rows)
    assert max(abs(row.error) for row in rows if row.summary.algorithm == "ring") < 0.01


def test_the_simulators_error_is_told(tmp_path: Path) -> None:
    (block,) = simulated.blocks(run(tmp_path, slower=2.0))
    ring = next(line.split() for line in block.splitlines() if "ring" in line)
    assert (ring[:3], float(ring[5])) == ([FABRIC, "ring", "2"], pytest.approx(-50, abs=0.5))


def test_the_planted_network_is_the_simulators(tmp_path: Path) -> None:
    found = simulate(ALGORITHMS["allreduce", "ring"](4, 1 << 20), 4, Network(A, 1 / B, reduce_bytes_per_s=1 / C))
    assert found.time_s == pytest.approx(time_s("ring", 4, 1 << 22), rel=1e-6)


def test_a_run_without_allreduces_says_nothing(tmp_path: Path) -> None:
    f = Folder()
    f.add("latency", FABRIC, 8, metrics={"time": metric(1e-5)})
    assert costs.blocks(view(load(f.write(tmp_path / "run")))) == []
