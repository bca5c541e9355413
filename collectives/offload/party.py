"""Who takes part in offloading: one rank's place among hosts and DPUs, and the communicators of its kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from collectives.offload.layout import Layout, layout_of
from collectives.offload.waiting import Quiet, Waiting, choose
from microbench.engine import CallSpec, requests, statuses
from microbench.job import Job

if TYPE_CHECKING:
    from mpi4py import MPI

Calls = list[CallSpec | str]

_FIRST_TAG, _LAST_TAG = 64, 32000  # every MPI has tags up to 32767


class Crew:
    """All ranks of a job as hosts and DPUs; made, and closed, by all of them together.

    ``comm`` is a communicator of all ranks, for the engine alone. ``hosts_comm`` is the hosts', in their order;
    ``lane_comm`` that of the workers of one index in every DPU, in the DPUs' order. Ranks in ``busy`` wait as MPI
    programs do, with a core to themselves; all others by ``waiting``. ``reported`` are the ranks whose times count.
    """

    def __init__(
        self,
        job: Job,
        layout: Layout | None = None,
        waiting: Waiting | None = None,
        *,
        busy: Sequence[int] = (0,),
        reported: Sequence[int] = (0,),
    ) -> None:
        self.job, self.layout = job, layout or layout_of(job.roles, job.hosts)
        self.waiting = waiting or choose(job)
        self.quiet = Quiet(job, self.waiting)
        self.busy, self.reported = tuple(busy), tuple(reported)
        self.is_dpu = job.rank not in self.layout.hosts
        self.comm = job.comm.Dup()
        self.dpu, self.worker = self.layout.worker(job.rank) if self.is_dpu else (-1, -1)
        self._peers: MPI.Intracomm = self.comm.Split(1 + self.worker, job.rank)  # type: ignore[assignment]
        for comm in (self.comm, self._peers):
            comm.Set_errhandler(job.engine.MPI.ERRORS_RETURN)
        self._tag = _FIRST_TAG
        self._slot, self._status = requests(1, job.engine.MPI), statuses(1)

    @property
    def hosts_comm(self) -> MPI.Intracomm:
        """The hosts; only on a host."""
        return self._comm_of(dpus=False)

    @property
    def lane_comm(self) -> MPI.Intracomm:
        """The workers of this index in every DPU; only on a DPU's worker."""
        return self._comm_of(dpus=True)

    def _comm_of(self, dpus: bool) -> MPI.Intracomm:
        if self.is_dpu is not dpus:
            raise ValueError(f"rank {self.job.rank} is of the other kind")
        return self._peers

    @property
    def is_reported(self) -> bool:
        """Whether this rank's times count."""
        return self.job.rank in self.reported

    @property
    def is_busy(self) -> bool:
        """Whether this rank waits busily unless it is asked to be gentle."""
        return self.job.rank in self.busy

    @property
    def host(self) -> int:
        """This host's index; only on a host."""
        return self.layout.hosts.index(self.job.rank)

    @property
    def served(self) -> tuple[int, ...]:
        """The hosts that this rank's DPU serves, by index; none on a host."""
        return self.layout.served[self.dpu] if self.is_dpu else ()

    @property
    def partners(self) -> tuple[int, ...]:
        """The ranks that this rank hands data to: the hosts that a DPU serves, or the workers of a host's DPU."""
        if self.is_dpu:
            return tuple(self.layout.hosts[host] for host in self.served)
        return self.layout.dpus[self.layout.dpu_of(self.host)]

    def name(self, rank: int) -> str:
        """A rank with its machine, as errors name it: ``DPU d0 (rank 2)``."""
        kind = "host" if rank in self.layout.hosts else "DPU"
        return f"{kind} {self.job.hosts[rank]} (rank {rank})"

    def tags(self, number: int) -> int:
        """The first of ``number`` tags of ``comm`` that nobody else was given; the same on all ranks that ask alike."""
        if self._tag + number > _LAST_TAG:
            self._tag = _FIRST_TAG
        self._tag += number
        return self._tag - number

    def gentle(self, request: Any, status: Any) -> CallSpec:
        """The call that waits for a request (a row of requests) by the strategy."""
        return self.waiting.call(request, status)

    def waits(self, slots: Any, gentle: bool) -> Calls:
        """The calls that wait for all of these requests, one a row: gently, or as MPI programs do."""
        if gentle:
            status = statuses(1)
            return [self.gentle(slot, status) for slot in slots]
        return [("MPI_Waitall", len(slots), slots, statuses(len(slots)))] if len(slots) else []

    def meet(self) -> Calls:
        """A barrier of this rank's kind: of the hosts, or of its lane; ``busy`` ranks wait in it busily."""
        start: CallSpec = ("MPI_Ibarrier", self._peers, self._slot)
        return [start, *self.waits(self._slot, gentle=not self.is_busy)]

    def close(self) -> None:
        """Give the communicators back."""
        for comm in (self._peers, self.comm):
            comm.Free()
