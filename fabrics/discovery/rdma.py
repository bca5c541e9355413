"""The RDMA ports of this host, each with what it is and, where it cannot carry a fabric, why.

InfiniBand, RoCE, Omni-Path and EFA from class/infiniband, Slingshot from class/cxi. Names of files and the texts in
them are those of the kernel's drivers/infiniband/core/sysfs.c. Not verified on hardware: tests read trees that are
made like recorded ones.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fabrics import rdma_counters, sysfs
from fabrics.discovery import pci
from fabrics.discovery.pci import Pci

ROCE_V1, ROCE_V2 = "RoCE v1", "RoCE v2"


@dataclass(frozen=True)
class Gid:
    """An entry of a RoCE port's table: ``address`` is IPv4 where it is mapped, ``interface`` the one it belongs to."""

    index: int
    type: str
    address: str
    interface: str

    @property
    def told(self) -> str:
        """``GID 3, RoCE v2, 10.1.0.1 on eth0``."""
        return f"GID {self.index}, {self.type}, {self.address}" + (f" on {self.interface}" if self.interface else "")


@dataclass(frozen=True)
class Port:
    """A port of an RDMA device, ``mlx5_0:1``; ``cxi0`` of Slingshot, which has one.

    ``kind`` is a fabric's kind, or the name of a technology that there are no fabrics of. ``interface`` is the one
    of the same port, ``gid`` the entry chosen for RoCE. ``counters`` names what counts its bytes, empty where
    nothing does. ``reason`` says why no fabric can use it, empty where one can; ``notes`` what else there is to know.
    """

    name: str
    kind: str
    state: str
    physical_state: str
    rate_bits_per_s: float | None
    link_layer: str
    firmware: str
    board: str
    driver: str
    interface: str
    gid: Gid | None
    counters: str
    pci: Pci | None
    reason: str
    notes: tuple[str, ...] = ()


def ports(root: Path) -> list[Port]:
    """Every RDMA port."""
    found = [_port(name, device, port) for name, device, port in sysfs.rdma_ports(root)]
    return found + [_cxi(root, device) for device in sysfs.cxi_devices(root)]


def _port(name: str, device: Path, port: Path) -> Port:
    kind, function = _kind(device, port), pci.of_device(device)
    state, physical = (_after_colon(port / file) for file in ("state", "phys_state"))
    gid = _best_gid(port) if kind == "roce" else None
    files = rdma_counters.files_of(device, port)
    own = [gid.interface] if gid and gid.interface else sysfs.interfaces_of(device, int(port.name))
    return Port(
        name=name,
        kind=kind,
        state=state,
        physical_state=physical,
        rate_bits_per_s=_rate(port) if state == "ACTIVE" else None,  # of a port that is down, drivers tell any
        link_layer=sysfs.text(port / "link_layer"),
        firmware=sysfs.text(device / "fw_ver"),
        board=_board(device, function),
        driver=sysfs.driver(device),
        interface=own[0] if own else "",
        gid=gid,
        counters="" if files is None else files.what,
        pci=function,
        reason=_reason(name, kind, state, physical, gid),
        notes=_notes(kind, function, gid, sysfs.text(port / "rate") if state == "ACTIVE" else ""),
    )


def _kind(device: Path, port: Path) -> str:
    if sysfs.is_omni_path(device):
        return "opa"
    if sysfs.driver(device) == "efa":
        return "efa"
    node, link = _after_colon(device / "node_type"), sysfs.text(port / "link_layer")
    if node != "CA":
        return {"RNIC": "iwarp", "usNIC": "usnic", "usNIC UDP": "usnic"}.get(node, "unknown")
    return {"InfiniBand": "ib", "Ethernet": "roce"}.get(link, "unknown")


def _after_colon(path: Path) -> str:
    """``ACTIVE`` of ``4: ACTIVE``."""
    number, colon, rest = sysfs.text(path).partition(":")
    return rest.strip() if colon else number


