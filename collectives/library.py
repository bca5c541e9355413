"""The MPI library's own collectives, from one table that others join.

All ranks start an iteration together (:mod:`microbench.sync`); its time is the longest local duration over the
ranks. A size is the bytes of one rank's send buffer. ``busbw`` is size/time times the factor of the table, after
nccl-tests' definition: what each rank's link must carry for any algorithm built of point-to-point messages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench import check
from microbench.buffers import allocate
from microbench.case import Case, Outcome
from microbench.dtypes import DTYPES, DType, counted, dtype, elements, mpi_type
from microbench.engine import CallSpec
from microbench.job import Job
from microbench.measure import measure
from microbench.outcome import fastest, outcome, rate_metric, skew_metrics, time_metrics
from microbench.registry import Benchmark
from microbench.sync import choose

ROOT = 0
PRECISION = 0.025


@dataclass
class Operands:
    """The buffers of one rank, and what they hold."""

    job: Job
    kind: DType
    type: Any
    count: int
    send: NDArray[np.uint8]
    receive: NDArray[np.uint8]

    def name(self, function: str) -> str:
        """The form of an MPI function that takes this count."""
        return counted(self.job.engine, function, self.count)

    @property
    def values(self) -> NDArray[Any]:
        """The send buffer, as elements."""
        return self.send.view(self.kind.numpy)


@dataclass(frozen=True)
class Collective:
    """One row of the table; ``fill`` writes inputs, ``expected`` is None on ranks that receive nothing defined."""

    name: str
    summary: str
    call: Callable[[Operands], CallSpec]
    busbw_factor: Callable[[int], float]
    fill: Callable[[Operands], None] | None = None
    expected: Callable[[Operands], NDArray[Any] | None] | None = None

    @property
    def moves_data(self) -> bool:
        """Whether it has sizes, types and a result to check."""
        return self.fill is not None


def _allreduce(o: Operands) -> CallSpec:
    return (o.name("MPI_Allreduce"), o.send, o.receive, o.count, o.type, o.job.engine.MPI.SUM, o.job.comm)


def _fill_sum(o: Operands) -> None:
    o.values[:] = check.contribution(o.kind, o.count, o.job.rank, o.job.size)


def _broadcast(o: Operands) -> CallSpec:
    buffer = o.send if o.job.rank == ROOT else o.receive
    return (o.name("MPI_Bcast"), buffer, o.count, o.type, ROOT, o.job.comm)


def _fill_root(o: Operands) -> None:
    o.send[:] = check.pattern(o.send.size, ROOT)


TABLE = (
    Collective(
        "allreduce",
        "sum over all ranks, result on all",
        _allreduce,
        lambda ranks: 2 * (ranks - 1) / ranks,
        _fill_sum,
        lambda o: check.total(o.kind, o.count, o.job.size),
    ),
    Collective(
        "broadcast",
        "one rank's data to all",
        _broadcast,
        lambda ranks: float(ranks > 1),
        _fill_root,
        lambda o: None if o.job.rank == ROOT else check.pattern(o.receive.size, ROOT),
    ),
    Collective("barrier", "all wait for all", lambda o: ("MPI_Barrier", o.job.comm), lambda _: 0.0),
)


def operands(job: Job, case: Case) -> Operands:
    """Buffers for a case, written."""
    kind = dtype(case.dtype or "float32")
    nbytes = case.nbytes or 0
    return Operands(
        job,
        kind,
        mpi_type(job.engine.MPI, kind),
        elements(nbytes, kind),
        allocate(nbytes, job.pages),
        allocate(nbytes, job.pages),
    )


def run(job: Job, case: Case, row: Collective) -> Outcome:
    """Check the data, measure, and check again what the last timed iteration left."""
    o = operands(job, case)
    job.agree(row.name, count=o.count, dtype=o.kind.name if row.moves_data else "no data")
    body = [row.call(o)]
    validation: dict[str, Any] = {}
    if row.fill is not None:
        row.fill(o)
        check.poison(o.receive)
        job.comm.Barrier()
        job.engine.program(*body).run(1)
        validation = _verify(row, o)
    got = measure(job, case, body, choose(job, case.sync), clocks=job.clocks)
    if row.fill is not None:
        validation["checked_after"] = _verify(row, o)["checked_bytes"]
    if job.rank:
        return Outcome()
    metrics = time_metrics(got)
    if row.moves_data:
        why_none = "0 B carry no bandwidth" if not case.nbytes else "one rank: nothing crosses a link"
        payload = (case.nbytes or 0) * row.busbw_factor(job.size)
        metrics["busbw"] = rate_metric(payload, got, why_none)
    if job.size > 1:
        metrics |= {"time_fastest": fastest(got), **skew_metrics(got)}
    return outcome(got, metrics, validation, tuple(range(job.size)))


def _verify(row: Collective, o: Operands) -> dict[str, Any]:
    expected = row.expected(o) if row.expected is not None else None
    return check.verify(o.receive, expected, o.job.sum, o.job.seed)


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
    )


BENCHMARKS = tuple(_benchmark(row) for row in TABLE)
