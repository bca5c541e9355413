"""Who does what in a case of ``train``: which ranks are hosts, which of them train, and how they wait."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace

from collectives.offload.channel import why_not
from collectives.offload.layout import HOST, layout_of
from collectives.offload.party import Crew
from collectives.offload.waiting import Quiet, Waiting, choose, spin
from fabrics.errors import CannotRun
from microbench.case import Unsupported
from microbench.job import Job
from training.exchange.modes import DPU
from training.setup import Setup

_TRANSPORTS = ("window", "staged")  # the usual one is the first that can be
_LOOK_S = 0.002
_POLLED_LOOKS, _SPUN_LOOKS = 4, 200


@dataclass
class Cast:
    """One rank's place in a case; made, and closed, by all ranks together.

    ``here`` is the hosts' own job, as a host sees it, None on a DPU. ``crew`` is what DPUs are used through, by
    ``transport``.
    """

    job: Job
    setup: Setup
    hosts: tuple[int, ...]
    here: Job | None
    waiting: Waiting
    crew: Crew | None = None
    transport: str = ""

    @classmethod
    def of(cls, job: Job, setup: Setup) -> Cast:
        """The ranks of a job. CannotRun for roles that do not fit, Unsupported for a transport that cannot be."""
        if setup.with_dpus:
            return cls._with_dpus(job, setup)
        if any(role != HOST for role in job.roles):
            raise CannotRun("train: this job has ranks on DPUs, and no exchange of the case uses them: add dpu")
        waiting = _waiting(job) if setup.replayed or setup.thread_level != "single" else spin("no thread of ours waits")
        return cls(job, setup, tuple(range(job.size)), job, waiting)

    @classmethod
    def _with_dpus(cls, job: Job, setup: Setup) -> Cast:
        layout = layout_of(job.roles, job.hosts)
        reported = layout.hosts[:1] if setup.replayed else layout.hosts
        crew = Crew(job, layout, _waiting(job), busy=(), reported=reported)
        here = None if crew.is_dpu else _hosts_job(job, crew)
        try:
            transport = _transport(crew, setup)
        except Unsupported:
            crew.close()
            raise
        return cls(job, setup, layout.hosts, here, crew.waiting, crew, transport)

    @property
    def is_dpu(self) -> bool:
        """Whether this rank is a DPU's."""
        return self.here is None

    @property
    def stands_in(self) -> bool:
        """Whether this host only does what the first one needs of its peers."""
        return self.setup.replayed and self.here is not None and self.here.rank > 0

    @property
    def trainers(self) -> int:
        """How many hosts train."""
        return 1 if self.setup.replayed else len(self.hosts)

    @property
    def reported(self) -> tuple[int, ...]:
        """The ranks whose times count."""
        return self.hosts[: self.trainers]

    @property
    def looks(self) -> int:
        """How often the progress thread looks at MPI's requests at a time."""
        return _POLLED_LOOKS if self.waiting.descriptors.size else _SPUN_LOOKS

    def close(self) -> None:
        """Give the communicators back."""
        if self.crew is not None:
            self.crew.close()


class Meeting:
    """How the hosts agree: without burning a core that emulated DPUs or a peer's stand-in need."""

    def __init__(self, cast: Cast) -> None:
        if cast.here is None:
            raise ValueError("DPUs do not meet with the hosts")
        self.comm = cast.here.comm
        self._quiet = Quiet(cast.here, cast.waiting) if cast.waiting.descriptors.size else None

    def barrier(self) -> None:
        """All hosts wait for all."""
        if self._quiet is None:
            self.comm.Barrier()
        else:
            self._quiet.barrier()

    def rest(self) -> None:
        """All wait for all, asleep: whoever comes last was alone on the machine."""
        request = self.comm.Ibarrier()
        while not request.Test():
            time.sleep(_LOOK_S)

    def any(self, truth: bool) -> bool:
        """Whether it holds on any host."""
        mine = int(truth)
        return bool(self.comm.allreduce(mine) if self._quiet is None else self._quiet.sum(mine))


def _hosts_job(job: Job, crew: Crew) -> Job:
    """The hosts' own job, as one of them sees it."""
    ranks = crew.layout.hosts
    hosts, cpus = tuple(job.hosts[rank] for rank in ranks), tuple(job.cpus[rank] for rank in ranks if job.cpus)
    return replace(job, comm=crew.hosts_comm, hosts=hosts, roles=(), cpus=cpus)


def _waiting(job: Job) -> Waiting:
    """By sleeping where a DPU is emulated, or where a rank has a single core, which its compute needs."""
    crowded = job.max(float(len(os.sched_getaffinity(0)) < 2))
    return choose(job, "poll" if crowded and job.size > 1 else "auto")


def _transport(crew: Crew, setup: Setup) -> str:
    asked = next(mode.algorithm for mode in setup.modes if mode.primitive == DPU)
    reasons = {}
    for transport in (asked,) if asked else _TRANSPORTS:
        reasons[transport] = why_not(crew, transport)
        if not reasons[transport]:
            return transport
    raise Unsupported("; ".join(f"{name}: {reason}" for name, reason in reasons.items()))
