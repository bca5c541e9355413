"""Where the ranks of a case are put, which recipe that takes, and why they cannot be. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from collectives.overlap.options import SPLIT
from fabrics.model import Fabric
from fabrics.recipes import LIBRARIES, LOOPBACK
from microbench.case import Case
from microbench.record import Status
from suite.launch import LOCAL
from suite.settings import why_none

FEWEST_HOSTS = 2
_MOST_PER_CORE = 8


@dataclass(frozen=True)
class Target:
    """What a plan is made for: the library that recipes are for, and how many ranks each named host takes.

    Without ``slots`` it is this machine and its lab. ``dpus`` names the DPU of each host that has one; where it names
    none, the DPUs of a fabric are those of its first hosts. ``same_host`` allows a network between ranks of one host.
    """

    backend: str = "mpich"
    slots: Mapping[str, int] = field(default_factory=dict)
    same_host: bool = False
    dpus: Mapping[str, str] = field(default_factory=dict)


HERE = Target()


@dataclass(frozen=True)
class Seats:
    """What a case takes: ranks on hosts, then those of ``dpus`` DPUs, ``workers`` on each.

    ``how`` tells which ranks share a core: ``split``, ``node`` or ``accel``, empty where they go round the cores.
    """

    hosts: int
    dpus: int = 0
    workers: int = 1
    how: str = ""

    @property
    def ranks(self) -> int:
        """All of them."""
        return self.hosts + self.dpus * self.workers

    @property
    def roles(self) -> tuple[str, ...]:
        """``host`` or ``dpu``, of every rank."""
        return ("host",) * self.hosts + ("dpu",) * (self.dpus * self.workers)


@dataclass(frozen=True)
class Place:
    """Host, role and processors of every rank; a rank without processors finds its own on its host."""

    hosts: tuple[str, ...]
    roles: tuple[str, ...]
    cpus: tuple[tuple[int, ...], ...]


def why_not(case: Case, seats: Seats, fabric: Fabric, cores: int, target: Target = HERE) -> tuple[Status, str]:
    """The status and reason of a case that cannot run on this fabric; ``ok`` and nothing where it can."""
    if reason := _no_place(seats, fabric, cores, target):
        return "skipped", reason
    hosts = place(fabric, seats, range(cores), target).hosts
    for backend in (target.backend, *([case.backend] if case.backend in LIBRARIES else [])):
        if reason := why_none(fabric, backend, flavour(hosts, fabric), hosts):
            return "unsupported", reason
    return "ok", ""


def _no_place(seats: Seats, fabric: Fabric, cores: int, target: Target) -> str:
    """Why the hosts cannot take the ranks of a case, or nothing."""
    if seats.dpus:
        return _no_dpu(seats, fabric, target)
    if target.slots:
        return _no_slot(seats.hosts, fabric, target)
    if not fabric.lab and seats.hosts > _MOST_PER_CORE * cores:
        return f"{seats.hosts} ranks on {cores} cores say nothing"
    if fabric.lab and seats.hosts > len(fabric.hosts):
        return f"pure recipe: one rank a host, and {fabric.name} joins {len(fabric.hosts)} hosts"
    return ""


def _no_slot(ranks: int, fabric: Fabric, target: Target) -> str:
    room = sum(target.slots.get(host, 0) for host in fabric.hosts)
    if ranks > room:
        return f"{ranks} ranks wanted, and the hosts of {fabric.name} take {room}: give them more slots"
    hosts = set(spread(fabric.hosts, target.slots, ranks))
    if len(hosts) == 1 and ranks > 1 and not within_host(fabric) and not target.same_host:
        return f"all ranks are on {hosts.pop()}: their bytes need not cross {fabric.name}; --same-host measures it"
    return ""


def _no_dpu(seats: Seats, fabric: Fabric, target: Target) -> str:
    """Why there is no place beside DPUs, or nothing."""
    found = pairs(fabric, target)
    if not found:
        return "no DPUs beside the hosts of this fabric"
    room = sum(target.slots.get(host, 1) for host in found)
    if len(found) < FEWEST_HOSTS <= seats.hosts:
        return f"of the hosts of {fabric.name} only {next(iter(found))} has a DPU: it takes {FEWEST_HOSTS}"
    if seats.hosts > room:
        lacking = [host for host in fabric.hosts if host not in found]
        told = f"; {', '.join(lacking)} {'has' if len(lacking) == 1 else 'have'} none" if lacking else ""
        return f"{seats.hosts} ranks wanted on hosts with a DPU, and those of {fabric.name} take {room}{told}"
    used = dict.fromkeys(spread(tuple(found), _slots(found, target), seats.hosts))
    if seats.dpus > len(used):
        return f"{seats.dpus} DPUs wanted, and {seats.hosts} ranks are beside {len(used)}"
    for dpu in [found[host] for host in used][: seats.dpus]:
        if target.slots and seats.workers > target.slots.get(dpu, 0):
            room = target.slots.get(dpu, 0)
            return f"{seats.workers} workers wanted on {dpu}, which takes {room}: give it more slots"
    return ""


def _slots(found: Mapping[str, str], target: Target) -> Mapping[str, int]:
    """How many ranks each host with a DPU takes; one on a lab."""
    return {host: target.slots.get(host, 0) if target.slots else 1 for host in found}


def flavour(hosts: Sequence[str], fabric: Fabric) -> str:
    """``job`` where ranks share hosts and there are several: shared memory within them; else ``pure``.

    Ranks that share a host of a lab are the workers of a DPU, whose waits could not see shared memory.
    """
    return "job" if 1 < len(set(hosts)) < len(hosts) and not fabric.lab else "pure"


def within_host(fabric: Fabric) -> bool:
    """Whether the fabric's bytes never leave a host."""
    return fabric.kind == "shm" or {name for names in fabric.devices.values() for name in names} == {LOOPBACK}


