"""One rank's part in every step: its buffers, and a program per step.

Ranks 0 to p-1 are hosts, rank p+i is the DPU beside host i. In host modes every host computes and waits as MPI
programs do, and the DPUs sleep. Staged, a host sends its data to its DPU and finishes that before it computes,
the DPUs run the allreduce among themselves, and the result comes back. Only rank 0 is timed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from collectives.offload import schedule
from collectives.offload.waiting import Waiting
from fabrics.errors import CannotRun
from microbench import check
from microbench.buffers import allocate
from microbench.case import Case
from microbench.dtypes import counted, dtype, elements, mpi_type
from microbench.engine import CallSpec, Program, requests, statuses
from microbench.job import Job

_DATA, _RESULT = 41, 42
_START, _POSTED, _WORKED, _END = range(4)  # the stamps of every timed program
_OPERATION, _SENT, _BARRIER = range(3)  # requests

Calls = list[CallSpec | str]


def host_count(roles: Sequence[str], ranks: int) -> int:
    """How many hosts a job has; CannotRun unless they come first and are followed by one DPU each."""
    hosts = ranks // 2
    if hosts >= 2 and tuple(roles) == ("host",) * hosts + ("dpu",) * hosts:
        return hosts
    told = ",".join(roles) or f"none for its {ranks} ranks"
    raise CannotRun(
        f"offload_allreduce needs 2 or more hosts, then one DPU for each in the same order"
        f" (roles host,host,dpu,dpu): this job's roles are {told}"
    )


class Crew:
    """One rank's buffers, communicators and programs; made by all ranks together.

    ``tally`` counts the collectives that this DPU finished, natively.
    """

    def __init__(self, job: Job, case: Case, waiting: Waiting) -> None:
        MPI, self.kind = job.engine.MPI, dtype(case.dtype or "float32")  # noqa: N806 - the module's own name
        self.job, self.waiting = job, waiting
        self.hosts = host_count(job.roles, job.size)
        self.is_dpu = job.rank >= self.hosts
        self.partner = job.rank - self.hosts if self.is_dpu else job.rank + self.hosts
        self.peers = job.comm.Split(int(self.is_dpu), job.rank)
        self.peers.Set_errhandler(MPI.ERRORS_RETURN)
        nbytes = case.nbytes or 0
        self.type, self.count = mpi_type(MPI, self.kind), elements(nbytes, self.kind)
        self.send, self.receive = allocate(nbytes, job.pages), allocate(nbytes, job.pages)
        if not self.is_dpu:
            self.send[:] = check.contribution(self.kind, self.count, job.rank, self.hosts).view("u1")
        self.tally = np.zeros(1, "i8")
        self._slots, self._status = requests(3, MPI), statuses(1)

    def close(self) -> None:
        """Give the communicator back."""
        self.peers.Free()

    def poison(self) -> None:
        """Spoil whatever this rank receives, so that an earlier result cannot pass."""
        check.poison(self.receive)
        if self.is_dpu:
            check.poison(self.send)

    def expected(self) -> Any:
        """What ``receive`` must hold after a step; None on a DPU."""
        return None if self.is_dpu else check.total(self.kind, self.count, self.hosts)

    def program(self, step: str, steps: int = 0, nap_ns: int = 0) -> Program | None:
        """What this rank runs in each iteration of ``step``, None where it has no part.

        ``steps`` is the fixed work of a computing host, ``nap_ns`` how long one sleeps that stands in for it.
        """
        if self.is_dpu:
            return self._program(self._offload()) if schedule.offloaded(step) else None
        if step == schedule.COMPUTE:
            return self._timed([], self._compute(step, steps, 0), []) if self.job.rank == 0 else None
        work = self._compute(step, steps, nap_ns) if schedule.overlapped(step) else []
        if schedule.offloaded(step):
            return self._timed(self._stage(), work, [self._wait(_OPERATION)], self._gentle_barrier())
        return self._timed([self._allreduce()], work, [self._busy_wait(_OPERATION)], [("MPI_Barrier", self.peers)])

    def _program(self, calls: Calls) -> Program:
        return self.job.engine.program(*calls)

    def _timed(self, post: Calls, work: Calls, wait: Calls, sync: Calls | None = None) -> Program:
        return self._program([*(sync or []), "stamp", *post, "stamp", *work, "stamp", *wait, "stamp"])

    def _compute(self, step: str, steps: int, nap_ns: int) -> Calls:
        """Fixed work, with its probes; a sleep on a host whose core the emulated DPUs need."""
        if nap_ns and self.job.rank and schedule.offloaded(step):
            return [("nap", nap_ns)]
        calls: Calls = []
        for n, piece in enumerate(schedule.chunks(steps, schedule.probes(step) + 1)):
            calls += [("probe", self._slots[_OPERATION], self._status)] if n else []
            calls.append(("work", piece))
        return calls

    def _allreduce(self) -> CallSpec:
        total = self.job.engine.MPI.SUM
        data = (self.send, self.receive, self.count, self.type, total)
        return (counted(self.job.engine, "MPI_Iallreduce", self.count), *data, self.peers, self._slots[_OPERATION])

    def _message(self, name: str, buffer: Any, tag: int, slot: int) -> CallSpec:
        envelope = (buffer, self.count, self.type, self.partner, tag, self.job.comm)
        return (counted(self.job.engine, name, self.count), *envelope, self._slots[slot])

    def _busy_wait(self, slot: int) -> CallSpec:
        return ("MPI_Wait", self._slots[slot], self._status)

    def _wait(self, slot: int) -> CallSpec:
        """Rank 0 has a core of its own and waits as MPI programs do; the others as the fabric demands."""
        if self.job.rank == 0:
            return self._busy_wait(slot)
        return self.waiting.call(self._slots[slot], self._status)

    def _gentle_barrier(self) -> Calls:
        return [("MPI_Ibarrier", self.peers, self._slots[_BARRIER]), self._wait(_BARRIER)]

    def _stage(self) -> Calls:
        """A host's posting: be ready for the result, hand over the data, and see it gone."""
        return [
            self._message("MPI_Irecv", self.receive, _RESULT, _OPERATION),
            self._message("MPI_Isend", self.send, _DATA, _SENT),
            self._wait(_SENT),
        ]

    def _offload(self) -> Calls:
        """A DPU's service: data in, allreduce among the DPUs, one more in the tally, result out."""
        return [
            self._message("MPI_Irecv", self.send, _DATA, _SENT),
            self._wait(_SENT),
            self._allreduce(),
            self._wait(_OPERATION),
            ("stream", self.tally, 1, 1),
            self._message("MPI_Isend", self.receive, _RESULT, _SENT),
            self._wait(_SENT),
        ]
