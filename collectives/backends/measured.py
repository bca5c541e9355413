"""A collective of torch.distributed, checked and measured as MPI's own: the same operands, checks, starts and looks."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch

from collectives import library
from collectives.backends import events
from collectives.backends.operations import OPERATIONS, Tensors
from collectives.backends.proving import proof_of, use_threads
from collectives.backends.rendezvous import CONNECT_TIMEOUT_S, process_group
from collectives.operands import Operands, no_blocks
from microbench import check
from microbench.buffers import allocate
from microbench.called import overhead_ns, python_call
from microbench.case import Case, Outcome
from microbench.dtypes import DType, dtype, elements
from microbench.job import Job, lowest_fault
from microbench.measure import Measured, measure
from microbench.outcome import outcome
from microbench.staging import DeviceMemory, Memory, invoke

THREADS = 1
_PROBED = 5  # elements a block


class Ready(library.Prepared):
    """A row's operands on one rank in some memory, and the call of torch.distributed that works on them."""

    why_barrier = "the backend has threads on the ranks' cores, which spinning until an agreed time would hold up"

    def __init__(self, job: Job, kind: DType, count: int, row: library.Collective, memory: Memory) -> None:
        self.job, self.row, self.memory = job, row, memory
        self.operation = OPERATIONS[row.name]
        send = memory.buffer(count * kind.nbytes, sent=True)
        self.o = Operands(job, kind, None, count, send, allocate(0), memory=memory)
        self.o.receive = memory.buffer(row.received(self.o) * kind.nbytes)
        tensors = Tensors.of(memory.tensor(self.o.send), memory.tensor(self.o.receive), kind.name)
        self.function = self.operation.bind(self.o, tensors)
        self.called = f"torch.distributed.{self.operation.name}"
        self.body = [(python_call(self.called, self.function),), *memory.finish()]
        self.placing = memory.moved(self.o.receive, self.o.send) if self.operation.in_place else []

    @property
    def refilled(self) -> bool:
        """Whether the operation has no form but in place."""
        return self.operation.in_place


def measured(job: Job, case: Case, row: library.Collective, make: Callable[[], Memory]) -> Outcome:
    """Form the group, prove its way once a job, see that it takes the type, then check, measure and check again.

    ``make`` gives memory for buffers. Collective over ``job.comm``; raises CannotRun and Invalid on every rank alike.
    """
    use_threads(THREADS)
    kind, memory = dtype(case.dtype or "float32"), make()
    with process_group(job, max(CONNECT_TIMEOUT_S, case.deadline_s / 2), case.backend, case.recipe or "pure"):
        proof = proof_of(job, case.backend, memory.name)
        count = elements(case.nbytes or 0, kind)
        job.agree(row.name, count=count, dtype=kind.name if row.moves_data else "no data", backend=case.backend)
        if reason := _unsupported(job, case, row, kind, make):
            return Outcome("unsupported", reason, proof=proof)
        ready = Ready(job, kind, count, row, memory)
        validation = ready.validate()
        got = measure(job, case, ready.body, ready.sync(case.sync), clocks=job.clocks)
        validation |= ready.again(int(job.decide(got.batched)))
        device_ns = events.device_ns(job, ready) if isinstance(memory, DeviceMemory) else None
    if job.rank:
        return Outcome()
    found = library.metrics(job, case, row, got)
    if device_ns is not None:
        found["time_device"] = events.metric_of(device_ns)
    got.method.update(_method(job, ready, got))
    return outcome(got, found, validation, tuple(range(job.size)), proof=proof)


def _unsupported(job: Job, case: Case, row: library.Collective, kind: DType, make: Callable[[], Memory]) -> str:
    """Why the backend does not do this, the same on every rank, or nothing."""
    if not row.moves_data:
        return ""
    count = elements(case.nbytes or 0, kind)
    if OPERATIONS[row.name].even and count % job.size:
        return no_blocks(count, kind, job.size, f"torch's {row.name} takes equal ones")
    reason = lacks(job, kind, row, make())
    return f"{case.backend} has no {row.name} of {kind.name}: {reason}" if reason else ""


def lacks(job: Job, kind: DType, row: library.Collective, memory: Memory) -> str:
    """What the backend says of five elements a block where it does not take the type, or nothing; for all ranks."""
    probe, said = Ready(job, kind, _PROBED * job.size, row, memory), ""
    check.poison(probe.o.receive)
    probe.o.send[:] = 0
    memory.upload()
    try:
        probe.function()
        for (finish,) in memory.finish():
            invoke(finish)
    except (RuntimeError, ValueError, TypeError, LookupError) as error:
        lines = str(error).strip().splitlines()
        said = lines[0] if lines else type(error).__name__
    return lowest_fault(job.comm, said)


def _method(job: Job, ready: Ready, got: Measured) -> dict[str, Any]:
    overhead_s = overhead_ns(job.engine) * 1e-9
    known = {
        "call": ready.called,
        "timing": f"timed from Python: an empty call takes about {overhead_s * 1e6:.1f} us",
        "python_overhead_s": overhead_s,
        "in_place": ready.operation.in_place,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "cpus_allowed": len(os.sched_getaffinity(0)),
    }
    return known | ready.memory.method()
