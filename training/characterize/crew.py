"""Who is measured when: the hosts and DPUs of a job, one at a time where they share a machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from collectives.offload.waiting import Quiet, Waiting, spin
from fabrics.lab import state
from fabrics.lab.groups import own_cores
from fabrics.lab.inside import lab_host
from microbench.case import Unsupported
from microbench.engine import CallSpec

if TYPE_CHECKING:
    from microbench.job import Job

_REST_MS = 10
LINKS = ("host_host", "host_dpu", "dpu_dpu")


@dataclass(frozen=True)
class Resting(Waiting):
    """Sleep between looks, with nothing to be woken by: who waits for a whole turn may come 10 ms late."""

    def call(self, request: Any, status: NDArray[Any], cap_ms: int = _REST_MS) -> CallSpec:
        """The call that waits for ``request``."""
        return ("test_until", request, status, 1, self.descriptors, 0, cap_ms)


def resting(job: Job) -> Quiet:
    """Agreement of all ranks that leaves the cores to those that measure."""
    idle = spin("")
    return Quiet(job, Resting("poll", "a turn is long, and its cores are another's", idle.descriptors))


@dataclass(frozen=True)
class Seat:
    """What one rank is: its lab host (``lab/d0``, empty on a machine), the cores of its quota, its measured speed.

    ``quota_cores`` is None without a quota; ``speed`` what ``fabricbench lab speed`` measured, None where it did not.
    """

    lab_host: str = ""
    quota_cores: float | None = None
    speed: float | None = None

    @classmethod
    def own(cls) -> Seat:
        """This process's."""
        where = lab_host()
        name, _, member = where.partition("/")
        lab = state.find(name) if name else None
        return cls(where, own_cores(), lab.speeds.get(member) if lab else None)


@dataclass(frozen=True)
class Crew:
    """The ranks of a job by role, the machine that each is on, and its seat; an entry per rank."""

    roles: tuple[str, ...]
    machines: tuple[str, ...]
    seats: tuple[Seat, ...]
    emulated: bool

    @classmethod
    def of(cls, job: Job) -> Crew:
        """That of ``job``; raises Unsupported on every rank alike where it has no DPUs, or no hosts."""
        check(job.roles, job.size)
        seats = tuple(job.comm.allgather(Seat.own()))
        emulated = job.fabric.emulated or any(seat.lab_host for seat in seats)
        machines = ("this machine",) * job.size if emulated else tuple(job.hosts)
        return cls(tuple(job.roles), machines, seats, emulated)

    def ranks(self, role: str) -> tuple[int, ...]:
        """The ranks of a role, in order."""
        return tuple(rank for rank, own in enumerate(self.roles) if own == role)

    @property
    def turns(self) -> tuple[tuple[int, ...], ...]:
        """Which ranks measure at the same time: those of different machines; hosts and DPUs alternate."""
        order = [rank for pair in zip_longest(self.ranks("host"), self.ranks("dpu")) for rank in pair]
        by_machine: dict[str, list[int]] = {}
        for rank in order:
            if rank is not None:
                by_machine.setdefault(self.machines[rank], []).append(rank)
        waves = zip_longest(*by_machine.values())
        return tuple(tuple(rank for rank in wave if rank is not None) for wave in waves)

    @property
    def pairs(self) -> dict[str, tuple[int, int] | None]:
        """The ranks of each link: the first two hosts, the first host and its DPU, the first two DPUs."""
        hosts, dpus = self.ranks("host"), self.ranks("dpu")
        apart = self._other(dpus)
        return {
            "host_host": (hosts[0], hosts[1]) if len(hosts) > 1 else None,
            "host_dpu": (hosts[0], dpus[0]),
            "dpu_dpu": (dpus[0], apart) if apart is not None else None,
        }

    def _other(self, dpus: Sequence[int]) -> int | None:
        """The first rank on another DPU than the first: workers of one DPU are no link. Roles come with their hosts."""
        first = self.seats[dpus[0]].lab_host or self.machines[dpus[0]]
        others = [rank for rank in dpus[1:] if (self.seats[rank].lab_host or self.machines[rank]) != first]
        return next(iter(others or dpus[1:]), None)


def check(roles: Sequence[str], ranks: int) -> None:
    """Raise Unsupported, with what to give, unless every rank has a role, and both roles are there."""
    if len(roles) == ranks and {"host", "dpu"} <= set(roles):
        return
    told = ",".join(roles) or "none"
    raise Unsupported(
        f"dpu compares DPUs with hosts, and this job's roles are {told}: give each of its {ranks} ranks one,"
        " hosts first, such as --roles host,host,dpu,dpu"
    )
