"""Which fabrics there are here, and why one cannot be measured."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from fabrics.discovery.dpu import Dpu, dpus
from fabrics.discovery.ethernet import Addresses, Interface, interfaces
from fabrics.discovery.offers import rdma_fabrics, tcp_fabrics
from fabrics.discovery.rdma import Port, ports
from fabrics.errors import UserError
from fabrics.lab.check import why_not
from fabrics.lab.cluster import Lab, declared_rates
from fabrics.lab.config import LabConfig, burst_bytes, format_rate
from fabrics.lab.words import held_back
from fabrics.model import Fabric
from fabrics.sysfs import SYS


@dataclass(frozen=True)
class Survey:
    """All that ``host`` has to send through, offered as a fabric or not."""

    host: str
    interfaces: tuple[Interface, ...]
    ports: tuple[Port, ...]
    dpus: tuple[Dpu, ...]


def survey(sysfs: Path = SYS, addresses: Addresses | None = None) -> Survey:
    """What is in the sysfs at ``sysfs``.

    ``addresses`` gives the addresses of each interface, as ``10.0.0.1/24`` (default: this machine's).
    """
    host = socket.gethostname()
    found = interfaces(sysfs, addresses_here() if addresses is None else addresses)
    rdma = ports(sysfs)
    return Survey(host, tuple(found), tuple(rdma), tuple(dpus(sysfs, host, found, rdma)))


def discover(
    lab: Lab | None = None,
    sysfs: Path = SYS,
    addresses: Addresses | None = None,
    providers: Collection[str] | None = None,
) -> list[Fabric]:
    """The fabrics here: those of :func:`fabrics_of` that :func:`survey` finds."""
    return fabrics_of(survey(sysfs, addresses), lab, providers)


def fabrics_of(found: Survey, lab: Lab | None = None, providers: Collection[str] | None = None) -> list[Fabric]:
    """Shared memory and loopback of this host, the lab's fabrics, and those of its interfaces and RDMA ports.

    Without ``lab`` the fabrics of the default lab are listed, unusable where none can be made here. ``providers``
    names what the MPI library can drive (:data:`fabrics.discovery.offers.PROVIDERS`); None leaves that open. Of two
    fabrics of one name the first counts.
    """
    here = found.host
    listed = [
        Fabric("shm", "shm", (here,), note="shared memory between ranks of one host"),
        Fabric("tcp-lo", "tcp", (here,), {here: ("lo",)}, note="TCP over the loopback interface"),
        *lab_fabrics(lab),
        *tcp_fabrics(found.interfaces, here),
        *rdma_fabrics(found.ports, here, providers),
    ]
    unique: dict[str, Fabric] = {}
    for fabric in listed:
        unique.setdefault(fabric.name, fabric)
    return list(unique.values())


def lab_fabrics(lab: Lab | None = None) -> list[Fabric]:
    """The fabrics of ``lab``, or of the default lab if it can be made here."""
    unusable = "" if lab and os.geteuid() == 0 else why_not()  # without root there is no entering its hosts
    config = lab.config if lab else LabConfig()
    rates = lab.rates if lab else declared_rates(config)
    loss, cpus, speeds = (lab.loss, lab.cpus, lab.speeds) if lab else ({}, {}, {})
    return [
        Fabric(
            name=name,
            kind="tcp",
            hosts=config.hosts,
            devices={member: (name,) for member in config.members},
            rate_bits_per_s=_rate(by_host),
            emulated=True,
            lab=config.name,
            note="; ".join([_note(by_host), *held_back(config, loss.get(name, {}), cpus, speeds)]),
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


def addresses_here() -> dict[str, list[str]]:
    """The IP addresses of this machine's interfaces, with the length of their prefix."""
    found: dict[str, list[str]] = {}
    for name, entries in psutil.net_if_addrs().items():
        for entry in entries:
            if entry.family in (socket.AF_INET, socket.AF_INET6):
                found.setdefault(name, []).append(_with_prefix(entry.address, entry.netmask))
    return found


def _with_prefix(address: str, netmask: str | None) -> str:
    """``10.0.0.1/24`` of an address and ``255.255.255.0``; a scope (``fe80::1%eth0``) is cut off."""
    plain = address.partition("%")[0]
    if not netmask:
        return f"{plain}/{ipaddress.ip_address(plain).max_prefixlen}"
    return f"{plain}/{int(ipaddress.ip_address(netmask)).bit_count()}"


def by_names(fabrics: Sequence[Fabric], names: Iterable[str]) -> list[Fabric]:
    """The fabrics of ``names``, in that order; raises UserError naming one there is none of."""
    table = {fabric.name: fabric for fabric in fabrics}
    chosen = list(dict.fromkeys(names))
    for name in chosen:
        if name not in table:
            raise UserError(f"unknown fabric {name!r}: one of {', '.join(table)}")
    return [table[name] for name in chosen]
