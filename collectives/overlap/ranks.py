"""Who is who in a case: which ranks are hosts, which of them compute, which are reported, and how each one waits.

- ``split``: host 0 has a core of its own, computes and is reported. The other hosts share one with the emulated DPUs:
  in host modes they burn, as ranks of a real job would, and in offload modes they sleep for the compute's time.
- ``node``: every host computes and is reported.
- ``accel``: every host is reported, and sleeps for the compute's time: an accelerator computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from collectives.offload.layout import Layout, layout_of
from collectives.offload.party import Crew
from collectives.offload.waiting import Quiet, Waiting, choose
from collectives.overlap.options import ACCEL, SPLIT, Options
from fabrics.errors import CannotRun
from microbench.case import Unsupported
from microbench.engine import CallSpec
from microbench.job import Job

Calls = list[CallSpec | str]

HOST = "host"
FEWEST_HOSTS = 2


def host_ranks(roles: Sequence[str], ranks: int) -> tuple[int, ...]:
    """The ranks that are hosts: those of that role, or all where no roles are given."""
    return tuple(rank for rank in range(ranks) if not roles or roles[rank] == HOST)


@dataclass
class Ranks:
    """One rank's place in a case; made, and closed, by all ranks together.

    ``here`` is the hosts' own job, as a host sees it, None on other ranks, and ``comm`` its communicator. ``crew`` is
    what DPUs are used through.
    """

    job: Job
    placement: str
    hosts: tuple[int, ...]
    here: Job | None
    waiting: Waiting
    quiet: Quiet
    crew: Crew | None = None
    comm: Any = None

    @classmethod
    def of(cls, job: Job, options: Options, offload: bool) -> Ranks:
        """The ranks of a job.

        Raises CannotRun where there are too few hosts or no DPUs, Unsupported where workers do not divide the DPUs.
        """
        placement = options.placed(job.fabric.emulated)
        if offload:
            layout = _layout(job, options.workers)
            reported = layout.hosts[:1] if placement == SPLIT else layout.hosts
            busy = layout.hosts[:1] if placement == SPLIT else ()
            crew = Crew(job, layout, choose(job, options.waiting), busy=busy, reported=reported)
            here = None if crew.is_dpu else _here(job, layout.hosts, crew.hosts_comm)
            comm = None if here is None else here.comm
            return cls(job, placement, layout.hosts, here, crew.waiting, crew.quiet, crew, comm)
        hosts = host_ranks(job.roles, job.size)
        if len(hosts) < FEWEST_HOSTS:
            raise CannotRun(f"overlap takes {FEWEST_HOSTS} hosts or more: this job has {len(hosts)}")
        kin = job.comm.Split(int(job.rank in hosts), job.rank)
        kin.Set_errhandler(job.engine.MPI.ERRORS_RETURN)
        here = _here(job, hosts, kin) if job.rank in hosts else None
        waiting = choose(job, options.waiting)
        return cls(job, placement, hosts, here, waiting, Quiet(job, waiting), None, kin)

    @property
    def index(self) -> int:
        """This host's place among the hosts; -1 on other ranks."""
        return self.hosts.index(self.job.rank) if self.here is not None else -1

    @property
    def is_first(self) -> bool:
        """Whether this is the first host."""
        return self.index == 0

    @property
    def reported(self) -> tuple[int, ...]:
        """The ranks whose times count, by iteration the longest of them."""
        return self.hosts[:1] if self.placement == SPLIT else self.hosts

    @property
    def computing(self) -> tuple[int, ...]:
        """The ranks that compute; none where an accelerator does."""
        return () if self.placement == ACCEL else self.reported

    @property
    def stands_in(self) -> bool:
        """Whether this host only does what the reported one needs of its peers."""
        return self.placement == SPLIT and not self.is_first

    def close(self) -> None:
        """Give the communicators back."""
        if self.crew is not None:
            self.crew.close()
        elif self.comm is not None:
            self.comm.Free()


def _layout(job: Job, workers: int) -> Layout:
    """CannotRun for a job that is not one of hosts and DPUs; Unsupported where it is, but not with so many workers."""
    try:
        return layout_of(job.roles, job.hosts, workers)
    except CannotRun as error:
        if workers == 1:
            raise
        layout_of(job.roles, job.hosts)
        raise Unsupported(str(error)) from None


def _here(job: Job, hosts: Sequence[int], comm: Any) -> Job:
    where = tuple(job.hosts[rank] for rank in hosts)
    return replace(job, comm=comm, hosts=where, roles=(), cpus=tuple(job.cpus[rank] for rank in hosts), proofs={})
