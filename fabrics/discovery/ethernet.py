"""The network interfaces of this host, each with what it is and, where it cannot carry a fabric, why."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fabrics import sysfs
from fabrics.discovery import pci
from fabrics.discovery.pci import Pci

Kind = Literal["ethernet", "ipoib", "bond", "vlan", "bridge", "representor", "veth", "tap", "virtual"]
Addresses = Mapping[str, Sequence[str]]

_TYPES = {"1", sysfs.INFINIBAND}  # ARPHRD_ETHER and InfiniBand
_IFF_UP = 0x1
_OWN_SPEED = ("ethernet", "ipoib", "bond", "vlan", "bridge")  # for the others the kernel makes up a speed
_REPRESENTOR = re.compile(r"(c\d+)?pf\d+(hpf|vf\d+|sf\d+)?")  # phys_port_name of a port of a NIC's own switch
_CONSOLE = "tmfifo_net"  # between a DPU's cores and its host
# The first networks of docker, podman and libvirt: the same on every host.
_EVERYWHERE = [ipaddress.ip_network(text) for text in ("172.17.0.0/16", "10.88.0.0/16", "192.168.122.0/24")]


@dataclass(frozen=True)
class Interface:
    """A network interface.

    ``state`` is ``up``, ``no carrier`` or ``down``; ``addresses`` as ``10.0.0.1/24``. ``below`` names the interfaces
    that it sends through, ``above`` those that send through it. ``leads_out`` tells whether it may reach other hosts
    at all, ``reason`` why no fabric can use it, empty where one can.
    """

    name: str
    kind: Kind
    state: str
    speed_bits_per_s: float | None
    mtu: int | None
    driver: str
    mac: str
    addresses: tuple[str, ...]
    below: tuple[str, ...]
    above: tuple[str, ...]
    pci: Pci | None
    leads_out: bool
    reason: str


def interfaces(root: Path, addresses: Addresses) -> list[Interface]:
    """Every Ethernet interface, and those of IP over InfiniBand; not lo, nor tunnels that carry no Ethernet."""
    found = {folder.name: folder for folder in sysfs.interfaces(root) if sysfs.text(folder / "type") in _TYPES}
    seen = _Seen(found, {name: _kind(folder) for name, folder in found.items()}, addresses)
    return [_interface(seen, name) for name in found]


class _Seen:
    """All interfaces together: which are below and above which, and which lead out of this host."""

    def __init__(self, found: Mapping[str, Path], kinds: Mapping[str, Kind], addresses: Addresses) -> None:
        self.folders, self.kinds = found, kinds
        self.addresses = {name: tuple(addresses.get(name, ())) for name in found}
        self.below = {name: sysfs.lowers(folder) for name, folder in found.items()}
        self.above: dict[str, list[str]] = {}
        for upper, lowers in self.below.items():
            for name in lowers:
                self.above.setdefault(name, []).append(upper)
        indices = {name: sysfs.number(folder / "ifindex") for name, folder in found.items()}
        self.local = {index for index in indices.values() if index is not None}

    def leads_out(self, name: str) -> bool:
        """Whether its frames may leave this host."""
        kind = self.kinds[name]
        if name.startswith(_CONSOLE):
            return False
        if kind in ("ethernet", "ipoib", "bond", "vlan"):  # what is below a VLAN may be in another namespace
            return True
        if kind == "veth":  # a container's own: its other end is in another namespace
            peer = sysfs.number(self.folders[name] / "iflink")
            return peer not in self.local and bool(_ipv4(self.addresses[name]))
        return any(self.leads_out(lower) for lower in self.below[name] if lower in self.kinds)


def _kind(folder: Path) -> Kind:
    types = re.findall(r"^DEVTYPE=(.*)$", sysfs.text(folder / "uevent"), re.MULTILINE)
    if (folder / "bonding").is_dir() or (folder / "bridge").is_dir():
        return "bond" if (folder / "bonding").is_dir() else "bridge"
    if "vlan" in types:
        return "vlan"
    if sysfs.text(folder / "type") == sysfs.INFINIBAND:
        return "ipoib"
    if _REPRESENTOR.fullmatch(sysfs.text(folder / "phys_port_name")):
        return "representor"
    if (folder / "device").exists():
        return "ethernet"
    return "tap" if (folder / "tun_flags").exists() else _virtual(folder, types)


def _virtual(folder: Path, types: Sequence[str]) -> Kind:
    index, link = sysfs.number(folder / "ifindex"), sysfs.number(folder / "iflink")
    pair = link is not None and link not in (0, index)
    return "veth" if pair and not types and not sysfs.lowers(folder) else "virtual"


def _interface(seen: _Seen, name: str) -> Interface:
    folder, kind = seen.folders[name], seen.kinds[name]
    speed = sysfs.number(folder / "speed")  # Mbit/s; -1 or nothing where it is unknown
    known = speed is not None and 0 < speed < 2**32 - 1 and kind in _OWN_SPEED and seen.leads_out(name)
    return Interface(
        name=name,
        kind=kind,
        state=_state(folder),
        speed_bits_per_s=(speed or 0) * 1e6 if known else None,
        mtu=sysfs.number(folder / "mtu"),
        driver=sysfs.driver(folder) or {"bond": "bonding", "vlan": "8021q"}.get(kind, ""),
        mac=sysfs.text(folder / "address"),
        addresses=seen.addresses[name],
        below=seen.below[name],
        above=tuple(seen.above.get(name, ())),
        pci=pci.of_device(folder),
        leads_out=seen.leads_out(name),
        reason=_reason(seen, name),
    )


def _state(folder: Path) -> str:
    if not int(sysfs.text(folder / "flags") or "0", 16) & _IFF_UP:
        return "down"
    return "up" if sysfs.text(folder / "carrier") == "1" else "no carrier"


def _reason(seen: _Seen, name: str) -> str:
    """Why no fabric can use it; empty where one can."""
    state = _state(seen.folders[name])
    return (
        _why_no_way_out(seen, name)
        or _why_not_itself(seen, name)
        or {"down": f"{name} is down", "no carrier": f"{name} has no carrier"}.get(state, "")
        or _why_no_address(seen, name)
    )


def _why_no_way_out(seen: _Seen, name: str) -> str:
    kind, own = seen.kinds[name], " and ".join(_ipv4(seen.addresses[name]))
    if kind == "representor":
        return f"{name} is a port of the NIC's own switch"
    if name.startswith(_CONSOLE):
        return f"{name} is the console network of a DPU, and every host has its address"
    if seen.leads_out(name):
        return ""
    if kind == "bridge":
        return f"{name} is a bridge without a physical port" + (f", other hosts have {own} too" if own else "")
    return f"{name} is virtual: nothing tells that it leads to another host"


def _why_not_itself(seen: _Seen, name: str) -> str:
    """Why one should name another interface instead."""
    for upper in seen.above.get(name, ()):
        if seen.kinds[upper] == "bond":
            return f"{name} is a slave of {upper}"
        if seen.kinds[upper] == "bridge":
            return f"{name} is a port of {upper}"
    return ""


def _why_no_address(seen: _Seen, name: str) -> str:
    own = [ipaddress.ip_interface(text) for text in seen.addresses[name]]
    if own and all(address.is_link_local for address in own):
        return f"{name} has only link-local addresses"
    usable = [address for address in own if address.version == 4 and not address.is_link_local]
    if not usable:
        return f"{name} has no IPv4 address"
    shared = [address for address in usable if any(address.ip in network for network in _EVERYWHERE)]
    if seen.kinds[name] == "veth" and len(shared) == len(usable):
        return f"{name} has {shared[0]}, an address that containers of other hosts have too"
    return ""


def _ipv4(addresses: Sequence[str]) -> list[str]:
    return [text for text in addresses if ipaddress.ip_interface(text).version == 4]
