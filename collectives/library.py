"""Collectives, the MPI library's own and those of our schedules, from one table that others join.

All ranks start an iteration together (:mod:`microbench.sync`); its time is the longest local duration over the
ranks, in the non-blocking form of the call and its wait together. A size is the bytes of one rank's send buffer
(:mod:`collectives.operands`). ``busbw`` is size/time times the factor of the table, after nccl-tests' definition: what
the busiest rank's link must carry each way for any algorithm built of point-to-point messages. nccl-tests counts an
allgather's and a gather's size over all ranks, and multiplies by (n - 1)/n; of one rank's size that is n - 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives import calls, own
from collectives.backends.table import backends
from collectives.operands import IN_PLACE, MODES, ROOT, Operands, operands
from microbench import check, reals
from microbench.case import Case, Outcome, Unsupported
from microbench.device import CPU
from microbench.dtypes import DTYPES
from microbench.engine import CallSpec
from microbench.job import Job
from microbench.measure import Measured, measure
from microbench.outcome import fastest, outcome, rate_metric, skew_metrics, time_metrics
from microbench.refill import Refilled
from microbench.registry import LIBRARY, MPI, Benchmark
from microbench.sync import Sync, choose

PRECISION = 0.025


@dataclass(frozen=True)
class Collective:
    """One row of the table.

    ``fill`` writes the send buffer, and is None where no data moves; ``received`` is how many elements a rank's
    receive buffer holds. ``expected`` are its bytes from the start on, None on ranks that receive nothing defined; of
    an operation that adds it follows from ``sums``, the part of the sum that a rank receives. ``place`` is where in
    its receive buffer a rank's input stands in place, None on ranks that work out of place even then; there is no
    ``place`` where MPI defines no form in place. ``overwrites`` tells that the result then replaces the input.
    ``largest_buffer`` is how many times a size the largest buffer is, by the number of ranks.
    """

    name: str
    summary: str
    call: Callable[[Operands], CallSpec]
    busbw_factor: Callable[[int], float]
    fill: Callable[[Operands], None] | None = None
    received: Callable[[Operands], int] = lambda o: o.count
    expected: Callable[[Operands], NDArray[Any] | None] = lambda o: None
    sums: Callable[[Operands], slice | None] | None = None
    place: Callable[[Operands], NDArray[np.uint8] | None] | None = None
    overwrites: bool = False
    largest_buffer: Callable[[int], int] = lambda ranks: 1

    @property
    def moves_data(self) -> bool:
        """Whether it has sizes, types and a result to check."""
        return self.fill is not None

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes that MPI defines."""
        return tuple(mode for mode in MODES if self.place is not None or IN_PLACE not in mode)

    def result(self, o: Operands) -> NDArray[Any] | None:
        """What this rank's receive buffer must begin with; None where nothing is defined."""
        if self.sums is None:
            return self.expected(o)
        part = self.sums(o)
        return None if part is None else check.total(o.kind, o.count, o.ranks)[part]


TABLE = (
    Collective(
        "allreduce", "sum over all ranks, result on all", calls.allreduce, lambda n: 2 * (n - 1) / n, calls.fill_sum,
        sums=lambda o: slice(0, o.count), place=lambda o: o.receive, overwrites=True,
    ),
    Collective(
        "reduce", "sum over all ranks, result on one", calls.reduce, lambda n: float(n > 1), calls.fill_sum,
        received=lambda o: o.count if o.is_root else 0,
        sums=lambda o: slice(0, o.count) if o.is_root else None,
        place=lambda o: o.receive if o.is_root else None, overwrites=True,
    ),
    Collective(
        "broadcast", "one rank's data to all", calls.broadcast, lambda n: float(n > 1), calls.fill_root,
        expected=lambda o: None if o.is_root else calls.sent(o, ROOT),
    ),
    Collective(
        "allgather", "every rank's data to all", calls.allgather, lambda n: n - 1.0, calls.fill_own,
        received=lambda o: o.ranks * o.count, expected=calls.all_sent,
        place=calls.own_block, largest_buffer=lambda n: n,
    ),
    Collective(
        "reduce_scatter", "sum over all ranks, a block of it on each", calls.reduce_scatter, lambda n: (n - 1) / n,
        calls.fill_sum, received=lambda o: o.count if o.mode.in_place else calls.share(o).size,
        sums=lambda o: calls.share(o).elements, place=lambda o: o.receive, overwrites=True,
    ),
    Collective(
        "alltoall", "a block from each rank to each", calls.alltoall, lambda n: (n - 1) / n, calls.fill_own,
        expected=calls.exchanged, place=lambda o: o.receive, overwrites=True,
    ),
    Collective(
        "gather", "every rank's data to one", calls.gather, lambda n: n - 1.0, calls.fill_own,
        received=lambda o: o.ranks * o.count if o.is_root else 0,
        expected=lambda o: calls.all_sent(o) if o.is_root else None,
        place=lambda o: calls.own_block(o) if o.is_root else None, largest_buffer=lambda n: n,
    ),
    Collective(
        "scatter", "a block of one rank's data to each", calls.scatter, lambda n: (n - 1) / n, calls.fill_root,
        received=lambda o: calls.share(o).size, expected=calls.scattered, place=lambda o: None,
    ),
    Collective("barrier", "all wait for all", calls.barrier, lambda _: 0.0),
)  # fmt: skip


