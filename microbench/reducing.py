"""What a reduction itself takes, apart from any message: MPI_Reduce_local of one buffer into another, on every rank.

All ranks reduce at once, as they do in a collective; an iteration's time is the longest of any rank.
"""

from __future__ import annotations

from microbench import check
from microbench.buffers import allocate
from microbench.case import Case, Outcome, Unsupported
from microbench.device import CPU
from microbench.dtypes import DTYPES, counted, dtype, elements, mpi_type
from microbench.engine import CallSpec
from microbench.job import Job
from microbench.measure import measure
from microbench.outcome import outcome, rate_metric, time_metrics
from microbench.registry import Benchmark
from microbench.sync import choose


def run(job: Job, case: Case) -> Outcome:
    """Check one reduction, and measure. Raises Unsupported for device memory."""
    if case.device != CPU:
        raise Unsupported("MPI_Reduce_local is measured in host memory")
    kind, nbytes = dtype(case.dtype or "float32"), case.nbytes or 0
    count = elements(nbytes, kind)
    job.agree(case.benchmark, count=count, dtype=kind.name)
    source, into = allocate(nbytes, job.pages), allocate(nbytes, job.pages)
    source.view(kind.numpy)[:] = kind.encode(check.contribution(kind, count, 1, 2))
    name = counted(job.engine, "MPI_Reduce_local", count)
    body: list[CallSpec] = [(name, source, into, count, mpi_type(job.engine.MPI, kind), job.engine.MPI.SUM)]
    into[:] = 0
    job.engine.program(*body).run(1)
    validation = check.verify(into, source.copy(), job.sum, job.seed)
    source[:] = 0  # so that what is timed adds nothing, and no sum grows beyond what the type holds
    got = measure(job, case, body, choose(job, case.sync), clocks=job.clocks)
    if job.rank:
        return Outcome()
    metrics = {**time_metrics(got), "bandwidth": rate_metric(nbytes, got, "0 B are nothing to reduce")}
    return outcome(got, metrics, validation, tuple(range(job.size)))


BENCHMARKS = (
    Benchmark("reduce_local", "adding one buffer to another, without messages", run, 1, dtypes=tuple(DTYPES),
              synchronised=True),
)  # fmt: skip