def dpus(fabric: Fabric) -> tuple[str, ...]:
    """The DPUs of a fabric, in their hosts' order."""
    return tuple(member for member in fabric.devices if member not in fabric.hosts)


def pairs(fabric: Fabric, target: Target = HERE) -> dict[str, str]:
    """The hosts of a fabric that have a DPU on it, each with its DPU."""
    there = dpus(fabric)
    if target.dpus:
        return {host: dpu for host in fabric.hosts if (dpu := target.dpus.get(host, "")) in there}
    return dict(zip(fabric.hosts, there, strict=False))


def most_hosts(fabric: Fabric, cores: int, target: Target = HERE) -> int:
    """How many ranks beside DPUs are usual: one on each host that has a DPU, on a lab no more than there are cores.

    At least two, so that a reason can be told where there are fewer.
    """
    there = len(pairs(fabric, target))
    return max(FEWEST_HOSTS, min(there, cores) if fabric.emulated else there)


def beside(fabric: Fabric, ranks: int, target: Target = HERE) -> int:
    """How many DPUs are beside so many host ranks: one for every host that they are on."""
    found = pairs(fabric, target)
    if ranks > sum(_slots(found, target).values()):
        return ranks  # they have no place, which is told elsewhere
    return len(set(spread(tuple(found), _slots(found, target), ranks)))


def place(fabric: Fabric, seats: Seats, cpus: Sequence[int], target: Target = HERE) -> Place:
    """One rank a host on a lab, one rank a core; ValueError where the hosts do not suffice.

    On hosts with slots each host has one rank before any has two, up to its slots, and the ranks of a host follow
    each other; which processors they have is told there, in the order of their places. So is it with DPUs, whose ranks
    follow those of all hosts. On one machine, ``split`` gives the first host a core of its own and all others to the
    rest, while ``node`` and ``accel`` put each host and its DPU on a core.
    """
    hosts, nodes = _members(fabric, seats, target)
    if target.slots:
        return Place(hosts, seats.roles, ((),) * seats.ranks)
    if seats.how == SPLIT:
        others = cpus[1:] or cpus
        cores = [cpus[0], *(others[r % len(others)] for r in range(seats.ranks - 1))]
    else:
        cores = [cpus[node % len(cpus)] for node in nodes]
    return Place(hosts, seats.roles, tuple((core,) for core in cores))


def _members(fabric: Fabric, seats: Seats, target: Target) -> tuple[tuple[str, ...], list[int]]:
    """The host or DPU of every rank, and the number of its node: of the host that it is or belongs to."""
    if not seats.dpus:
        if target.slots:
            hosts = spread(fabric.hosts, target.slots, seats.hosts)
        else:
            hosts = fabric.hosts[: seats.hosts] if fabric.lab else (LOCAL,) * seats.hosts
        return hosts, list(range(len(hosts)))
    found = pairs(fabric, target)
    hosts = spread(tuple(found), _slots(found, target), seats.hosts)
    order = list(dict.fromkeys(hosts))
    served = [host for host in order[: seats.dpus] for _ in range(seats.workers)]
    return (*hosts, *(found[host] for host in served)), [order.index(host) for host in (*hosts, *served)]


def spread(hosts: Sequence[str], slots: Mapping[str, int], ranks: int) -> tuple[str, ...]:
    """The host of every rank, in the hosts' order; ValueError where the slots do not suffice."""
    counts = dict.fromkeys(hosts, 0)
    if ranks > sum(slots.get(host, 0) for host in counts):
        raise ValueError(f"{ranks} ranks have no place on {', '.join(hosts)}")
    left = ranks
    while left:
        for host in [host for host in hosts if counts[host] < slots.get(host, 0)][:left]:
            counts[host] += 1
            left -= 1
    return tuple(host for host, count in counts.items() for _ in range(count))
