"""Which ranks of a job are hosts, which are DPUs, and which DPU serves which hosts: pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fabrics.errors import CannotRun

HOST, DPU = "host", "dpu"


@dataclass(frozen=True)
class Layout:
    """``hosts``: their ranks in the job, in order; ``dpus``: the ranks of each DPU's workers.

    ``served``: of each DPU the hosts that it serves, by their index in ``hosts``: neighbours, as many as of any other
    DPU or one more.
    """

    hosts: tuple[int, ...]
    dpus: tuple[tuple[int, ...], ...]
    served: tuple[tuple[int, ...], ...]

    @property
    def workers(self) -> int:
        """Worker ranks of each DPU."""
        return len(self.dpus[0])

    @property
    def most_served(self) -> int:
        """How many hosts the fullest DPU serves."""
        return max(map(len, self.served))

    def dpu_of(self, host: int) -> int:
        """The DPU that serves a host, both by their index."""
        return next(dpu for dpu, hosts in enumerate(self.served) if host in hosts)

    def worker(self, rank: int) -> tuple[int, int]:
        """Of a rank of the job that is a DPU's: the index of the DPU, and of the worker in it."""
        return next((dpu, ranks.index(rank)) for dpu, ranks in enumerate(self.dpus) if rank in ranks)


def shared_out(count: int, parts: int) -> list[tuple[int, int]]:
    """``count`` things in a row as ``parts`` runs (start, length), the first ones longer by one at most."""
    each, longer = divmod(count, parts)
    return [(part * each + min(part, longer), each + (part < longer)) for part in range(parts)]


def layout_of(roles: Sequence[str], machines: Sequence[str], workers: int = 1) -> Layout:
    """The layout of a job whose ranks have these roles, on these machines.

    Hosts come first; then every ``workers`` ranks in a row are one DPU. Raises CannotRun for what cannot be.
    """
    hosts = sum(role == HOST for role in roles)
    ranks = len(roles) - hosts
    if tuple(roles) != (HOST,) * hosts + (DPU,) * ranks or hosts < 2 or not ranks:
        told = ",".join(roles) or f"none for its {len(machines)} ranks"
        raise CannotRun(
            f"offload needs 2 or more hosts, then the ranks of their DPUs (roles host,host,dpu,dpu): this job's roles"
            f" are {told}"
        )
    if workers < 1 or ranks % workers:
        raise CannotRun(f"{ranks} DPU ranks are no whole number of DPUs of {workers} workers each")
    dpus = tuple(tuple(range(first, first + workers)) for first in range(hosts, hosts + ranks, workers))
    if len(dpus) > hosts:
        raise CannotRun(f"{len(dpus)} DPUs for {hosts} hosts: a DPU without a host has nothing to serve")
    for members in dpus:
        places = {machines[rank] for rank in members}
        if len(places) > 1:
            told = " and ".join(sorted(places))
            raise CannotRun(
                f"ranks {', '.join(map(str, members))} are to be one DPU's {workers} workers: they run on {told}"
            )
    served = (tuple(range(start, start + length)) for start, length in shared_out(hosts, len(dpus)))
    return Layout(tuple(range(hosts)), dpus, tuple(served))