def _rate(port: Path) -> float | None:
    """Bit/s of ``200 Gb/sec (4X HDR)``: lanes times signalling rate."""
    first, _, rest = sysfs.text(port / "rate").partition(" ")
    try:
        return float(first) * 1e9 if rest.startswith("Gb/sec") else None
    except ValueError:
        return None


def _board(device: Path, function: Pci | None) -> str:
    words = (function.model if function else "", *(sysfs.text(device / file) for file in ("hca_type", "board_id")))
    return " ".join(word for word in words if word)


def _reason(name: str, kind: str, state: str, physical: str, gid: Gid | None) -> str:
    if kind not in ("ib", "roce", "opa", "efa"):
        return f"{name} is {'of an unknown kind' if kind == 'unknown' else kind}, which there are no recipes for"
    if state == "INIT":
        return f"{name} is INIT: no subnet manager has configured it"
    if state != "ACTIVE":
        return f"{name} is {state or 'in no state'}" + (f", physically {physical}" if physical else "")
    return f"{name} has no GID: its interface has no address" if kind == "roce" and gid is None else ""


def _notes(kind: str, function: Pci | None, gid: Gid | None, rate: str) -> tuple[str, ...]:
    notes = [gid.told] if gid else []
    if gid and gid.type == ROCE_V1:
        notes.append("no RoCE v2: cannot be routed")
    elif gid and ipaddress.ip_address(gid.address).is_link_local:
        notes.append("its GIDs are link-local: cannot be routed")
    if kind == "ib" and any(speed in rate for speed in ("SDR", "DDR", "QDR")):
        notes.append("8b/10b coding: data at 80 % of the rate")
    if function is None:
        notes.append("no PCI device: done in software")
    elif function.degraded:
        notes.append(function.degraded)
    return tuple(notes)


def _best_gid(port: Path) -> Gid | None:
    """RoCE v2 before v1, IPv4 before other routable before link-local addresses, then the first; None without any."""
    return min(_gids(port), key=_preference, default=None)


def _preference(gid: Gid) -> tuple[bool, int, int]:
    address = ipaddress.ip_address(gid.address)
    scope = 0 if address.version == 4 else 1 + address.is_link_local
    return gid.type != ROCE_V2, scope, gid.index


def _gids(port: Path) -> Iterator[Gid]:
    folder = port / "gids"
    for index in sorted(int(entry.name) for entry in folder.iterdir()) if folder.is_dir() else ():
        try:
            raw = ipaddress.IPv6Address(sysfs.text(folder / str(index)))
        except ValueError:
            continue
        if int(raw) == 0:  # an empty entry
            continue
        kind = sysfs.text(port / "gid_attrs/types" / str(index))
        interface = sysfs.text(port / "gid_attrs/ndevs" / str(index))
        yield Gid(index, ROCE_V2 if kind == "RoCE v2" else ROCE_V1, str(raw.ipv4_mapped or raw), interface)


def _cxi(root: Path, device: Path) -> Port:
    """A Slingshot NIC: its link is its interface's."""
    own = sysfs.interfaces_of(device)
    folder = root / "class/net" / own[0] if own else None
    up = folder is not None and sysfs.text(folder / "carrier") == "1"
    speed = sysfs.number(folder / "speed") if folder is not None and up else None
    function, files = pci.of_device(device), rdma_counters.cxi_files_of(device)
    why = f"{device.name} has no link: {own[0]} has no carrier" if own else f"{device.name} has no interface"
    return Port(
        name=device.name,
        kind="cxi",
        state="ACTIVE" if up else "DOWN",
        physical_state="",
        rate_bits_per_s=speed * 1e6 if speed is not None and speed > 0 else None,
        link_layer="Ethernet",
        firmware="",  # no file of its driver is known to hold it
        board=function.model if function else "",
        driver=sysfs.driver(device),
        interface=own[0] if own else "",
        gid=None,
        counters="" if files is None else files.what,
        pci=function,
        reason="" if up else why,
        notes=(function.degraded,) if function and function.degraded else (),
    )
