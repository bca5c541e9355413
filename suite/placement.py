"""Where the ranks of a case are put, which recipe that takes, and why they cannot be. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from fabrics.model import Fabric
from fabrics.recipes import LIBRARIES, LOOPBACK
from microbench.case import Case
from microbench.record import Status
from suite.launch import LOCAL
from suite.settings import why_none

_MOST_PER_CORE = 8


@dataclass(frozen=True)
class Target:
    """What a plan is made for: the library that recipes are for, and how many ranks each named host takes.

    Without ``slots`` it is this machine and its lab. ``same_host`` allows a network between ranks of one host.
    """

    backend: str = "mpich"
    slots: Mapping[str, int] = field(default_factory=dict)
    same_host: bool = False


HERE = Target()


def kind_of(case: Case) -> str:
    """What cases have in common that share a job: how ranks are placed, and whether they load torch."""
    if case.benchmark == "offload_allreduce":
        return case.benchmark
    return "mpi" if case.backend == "mpi" else "torch"


def why_not(case: Case, fabric: Fabric, cores: int, target: Target = HERE) -> tuple[Status, str]:
    """The status and reason of a case that cannot run on this fabric; ``ok`` and nothing where it can."""
    kind = kind_of(case)
    if reason := _no_place(case, fabric, cores, target):
        return "skipped", reason
    hosts = place(fabric, case.ranks, kind, range(cores), target.slots)[0]
    for backend in (target.backend, *([case.backend] if case.backend in LIBRARIES else [])):
        if reason := why_none(fabric, backend, flavour(hosts), hosts):
            return "unsupported", reason
    return "ok", ""


def _no_place(case: Case, fabric: Fabric, cores: int, target: Target) -> str:
    """Why the hosts cannot take the ranks of a case, or nothing."""
    if case.benchmark == "offload_allreduce":
        return "" if len(dpus(fabric)) >= 2 else "no DPUs beside the hosts of this fabric"
    if target.slots:
        return _no_slot(case, fabric, target)
    if not fabric.lab and case.ranks > _MOST_PER_CORE * cores:
        return f"{case.ranks} ranks on {cores} cores say nothing"
    if fabric.lab and case.ranks > len(fabric.hosts):
        return f"pure recipe: one rank a host, and {fabric.name} joins {len(fabric.hosts)} hosts"
    return ""


def _no_slot(case: Case, fabric: Fabric, target: Target) -> str:
    room = sum(target.slots.get(host, 0) for host in fabric.hosts)
    if case.ranks > room:
        return f"{case.ranks} ranks wanted, and the hosts of {fabric.name} take {room}: give them more slots"
    hosts = set(spread(fabric.hosts, target.slots, case.ranks))
    if len(hosts) == 1 and case.ranks > 1 and not within_host(fabric) and not target.same_host:
        return f"all ranks are on {hosts.pop()}: their bytes need not cross {fabric.name}; --same-host measures it"
    return ""


def flavoured(case: Case, fabric: Fabric, cpus: Sequence[int], target: Target) -> Case:
    """The case with the flavour of recipe that its placement takes."""
    hosts = place(fabric, case.ranks, kind_of(case), cpus, target.slots)[0]
    return replace(case, recipe=flavour(hosts))


def flavour(hosts: Sequence[str]) -> str:
    """``job`` where ranks share hosts and there are several: shared memory within them; else ``pure``."""
    return "job" if 1 < len(set(hosts)) < len(hosts) else "pure"


def within_host(fabric: Fabric) -> bool:
    """Whether the fabric's bytes never leave a host."""
    return fabric.kind == "shm" or {name for names in fabric.devices.values() for name in names} == {LOOPBACK}


def dpus(fabric: Fabric) -> tuple[str, ...]:
    """The DPUs of a fabric, in their hosts' order."""
    return tuple(member for member in fabric.devices if member not in fabric.hosts)


Placement = tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[int, ...], ...]]


def place(
    fabric: Fabric, ranks: int, kind: str, cpus: Sequence[int], slots: Mapping[str, int] = MappingProxyType({})
) -> Placement:
    """Hosts, roles and processors of every rank: one rank a host on a lab, one rank a core.

    On hosts with ``slots`` each host has one rank before any has two, up to its slots, and the ranks of a host follow
    each other; which processors they have is told there, in the order of their places. Offload is placed ``split``:
    the first host has a core of its own, the DPUs share the next with the other host.
    """
    if kind == "offload_allreduce":
        hosts = fabric.hosts[:2] + dpus(fabric)[:2]
        own = ((),) * 4 if slots else tuple((cpus[min(r, 1, len(cpus) - 1)],) for r in range(4))
        return hosts, ("host", "host", "dpu", "dpu"), own
    roles = ("host",) * ranks
    if slots:
        return spread(fabric.hosts, slots, ranks), roles, ((),) * ranks
    hosts = fabric.hosts[:ranks] if fabric.lab else (LOCAL,) * ranks
    return hosts, roles, tuple((cpus[r % len(cpus)],) for r in range(ranks))


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