class Prepared:
    """A row's operands and programs on one rank: what is filled and run, and whether the result is right.

    ``why_barrier`` is why its ranks start after a barrier unless a case says otherwise, empty where they need not.
    """

    why_barrier = ""

    def __init__(self, job: Job, case: Case, row: Collective) -> None:
        self.job, self.row, self.o = job, row, operands(job, case, row.received)
        o = self.o
        job.agree(row.name, count=o.count, dtype=o.kind.name if row.moves_data else "no data")
        if case.algorithm == LIBRARY:
            call = row.call(o)
            self.body, self.called = o.memory.calls(o.finished(call)), str(call[0])
        else:
            self.body = own.calls(row.name, case.algorithm, o)
            self.called = f"{len(self.body)} calls of a schedule"
        self.placing: list[CallSpec] = []
        place = row.place(o) if row.place is not None and o.mode.in_place else None
        if place is not None:
            self.placing = [("copy", place, o.send, o.send.size)]

    @property
    def refilled(self) -> bool:
        """Whether the operation overwrites its own input; the same on every rank."""
        return self.o.mode.in_place and self.row.overwrites

    def sync(self, name: str) -> Sync:
        """How ranks start together: after a refill, where one is due."""
        inner = choose(self.job, name, self.why_barrier)
        return Refilled(self.placing, inner) if self.refilled else inner

    def once(self) -> None:
        """The operation a single time, on poisoned results and with its input in place."""
        check.poison(self.o.receive)
        self.o.memory.upload()
        self.job.comm.Barrier()
        self.job.engine.program(*self.placing, *self.body).run(1)
        self.o.memory.download()

    def validate(self) -> dict[str, Any]:
        """Real numbers within their tolerance where the operation rounds, then what is exact, which stays there."""
        if self.row.fill is None:
            return {}
        found: dict[str, Any] = {}
        if self.row.sums is not None and self.o.kind.digits:
            self.o.values[:] = reals.contribution(self.o.kind, self.o.count, self.o.rank)
            self.once()
            found = self._reals(self.row.sums(self.o))
        self.row.fill(self.o)
        self.once()
        return self.exact() | found

    def exact(self) -> dict[str, Any]:
        """Compare the result byte by byte."""
        expected = self.row.result(self.o)
        size = 0 if expected is None else expected.nbytes
        return check.verify(self.o.receive[:size], expected, self.job.sum, self.job.seed)

    def _reals(self, part: slice | None) -> dict[str, Any]:
        reference = reals.Reference(self.o.kind, self.o.count, self.o.ranks)
        mine = None if part is None else self.o.results[: part.stop - part.start]
        first = 0 if part is None else part.start
        return reals.verify(mine, first, reference, self.job.sum, self.job.max, self.job.seed)

    def again(self, batched: int) -> dict[str, Any]:
        """Check what the last timed iteration left; where a sample held several that overwrite, one more is run."""
        if self.row.fill is None:
            return {}
        self.o.memory.download()
        if self.refilled and batched > 1:
            self.once()
        return {"checked_after": self.exact()["checked_bytes"]}


def run(job: Job, case: Case, row: Collective) -> Outcome:
    """Check the data, measure, and check again what the last timed iteration left.

    Raises Unsupported for a case in place of an operation for which MPI defines none.
    """
    if IN_PLACE in case.mode.split() and row.place is None:
        raise Unsupported(f"MPI defines no {row.name} in place")
    if case.backend != MPI:
        from collectives.backends.bench import run as by_torch  # noqa: PLC0415 - it imports torch

        return by_torch(job, case, case.device)
    if case.device != CPU and (IN_PLACE in case.mode.split() or case.algorithm != LIBRARY):
        raise Unsupported("device memory is measured by the library's algorithm, out of place")
    ready = Prepared(job, case, row)
    validation = ready.validate()
    got = measure(job, case, ready.body, ready.sync(case.sync), clocks=job.clocks)
    validation |= ready.again(int(job.decide(got.batched)))
    if job.rank:
        return Outcome()
    got.method.update({"call": ready.called, **ready.o.memory.method()})
    return outcome(got, metrics(job, case, row, got), validation, tuple(range(job.size)))


def metrics(job: Job, case: Case, row: Collective, got: Measured) -> dict[str, Any]:
    """What a record says of a measured collective: times, busbw, and what takes one clock for all ranks."""
    found = time_metrics(got)
    if row.moves_data:
        why_none = "0 B carry no bandwidth" if not case.nbytes else "one rank: nothing crosses a link"
        found["busbw"] = rate_metric((case.nbytes or 0) * row.busbw_factor(job.size), got, why_none)
    if job.size > 1:
        found |= {"time_fastest": fastest(got), **skew_metrics(got)}
    return found


def _benchmark(row: Collective) -> Benchmark:
    return Benchmark(
        row.name,
        row.summary,
        lambda job, case: run(job, case, row),
        min_ranks=1,
        sized=row.moves_data,
        dtypes=tuple(DTYPES) if row.moves_data else (),
        precision=PRECISION,
        synchronised=True,
        modes=row.modes,
        algorithms=own.algorithms(row.name),
        backends=backends(row.name),
        largest_buffer=row.largest_buffer,
    )


BENCHMARKS: Sequence[Benchmark] = tuple(_benchmark(row) for row in TABLE)
