"""Which fabrics there are here, and why one cannot be measured."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import psutil

from fabrics.counters import SYS
from fabrics.errors import UserError
from fabrics.lab.check import why_not
from fabrics.lab.cluster import Lab, declared_rates
from fabrics.lab.config import LabConfig, burst_bytes, format_rate
from fabrics.model import Fabric

_ETHERNET = "1"  # ARPHRD_ETHER
_IFF_UP = 0x1
_ONE_HOST = "one host only: name hosts to measure it"


def discover(lab: Lab | None = None, sysfs: Path = SYS, addresses: Iterable[str] | None = None) -> list[Fabric]:
    """Shared memory and loopback of this host, the lab's fabrics, and this machine's Ethernet interfaces.

    Without ``lab`` the fabrics of the default lab are listed, unusable where none can be made here.
    ``addresses`` names the interfaces that have an IPv4 address (default: this machine's).
    """
    here = socket.gethostname()
    addressed = _addressed() if addresses is None else set(addresses)
    found = [
        Fabric("shm", "shm", (here,), note="shared memory between ranks of one host"),
        Fabric("tcp-lo", "tcp", (here,), {here: ("lo",)}, note="TCP over the loopback interface"),
        *lab_fabrics(lab),
    ]
    taken = {fabric.name for fabric in found}
    ethernet = [_ethernet(folder, here, addressed) for folder in _ethernets(sysfs)]
    return found + [fabric for fabric in ethernet if fabric.name not in taken]


def lab_fabrics(lab: Lab | None = None) -> list[Fabric]:
    """The fabrics of ``lab``, or of the default lab if it can be made here."""
    unusable = "" if lab and os.geteuid() == 0 else why_not()  # without root there is no entering its hosts
    config = lab.config if lab else LabConfig()
    rates = lab.rates if lab else declared_rates(config)
    return [
        Fabric(
            name=name,
            kind="tcp",
            hosts=config.hosts,
            devices={member: (name,) for member in config.members},
            rate_bits_per_s=_rate(by_host),
            emulated=True,
            lab=config.name,
            note=_note(by_host),
            unusable=unusable,
        )
        for name, by_host in rates.items()
    ]


def _rate(by_host: Mapping[str, float | None]) -> float | None:
    """The fabric's rate: its fastest uplink's, None where one is not shaped."""
    rates = [rate for rate in by_host.values() if rate is not None]
    return max(rates) if len(rates) == len(by_host) else None


def _note(by_host: Mapping[str, float | None]) -> str:
    rate = _rate(by_host)
    if rate is None:
        return "network namespaces, not shaped"
    slower = [f"{host} at {format_rate(own)}" for host, own in by_host.items() if own is not None and own < rate]
    text = (
        f"network namespaces, uplinks shaped by tbf to {format_rate(rate)}, "
        f"burst {burst_bytes(rate) / 1024:.0f} KiB: smaller messages look faster than the link"
    )
    return "; ".join([text, *slower])


def _ethernets(sysfs: Path) -> list[Path]:
    """The folders of interfaces that lead somewhere: NICs, bonds and VLANs; not bridges, veths or tunnels."""
    root = sysfs / "class/net"
    folders = sorted(folder for folder in root.iterdir() if folder.is_dir()) if root.is_dir() else []
    return [folder for folder in folders if _text(folder / "type") == _ETHERNET and _leads_out(folder)]


def _leads_out(folder: Path) -> bool:
    vlan = "DEVTYPE=vlan" in _text(folder / "uevent").split()
    return (folder / "device").exists() or (folder / "bonding").exists() or vlan


def _ethernet(folder: Path, here: str, addressed: set[str]) -> Fabric:
    speed = _text(folder / "speed")  # Mbit/s; -1 or nothing where it is unknown
    rate = float(speed) * 1e6 if speed.isdigit() and int(speed) > 0 else None
    name = folder.name
    return Fabric(
        name=name,
        kind="tcp",
        hosts=(here,),
        devices={here: (name,)},
        rate_bits_per_s=rate,
        note="Ethernet interface of this machine",
        unusable=_why_unusable(folder, addressed),
    )


def _why_unusable(folder: Path, addressed: set[str]) -> str:
    if not int(_text(folder / "flags") or "0", 16) & _IFF_UP:
        return f"{folder.name} is down"
    if _text(folder / "carrier") != "1":
        return f"{folder.name} has no carrier"
    if folder.name not in addressed:
        return f"{folder.name} has no IPv4 address"
    return _ONE_HOST


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:  # absent, or refused while the interface is down
        return ""


def _addressed() -> set[str]:
    interfaces = psutil.net_if_addrs().items()
    return {name for name, entries in interfaces if any(entry.family == socket.AF_INET for entry in entries)}


def by_names(fabrics: Sequence[Fabric], names: Iterable[str]) -> list[Fabric]:
    """The fabrics of ``names``, in that order; raises UserError naming one there is none of."""
    table = {fabric.name: fabric for fabric in fabrics}
    chosen = list(dict.fromkeys(names))
    for name in chosen:
        if name not in table:
            raise UserError(f"unknown fabric {name!r}: one of {', '.join(table)}")
    return [table[name] for name in chosen]
