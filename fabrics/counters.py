"""Byte counters of network interfaces and of RDMA ports, as the kernel keeps them.

Interfaces are named ``eth0``, ports ``mlx5_0:1`` and ``cxi0``. Those of ports are not verified on hardware
(:mod:`fabrics.rdma_counters`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fabrics import rdma_counters, sysfs
from fabrics.sysfs import SYS

_WRAP = 2**32
_PORT_WRAP = rdma_counters.WORD_BYTES * 2**32  # a port's 32 bits count words
Counts = dict[str, tuple[int, int]]


def read(root: Path = SYS) -> Counts:
    """``{device: (rx_bytes, tx_bytes)}`` of every interface, lo included, and every RDMA port that counts bytes.

    One that vanishes meanwhile is left out.
    """
    counts = {folder.name: _counts(folder / "statistics") for folder in sysfs.interfaces(root)}
    known = {device: (rx, tx) for device, (rx, tx) in counts.items() if rx is not None and tx is not None}
    return {**known, **rdma_counters.read(root)}


def _counts(statistics: Path) -> tuple[int | None, int | None]:
    return sysfs.number(statistics / "rx_bytes"), sysfs.number(statistics / "tx_bytes")


def delta(before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]) -> Counts:
    """Bytes that each device of ``after`` carried since ``before``.

    A device that has vanished is left out: what it carried cannot be known. One that is new counts from 0.
    A count that fell either wrapped at 2**32, as some drivers' counters do, or began again: it is taken as
    the wrap when fewer than 2**31 explain it, else as what came since the new beginning. Interfaces count bytes,
    RDMA ports 4-byte words.
    """
    rises: Counts = {}
    for device, (rx, tx) in after.items():
        was, wrap = before.get(device, (0, 0)), _PORT_WRAP if ":" in device else _WRAP
        rises[device] = _rise(was[0], rx, wrap), _rise(was[1], tx, wrap)
    return rises


def _rise(before: int, after: int, wrap: int) -> int:
    if after >= before:
        return after - before
    wrapped = after + wrap - before
    return wrapped if 0 <= wrapped < wrap // 2 and before < wrap else after


def scaled(counts: Mapping[str, tuple[int, int]], factor: float) -> Counts:
    """``counts`` for a time ``factor`` times as long, rounded up."""
    return {device: (_up(rx * factor), _up(tx * factor)) for device, (rx, tx) in counts.items()}


def _up(value: float) -> int:
    return int(-(-value // 1))


def paths(root: Path = SYS) -> dict[str, frozenset[str]]:
    """``{device: itself and all devices that count its bytes too}``: a bond and its slaves, a VLAN and its NIC.

    Two VLANs of one NIC are not on one path, nor are a RoCE port and its interface: each counts its own. Bytes of IP
    over InfiniBand or Omni-Path count on the port as well; the port's own do not count on the interface.
    """
    below = {folder.name: set(sysfs.lowers(folder)) for folder in sysfs.interfaces(root)}
    above = {device: {upper for upper, lowers in below.items() if device in lowers} for device in below}
    found = {device: _reached(device, below) | _reached(device, above) for device in below}
    ports = rdma_counters.carriers(root)
    found = {device: reached.union(*(ports.get(other, ()) for other in reached)) for device, reached in found.items()}
    alone = {device: {device} for device in rdma_counters.names(root)}
    return {device: frozenset(reached) for device, reached in {**alone, **found}.items()}


def _reached(device: str, links: Mapping[str, set[str]]) -> set[str]:
    reached, left = {device}, [device]
    while left:
        fresh = links.get(left.pop(), set()) - reached
        reached |= fresh
        left += fresh
    return reached
