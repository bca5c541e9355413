"""What a record says of where a case ran, and what is doubtful about it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from collectives.overlap.options import ACCEL, NODE, SPLIT

_DISTURBED = 1.05  # of the calibrated time
_FAR = 2.0  # times as long or as short as was asked

PEERS = {
    SPLIT: "host 0 computes; the other hosts burn for the compute's time in host modes, and sleep for it in offload"
    " modes",
    NODE: "every host computes",
    ACCEL: "no host computes: every one sleeps for the compute's time",
}


def _shares_core(a: int, b: int, hosts: Sequence[str], cpus: Sequence[Sequence[int]], emulated: bool) -> bool:
    return (emulated or hosts[a] == hosts[b]) and bool(set(cpus[a]) & set(cpus[b]))


def crowding(
    placement: str, ranks: Sequence[int], hosts: Sequence[str], cpus: Sequence[Sequence[int]], emulated: bool
) -> list[str]:
    """What is wrong with where the ranks are; ``ranks`` are the hosts.

    Split, host 0 must have its cores to itself; else no host may share its own with another host.
    """
    watched, others = (ranks[:1], range(len(hosts))) if placement == SPLIT else (ranks, ranks)
    found = []
    for rank in watched:
        beside = [
            other
            for other in others
            if (other > rank or (placement == SPLIT and other != rank))
            and _shares_core(rank, other, hosts, cpus, emulated)
        ]
        if beside:
            told = ", ".join(map(str, beside))
            found.append(f"rank {rank} shares its cores with ranks {told}: compute and communication compete")
    return found


def disturbance(compute_ns: float, alone_ns: float) -> list[str]:
    """Whether the work took longer in the rounds than when it was calibrated."""
    if compute_ns <= _DISTURBED * alone_ns:
        return []
    ratio = compute_ns / max(alone_ns, 1.0)
    return [f"compute took {ratio:.2f} times its calibrated time: other work shared a computing host's core"]


def sizing(compute_ns: float, pure_ns: float, fraction: float, skew: float, sized_by_ns: float) -> list[str]:
    """Whether the compute is far from the asked ``fraction`` of the hosts' own collective.

    ``sized_by_ns`` is what the collective took when the compute was sized; hosts that come late by ``skew`` of that
    wait for each other, which makes the collective as much longer.
    """
    asked_ns = fraction * pure_ns
    if not asked_ns or asked_ns / _FAR / (1 + skew) <= compute_ns <= asked_ns * _FAR:
        return []
    return [
        f"compute took {compute_ns / pure_ns:.3g} times the hosts' own collective, not {fraction:g} as asked: that took"
        f" {sized_by_ns * 1e-6:.3g} ms when the compute was sized, and {pure_ns * 1e-6:.3g} ms in the rounds"
    ]


def where(placement: str, crowded: bool, hosts: Sequence[str], cpus: Sequence[Sequence[int]]) -> str:
    """The placement, ``shared`` where it was to be split and is not, and each rank's host and cores."""
    told = " ".join(f"{host}:{','.join(map(str, c))}" for host, c in zip(hosts, cpus, strict=True))
    return f"{'shared' if crowded and placement == SPLIT else placement} {told}"
