"""One rank's part of a flow that all ranks solve together: halos, the residual of all, and what goes wrong."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from microbench.case import Invalid
from microbench.job import lowest_fault
from training.cfd import blocks, gas
from training.cfd.gas import FIELDS, Field, N
from training.cfd.halo import Halo
from training.cfd.options import BLOCKING, PROBES, Options
from training.cfd.solver import Solver

if TYPE_CHECKING:
    from microbench.job import Job

CONSERVED = 1e-12  # of the sum of magnitudes: what rounding may change; a lost face changes a millionth or more


class Unstable(Exception):
    """The flow is no longer one of numbers; raised by every rank alike."""


class Flow:
    """The whole flow as seen by one rank; made, used and closed by all ranks together."""

    def __init__(self, job: Job, options: Options, split: blocks.Split) -> None:
        self._job, self._options = job, options
        self.block = blocks.block(options.grid, split, job.rank)
        self.halo = Halo(job.engine, job.comm, self.block)
        self.solver = Solver(options.grid, self.block, options.cfl, self.halo if job.size > 1 else None)
        self._sums, self.residual = np.zeros(N), np.zeros(N)
        MPI = job.engine.MPI  # noqa: N806 - the module's own name
        reduce = ("MPI_Allreduce", self._sums, self.residual, N, MPI.DOUBLE, MPI.SUM, job.comm)
        self._reduce = job.engine.program(reduce)
        self._before = self.totals()

    def step(self, mode: str) -> None:
        """One step, with the residual of all ranks at its end. Raises Unstable where that is no number."""
        np.copyto(self._sums, self.solver.step(overlap=mode != BLOCKING, probes=mode == PROBES))
        self._reduce.run(1)
        if not np.isfinite(self.residual).all():
            where = lowest_fault(self._job.comm, first_fault(self.solver))
            raise Unstable(f"unstable in step {self.solver.steps} (cfl {self._options.cfl:g}): {where or 'inf'}")

    def totals(self) -> Field:
        """The sums of the conserved variables over all cells, and of their magnitudes."""
        mine = [*self.solver.totals(), *(float(np.abs(field).sum()) for field in self.solver.own)]
        rows: list[list[float]] = self._job.comm.allgather(mine)
        return np.array([math.fsum(column) for column in zip(*rows, strict=True)])

    def check_conserved(self) -> float:
        """The largest change of a conserved variable so far, over its magnitudes; Invalid beyond :data:`CONSERVED`."""
        now = self.totals()
        off = np.abs(now[:N] - self._before[:N]) / now[N:]
        worst = int(off.argmax())
        if not off[worst] <= CONSERVED:
            raise Invalid(
                f"{FIELDS[worst]} is not conserved: it changed by {off[worst]:.2g} of its magnitudes in"
                f" {self.solver.steps} steps, {CONSERVED:g} allowed"
            )
        return float(off[worst])

    def close(self) -> None:
        """Give back the requests."""
        self.halo.close()


def first_fault(solver: Solver) -> str:
    """The first cell of a block that is no gas, by its place in the box, and what is wrong with it; nothing if none."""
    with np.errstate(all="ignore"):
        found = {"density": solver.own[0], "pressure": gas.pressure(solver.own), "energy": solver.own[4]}
        bad = {name: ~(np.isfinite(values) & (values > 0)) for name, values in found.items()}
    everywhere = np.logical_or.reduce(list(bad.values()))
    if not everywhere.any():
        return ""
    local = np.unravel_index(int(everywhere.argmax()), everywhere.shape)
    name = next(name for name in found if bad[name][local])
    cell = tuple(int(at) + first for at, first in zip(local, solver.block.first, strict=True))
    return f"the first cell that is no gas is {cell}, with {name} {found[name][local]:.3g}"
