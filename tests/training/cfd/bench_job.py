"""The cfd benchmark on the ranks of a job, with what can go wrong planted; rank 0 prints a record a line.

``python -m tests.training.cfd.bench_job``, under mpiexec.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from fabrics.model import Fabric, Proof
from microbench import mpi
from microbench.case import Case
from microbench.registry import load
from suite import session
from training.cfd import desk
from training.cfd.gas import Field
from training.cfd.halo import Halo
from training.cfd.options import Options

GRID = "13x8x6"
PLANTS = ("usual", "weak", "one mode", "unstable", "split", "no share", "too large", "lost halo", "leak")


def options(plant: str) -> dict[str, Any]:
    """What a case of that name sets."""
    own: dict[str, dict[str, Any]] = {
        "weak": {"scaling": "weak", "compare": ["overlapped", "blocking"]},
        "one mode": {"scaling": "none", "compare": ["probes"], "cfl": 0.3},
        "unstable": {"cfl": 8, "scaling": "none", "steps": 40},
        "split": {"split": "1x3"},
        "no share": {"grid": "3x3x6"},
        "too large": {"grid": "1200x1200x1200"},
    }
    return Options.of({"grid": GRID, "steps": 2, **own.get(plant, {})}).as_dict()


@contextmanager
def planted(name: str) -> Iterator[None]:
    """What goes wrong on the way."""
    kept = Halo.finish, desk.Flow.totals
    if name == "lost halo":
        Halo.finish = _lost  # type: ignore[method-assign]
    if name == "leak":
        desk.Flow.totals = _leaking  # type: ignore[method-assign]
    try:
        yield
    finally:
        Halo.finish, desk.Flow.totals = kept  # type: ignore[method-assign]


def _lost(self: Halo, state: Field) -> None:
    """One neighbour's cells are left where they came in."""
    self._wait.run(1)
    for face, buffer in zip(self._faces[:-1], self._in, strict=False):
        state[face.ghosts] = buffer


def _leaking(self: desk.Flow) -> Field:
    """As if a face had been forgotten: mass leaves with every step."""
    mine = [*self.solver.totals(), *(float(abs(field).sum()) for field in self.solver.own)]
    mine[0] -= 1e-9 * self.solver.steps
    rows = self._job.comm.allgather(mine)
    return np.array(rows).sum(axis=0)


def main() -> None:
    """Measure and print."""
    job = session.open_job(mpi.start("single"), Fabric("here", "shm", ()))
    table = load(["training.cfd.bench"])
    for plant in PLANTS:
        own = options(plant)
        case = Case(
            "cfd", "here", ranks=job.size, options=own, workload=Options.of(own).label, budget_s=0.05,
            min_iterations=2, max_iterations=2,
        )  # fmt: skip
        with planted(plant):
            outcome = session.run_case(job, case, table)
        if job.rank == 0:
            print(session.compose(job, case, outcome, Proof("unknown", "no probe"), "single").to_json(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
