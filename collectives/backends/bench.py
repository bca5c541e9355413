"""A collective by a backend of torch.distributed: what is asked before torch is imported, and the way from there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from collectives.backends import table
from collectives.library import TABLE
from collectives.operands import IN_PLACE, NONBLOCKING
from microbench.case import Case, Outcome, Unsupported
from microbench.device import CPU, missing
from microbench.job import local_rank, lowest_fault
from microbench.registry import LIBRARY
from microbench.staging import DeviceMemory, HostMemory, Memory

if TYPE_CHECKING:
    from microbench.job import Job


def run(job: Job, case: Case, device: str = CPU) -> Outcome:
    """The collective ``case.benchmark`` by ``case.backend``, on buffers in the memory of ``device``; on every rank.

    Raises Unsupported for what the backend, this torch or this benchmark lacks; skipped where a rank has no device.
    """
    if reason := refused(job, case):
        raise Unsupported(reason)
    if reason := missing(job.comm, device):
        return Outcome("skipped", reason)
    loaded = table.load()
    if reason := lowest_fault(job.comm, table.why_not(case.backend, device)):
        raise Unsupported(reason)
    from collectives.backends.measured import measured  # noqa: PLC0415 - it imports torch

    row = next(row for row in TABLE if row.name == case.benchmark)
    outcome = measured(job, case, row, lambda: memory(job, device))
    return replace(outcome, method={**outcome.method, **loaded})


def refused(job: Job, case: Case) -> str:
    """Why there is no such case with any torch, or nothing."""
    if case.benchmark not in table.OPERATIONS:
        return f"{case.benchmark} is measured by MPI alone: {', '.join(table.OPERATIONS)} by {case.backend} too"
    called = [word for word in case.mode.split() if word in (NONBLOCKING, IN_PLACE)]  # the rest is how ranks start
    if called or case.algorithm != LIBRARY:
        other = " ".join(called) or case.algorithm
        return f"{case.backend} is measured in its own way alone, not {other}"
    if case.backend == "gloo" and job.fabric.kind == "shm":
        return "gloo has no shared-memory transport"
    return ""


def memory(job: Job, device: str) -> Memory:
    """Where a backend's buffers are: it takes device memory as such, whatever MPI does."""
    if device == CPU:
        return HostMemory(job.pages)
    from microbench.cuda import Cuda  # noqa: PLC0415 - it imports torch

    return DeviceMemory(Cuda(local_rank(job.hosts, job.rank)), staged=False)
