"""Binding a rank to its processors: those that it is told, or its place among its host's."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

_TOPOLOGY = Path("/sys/devices/system/cpu")


def bind(cpus: str, rank: int) -> None:
    """Bind this process to its list's entry, before anything starts threads.

    ``cpus`` has an entry per rank, such as ``0:1`` or ``0,1:0,1``; ``+2`` stands for the third core of the host.
    """
    entries = cpus.split(":") if cpus else []
    if rank >= len(entries) or not entries[rank]:
        return
    entry = entries[rank]
    if entry.startswith("+"):
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {place(int(entry[1:]), allowed, cores(allowed))})
    else:
        os.sched_setaffinity(0, {int(cpu) for cpu in entry.split(",")})


def place(local_rank: int, allowed: Collection[int], core_of: Mapping[int, int]) -> int:
    """The processor of a host's rank: first one of each core, then the cores' other threads, then again."""
    seen: dict[int, int] = {}
    order: list[tuple[int, int]] = []
    for cpu in sorted(allowed):
        core = core_of.get(cpu, cpu)
        order.append((seen.get(core, 0), cpu))
        seen[core] = seen.get(core, 0) + 1
    order.sort()
    return order[local_rank % len(order)][1]


def cores(cpus: Iterable[int], topology: Path = _TOPOLOGY) -> dict[int, int]:
    """Each processor's core, named by the core's first processor; one that does not tell is a core of its own."""
    return {cpu: _first_sibling(topology / f"cpu{cpu}" / "topology" / "thread_siblings_list", cpu) for cpu in cpus}


def _first_sibling(path: Path, cpu: int) -> int:
    try:
        return int(path.read_text().replace("-", ",").split(",")[0])
    except (OSError, ValueError):
        return cpu


def encode(cpus: Iterable[Collection[int]], hosts: Iterable[str]) -> str:
    """What :func:`bind` reads: each rank's processors, and without them its place on its host."""
    placed: dict[str, int] = {}
    entries = []
    for own, host in zip(cpus, hosts, strict=True):
        entries.append(",".join(map(str, own)) or f"+{placed.get(host, 0)}")
        placed[host] = placed.get(host, 0) + 1
    return ":".join(entries)
