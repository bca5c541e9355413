"""``make schedules``: do schedules run as fast as C, do the known algorithms keep up with the library's, and how fast
are thousands of ranks simulated?

About ten minutes, as root for the lab.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from fabrics.lab import cluster
from microbench.stats import geometric_mean, hodges_lehmann
from reports.load import load
from reports.summary import by_launch
from reports.units import size
from suite import launch
from tests import labs
from tests.figures import parity, target
from tests.figures.runs import run
from tests.figures.table import Row, figure
from tests.figures.target import Found, Parts

PARTS = ("lowering", "hosts", "simulator")
LOWERING, WITHIN, PAIRS = 1.05, 1.10, 41
CELLS = (("ring", "1M"), ("doubling", "1K"))
FABRIC = "eth2g5"
SMALL, LARGE, STREAM = "8:4K", "4M,16M", "1M"
MEMORY_BYTES = 2 << 30
SIMULATED = (("ring", 1024, 1 << 24, 2.0), ("recursive-doubling", 65536, 256, 10.0))
_PLAN = """
launches = {launches}
budget_s = 0.5
fabrics = ["{fabric}"]
[bandwidth]
sizes = "{stream}"
[[allreduce]]
sizes = "{small}"
ranks = [{ranks}]
algorithms = ["library", "recursive-doubling"]
[[allreduce]]
sizes = "{large}"
ranks = [{ranks}]
algorithms = ["library", "ring"]
"""
_SIMULATE = """
import json, resource, sys, time
from collectives.schedules import ALGORITHMS
from collectives.simulate import Network, simulate
name, ranks, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
begun = time.monotonic()
timing = simulate(ALGORITHMS["allreduce", name](ranks, count), 4, Network(2e-6, 10e9, overhead_s=5e-7, nics=1))
took_s = time.monotonic() - begun
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"s": took_s, "bytes": peak, "simulated_s": timing.time_s, "messages": timing.messages}))
"""


def lowering(folder: Path, pairs: int) -> Found:
    """Programs made of schedules against C with the same calls, on two ranks."""
    launcher = launch.find_launcher()
    library = parity.compile_reference(launcher.path, folder)
    rows = [row for name, at in CELLS for row in parity.cells(launcher, library, str(pairs), at, name)]
    mean = geometric_mean([row["ratio"] for row in rows])
    name = "native schedules / C: geometric mean of median ratios (ring 1 MiB, recursive doubling 1 KiB)"
    return rows, [figure(name, f"<= {LOWERING}", mean, len(rows), mean <= LOWERING)]


def hosts(folder: Path, launches: int) -> Found:
    """Ring and recursive doubling against the library on two hosts of a lab, judged, and on three and four, shown."""
    rows: list[Row] = []
    for ranks in (2, 3, 4):
        with labs.made("run", nodes=ranks) as lab:
            rows += _on(lab, folder / f"hosts-{ranks}", ranks, launches)
    return rows, [
        _judged("ring / the better of library and bound, from 4 MiB, 2 hosts", rows, "ring"),
        _judged("recursive doubling / library, to 4 KiB, 2 hosts", rows, "recursive-doubling"),
    ]


def _on(lab: cluster.Lab, folder: Path, ranks: int, launches: int) -> list[Row]:
    plan = _PLAN.format(launches=launches, fabric=FABRIC, stream=STREAM, small=SMALL, large=LARGE, ranks=ranks)
    records = load(run(folder, plan, lab.config.name, FABRIC)).records
    values = {key: found.values for key, found in by_launch(records).items()}
    (stream,) = (median(found) for (case, name), found in values.items()
                 if case.startswith("bandwidth/") and name == "bandwidth")  # fmt: skip
    times = {case: found for (case, name), found in values.items() if case.startswith("allreduce/") and name == "time"}
    return [_row(case, times, ranks, stream) for case in times if "/library/" not in case]


def _row(case: str, times: Mapping[str, tuple[float, ...]], ranks: int, stream_bytes_per_s: float) -> Row:
    """One algorithm at one size: launches against the library's, and the median against the bound.

    The bound is 2 (p - 1) / p n over the measured stream rate (Patarasuk and Yuan 2009).
    """
    algorithm, dtype, at = case.split("/")[4:7]
    nbytes = int(at.removesuffix("B"))
    ours, library = times[case], times[case.replace(f"/{algorithm}/", "/library/")]
    bound_s = 2 * (ranks - 1) / ranks * nbytes / stream_bytes_per_s
    better_s = min(median(library), bound_s) if algorithm == "ring" else median(library)
    difference = hodges_lehmann(ours, library)
    return {
        "hosts": ranks, "algorithm": algorithm, "dtype": dtype, "size": size(nbytes), "ours_s": median(ours),
        "library_s": median(library), "bound_s": bound_s, "ratio": median(ours) / better_s,
        "minus library_s": difference.value, "low": difference.low, "high": difference.high, "n": len(ours),
    }  # fmt: skip


def _judged(name: str, rows: list[Row], algorithm: str) -> Row:
    """The worst size of an algorithm on two hosts."""
    judged = [row for row in rows if row["hosts"] == 2 and row["algorithm"] == algorithm]
    worst = max(judged, key=lambda row: float(row["ratio"]))
    met = worst["ratio"] <= WITHIN
    return figure(f"{name} ({worst['size']})", f"<= {WITHIN}", worst["ratio"], len(judged), met)


def simulator(times: int) -> Found:
    """Time and peak memory of processes that simulate one schedule each."""
    rows: list[Row] = []
    for algorithm, ranks, count, limit_s in SIMULATED:
        for _ in range(times):
            command = [sys.executable, "-c", _SIMULATE, algorithm, str(ranks), str(count)]
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60 * limit_s)
            rows.append({"algorithm": algorithm, "ranks": ranks, "limit_s": limit_s, **json.loads(done.stdout)})
    figures = [_slowest(rows, algorithm, limit_s) for algorithm, _, _, limit_s in SIMULATED]
    peak = max(row["bytes"] for row in rows)
    return rows, [
        *figures,
        figure("simulator: peak memory, GiB", "<= 2", peak / 2**30, len(rows), peak <= MEMORY_BYTES),
    ]


def _slowest(rows: list[Row], algorithm: str, limit_s: float) -> Row:
    took = [row for row in rows if row["algorithm"] == algorithm]
    worst = max(float(row["s"]) for row in took)
    name = f"simulator: {algorithm} of {took[0]['ranks']} ranks, slowest, s"
    return figure(name, f"<= {limit_s:g}", worst, len(took), worst <= limit_s)


def parts(folder: Path, quick: bool) -> Parts:
    """What can be measured, by name; ``quick`` does a few of each, to see that it runs."""
    return {
        "lowering": lambda: lowering(folder, 3 if quick else PAIRS),
        "hosts": lambda: hosts(folder, 1 if quick else 6),
        "simulator": lambda: simulator(1 if quick else 5),
    }


if __name__ == "__main__":
    sys.exit(target.run("schedules", __doc__, PARTS, parts))
