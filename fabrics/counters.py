"""Byte counters of network interfaces, as the kernel keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

SYS = Path("/sys")
_WRAP = 2**32
Counts = dict[str, tuple[int, int]]


def read(root: Path = SYS) -> Counts:
    """``{device: (rx_bytes, tx_bytes)}`` of every interface, lo included; one that vanishes is left out."""
    counts: Counts = {}
    for device in _devices(root):
        try:
            counts[device] = (_count(root, device, "rx_bytes"), _count(root, device, "tx_bytes"))
        except OSError:  # it went while it was read
            continue
    return counts


def _devices(root: Path) -> list[str]:
    folder = root / "class/net"
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []


def _count(root: Path, device: str, name: str) -> int:
    return int((root / "class/net" / device / "statistics" / name).read_text())


def delta(before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]) -> Counts:
    """Bytes that each device of ``after`` carried since ``before``.

    A device that has vanished is left out: what it carried cannot be known. One that is new counts from 0.
    A count that fell either wrapped at 2**32, as some drivers' counters do, or began again: it is taken as
    the wrap when fewer than 2**31 bytes explain it, else as the bytes since the new beginning.
    """
    return {
        device: (_rise(before.get(device, (0, 0))[0], rx), _rise(before.get(device, (0, 0))[1], tx))
        for device, (rx, tx) in after.items()
    }


def _rise(before: int, after: int) -> int:
    if after >= before:
        return after - before
    wrapped = after + _WRAP - before
    return wrapped if 0 <= wrapped < _WRAP // 2 and before < _WRAP else after


def scaled(counts: Mapping[str, tuple[int, int]], factor: float) -> Counts:
    """``counts`` for a time ``factor`` times as long, rounded up."""
    return {device: (_up(rx * factor), _up(tx * factor)) for device, (rx, tx) in counts.items()}


def _up(value: float) -> int:
    return int(-(-value // 1))


def paths(root: Path = SYS) -> dict[str, frozenset[str]]:
    """``{device: itself and all devices below and above it}``: a bond and its slaves, a VLAN and its NIC.

    The same bytes count on each of them. Two VLANs of one NIC are not on one path.
    """
    below = {device: _linked(root, device, "lower_") for device in _devices(root)}
    above = {device: {upper for upper, lowers in below.items() if device in lowers} for device in below}
    return {device: frozenset(_reached(device, below) | _reached(device, above)) for device in below}


def _linked(root: Path, device: str, prefix: str) -> set[str]:
    folder = root / "class/net" / device
    return {entry.name.removeprefix(prefix) for entry in folder.iterdir() if entry.name.startswith(prefix)}


def _reached(device: str, links: Mapping[str, set[str]]) -> set[str]:
    reached, left = {device}, [device]
    while left:
        fresh = links.get(left.pop(), set()) - reached
        reached |= fresh
        left += fresh
    return reached
