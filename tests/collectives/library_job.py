"""Collectives of the library in a real job; rank 0 prints a record a line.

``python -m tests.collectives.library_job SIZES [DTYPES [MODES [NAMES [ALGORITHMS]]]]``, each a list with commas
between; without them float32, every mode, every collective, the library's algorithm; ``all`` algorithms of each.
Sizes of no whole number of elements are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from collectives.library import BENCHMARKS
from fabrics.model import Fabric, Proof
from microbench import mpi
from microbench.case import Case
from microbench.dtypes import DTYPES
from microbench.registry import LIBRARY, Benchmark, Registry, case_mode
from suite import session


def cases(benchmark: Benchmark, ranks: int, sizes: str, dtypes: str, modes: str, algorithm: str) -> Iterator[Case]:
    """All that is asked for of one collective by one algorithm."""
    for mode in [mode for mode in benchmark.modes if not modes or mode in modes.split(",")]:
        for kind in dtypes.split(",") if benchmark.sized else ("",):
            for size in map(int, sizes.split(",")) if benchmark.sized else (None,):
                if size is None or size % DTYPES[kind].nbytes == 0:
                    yield Case(
                        benchmark.name, "here", algorithm=algorithm, mode=case_mode(mode), nbytes=size, dtype=kind,
                        ranks=ranks, min_iterations=3, max_iterations=5, budget_s=0.005, sync="barrier",
                    )  # fmt: skip


def main(sizes: str, dtypes: str = "float32", modes: str = "", names: str = "", by: str = LIBRARY) -> None:
    """Measure and print."""
    job = session.open_job(mpi.start("single"), Fabric("here", "shm", ()))
    table = Registry()
    for benchmark in BENCHMARKS:
        table.add(benchmark)
        if names and benchmark.name not in names.split(","):
            continue
        chosen = benchmark.algorithms if by == "all" else by.split(",")
        for case in [case for each in chosen for case in cases(benchmark, job.size, sizes, dtypes, modes, each)]:
            outcome = session.run_case(job, case, table)
            if job.rank == 0:
                print(session.compose(job, case, outcome, Proof("unknown", ""), "single").to_json())


if __name__ == "__main__":
    main(*sys.argv[1:])
