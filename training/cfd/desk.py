"""Where a case is checked and timed, part after part; every method is called by all ranks together."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from microbench import check
from microbench.case import Case, Invalid
from microbench.pacing import Spent, out_of_time
from training.cfd import schedule
from training.cfd.blocks import Block, Split, block
from training.cfd.flow import Flow
from training.cfd.gas import Field, N
from training.cfd.options import Options
from training.cfd.schedule import ALONE, LEAD_IN, ONE, SILENT
from training.cfd.solver import Solver
from training.characterize.crew import resting

if TYPE_CHECKING:
    from microbench.job import Job

CHECKED_STEPS = 2

Bytes = NDArray[np.uint8]


class Desk:
    """One case on one rank: the flow of all, and the boxes of one rank that it is set beside.

    Every rank has a box like its share; the whole grid is on rank 0, where it is compared with.
    """

    def __init__(self, job: Job, options: Options, split: Split) -> None:
        self.job, self.options, self.split = job, options, split
        self.parts = schedule.parts(options, job.size)
        self.flow = Flow(job, options, split)
        self._own = alone(self.flow.block.cells, options.cfl) if job.size > 1 else None
        self._whole = alone(options.grid, options.cfl) if options.strong and job.rank == 0 else None
        self._quiet = resting(job)

    def check(self) -> dict[str, Any]:
        """A few steps of every mode from the same start, against one rank's bits or else the first mode's.

        Raises Invalid on every rank alike where a bit differs, Unstable where the flow breaks up.
        """
        found: dict[str, Any] = {}
        expected = self._of_one_rank() if self.options.strong else None
        for mode in self.options.compare:
            self.flow.solver.reset()
            for _ in range(CHECKED_STEPS):
                self.flow.step(mode)
            mine = _bytes(self.flow.solver.own)
            expected = mine.copy() if expected is None else expected
            try:
                found = check.verify(mine, expected, self.job.sum, self.job.seed)
            except Invalid as error:
                raise Invalid(f"{mode}, after {CHECKED_STEPS} steps on {self.job.size} ranks: {error}") from None
        self.flow.solver.reset()
        like = "one rank's bits" if self.options.strong else "the same bits in every mode"
        return {
            "compared_bytes": found["checked_bytes"] * len(self.options.compare), "wrong_bytes": 0,
            "flipped_bit_caught": found["flipped_bit_caught"], "like": like,
        }  # fmt: skip

    def _of_one_rank(self) -> Bytes:
        """This rank's cells as rank 0 alone computes them."""
        comm = self.job.comm
        if self._whole is None:
            mine = np.empty((N, *self.flow.block.cells))
            comm.Recv(mine, source=0)
            return _bytes(mine)
        for _ in range(CHECKED_STEPS):
            self._whole.step()
        for rank in range(1, self.job.size):
            comm.Send(np.ascontiguousarray(_share(self._whole, self._block(rank))), dest=rank)
        own = _bytes(_share(self._whole, self._block(0))).copy()
        self._whole.reset()
        return own

    def _block(self, rank: int) -> Block:
        return block(self.options.grid, self.split, rank)

    def block(self, part: str) -> int:
        """Nanoseconds of a block of steps, the lead-in left out, on this rank; 0 where it has no part in it."""
        if part in (ALONE, ONE):
            found = self._timed(self._solver(part).step) if self.job.rank == 0 else 0
            self._quiet.barrier()
            return found
        self.job.comm.Barrier()
        return self._timed(self._solver(part).step if part == SILENT else lambda: self.flow.step(part))

    def _solver(self, part: str) -> Solver:
        found = self._whole if part == ONE else self._own
        if found is None:
            raise ValueError(f"no solver was made for {part!r}")
        return found

    def _timed(self, step: Callable[[], object]) -> int:
        for _ in range(LEAD_IN):
            step()
        start = time.monotonic_ns()
        for _ in range(self.options.steps):
            step()
        return time.monotonic_ns() - start

    def rounds(self, case: Case, started: float) -> tuple[dict[str, list[int]], dict[str, Any]]:
        """Nanoseconds of this rank's blocks by part, one a round, and the method's account of them.

        ``started`` is when the case began (``time.monotonic``): its budget covers the check, and one round of warm-up.
        """
        before = time.monotonic()
        for part in self.parts:
            self.block(part)
        began = time.monotonic()
        planned = int(self.job.decide(schedule.rounds(case, began - before, began - started)))
        found: dict[str, list[int]] = {part: [] for part in self.parts}
        done, reason = 0, ""
        while done < planned and not reason:
            for part in schedule.order(self.parts, self.job.seed, done):
                found[part].append(self.block(part))
            done += 1
            now = time.monotonic()
            spent = Spent(now - started, now - began)
            reason = str(self.job.decide(out_of_time(case, done, spent) if done < planned else ""))
        return found, {
            "warmup_rounds": 1, "rounds": done, "order": "parts in an order drawn for each round",
            "stop_reason": reason or schedule.stop_reason(case, done),
            "measuring_s": round(time.monotonic() - started, 3),
        }  # fmt: skip

    def close(self) -> None:
        """Give back what MPI holds."""
        self.flow.close()


def alone(cells: tuple[int, int, int], cfl: float) -> Solver:
    """A box of one rank."""
    return Solver(cells, block(cells, (1, 1), 0), cfl)


def _share(whole: Solver, of: Block) -> Field:
    (x, y, _), (nx, ny, _) = of.first, of.cells
    return whole.own[:, x : x + nx, y : y + ny]


def _bytes(cells: Field) -> Bytes:
    return np.ascontiguousarray(cells).view("u1").reshape(-1)
