"""Byte counters of RDMA ports: what bypasses the kernel's network interfaces. Not verified on hardware.

Read from these files, in this order; the first set that holds numbers counts.

| files | unit | of |
|---|---|---|
| ports/N/counters/port_rcv_data, port_xmit_data | 4 bytes; 8-byte flits on hfi1 | InfiniBand, mlx5 RoCE, Omni-Path |
| hw_counters/rx_bytes, tx_bytes | 1 byte | EFA, bnxt_re |
| hw_counters/rx_rdma_ucast_bytes and _mcast_, tx likewise | 1 byte | ionic |
| hw_counters/ip4InOctets and ip6InOctets, Out likewise | 1 byte | irdma |
| class/cxi/cxiN/device/telemetry/hni_sts_rx_ok_octets, tx | 1 byte, before an "@" and a time | Slingshot |

Sources: the kernel's Documentation/ABI/stable/sysfs-class-infiniband, its drivers mlx5 (mad.c), hfi1 (mad.c: the
flits of its registers are passed on as they are), efa, irdma and ionic; for Slingshot, the users of its telemetry.
A RoCE port's counters rise with RDMA alone, its interface's with TCP alone: that tells the two on one NIC apart.
Ports of InfiniBand, Omni-Path and Slingshot count all that passes the link, the IP of their interfaces included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fabrics import sysfs

WORD_BYTES, FLIT_BYTES = 4, 8
_STUCK = 2**32 - 1  # a 32-bit port counter stops at its end, where it tells nothing more
_HARDWARE = (
    (("rx_bytes",), ("tx_bytes",)),
    (("rx_rdma_ucast_bytes", "rx_rdma_mcast_bytes"), ("tx_rdma_ucast_bytes", "tx_rdma_mcast_bytes")),
    (("ip4InOctets", "ip6InOctets"), ("ip4OutOctets", "ip6OutOctets")),
)


@dataclass(frozen=True)
class ByteFiles:
    """Where a port counts: files whose sum, times ``unit_bytes``, is the bytes received, and those sent."""

    received: tuple[Path, ...]
    sent: tuple[Path, ...]
    unit_bytes: int = 1

    def read(self) -> tuple[int, int] | None:
        """``(received, sent)`` in bytes; None where a file is absent, holds no number, or is stuck at its end."""
        both = [_sum(self.received), _sum(self.sent)]
        counts = [count * self.unit_bytes for count in both if count is not None]
        return (counts[0], counts[1]) if len(counts) == 2 else None

    @property
    def what(self) -> str:
        """The counters by name, with their unit: ``port_rcv_data, port_xmit_data (4-byte words)``."""
        names = ", ".join(path.name for path in (*self.received, *self.sent))
        units = {1: "bytes", WORD_BYTES: "4-byte words", FLIT_BYTES: "8-byte flits"}
        return f"{names} ({units[self.unit_bytes]})"


def _sum(paths: tuple[Path, ...]) -> int | None:
    values = [_value(path) for path in paths]
    known = [value for value in values if value is not None and value != _STUCK]
    return sum(known) if len(known) == len(values) else None


def _value(path: Path) -> int | None:
    before, _, _ = sysfs.text(path).partition("@")  # Slingshot: value@time
    return int(before) if before.isdigit() else None


def files_of(device: Path, port: Path) -> ByteFiles | None:
    """The counters of a port in class/infiniband that hold numbers, None where it counts no bytes."""
    unit = FLIT_BYTES if sysfs.is_omni_path(device) else WORD_BYTES
    return next((files for files in _candidates(device, port, unit) if files.read() is not None), None)


def _candidates(device: Path, port: Path, unit: int) -> Iterator[ByteFiles]:
    standard = port / "counters"
    yield ByteFiles((standard / "port_rcv_data",), (standard / "port_xmit_data",), unit)
    places = [port / "hw_counters"]
    if len(sysfs.folders(device / "ports")) == 1:
        places.append(device / "hw_counters")  # where older kernels keep them; of several ports nobody knows whose
    for place in places:
        for received, sent in _HARDWARE:
            yield ByteFiles(tuple(place / name for name in received), tuple(place / name for name in sent))


def cxi_files_of(device: Path) -> ByteFiles | None:
    """The counters of a Slingshot NIC, None where its driver shows none."""
    telemetry = device / "device/telemetry"
    files = ByteFiles((telemetry / "hni_sts_rx_ok_octets",), (telemetry / "hni_sts_tx_ok_octets",))
    return None if files.read() is None else files


def names(root: Path) -> list[str]:
    """Every RDMA port, whether it counts bytes or not, as ``mlx5_0:1`` and ``cxi0``; no counter is read."""
    return [name for name, _, _ in sysfs.rdma_ports(root)] + [device.name for device in sysfs.cxi_devices(root)]


def read(root: Path) -> dict[str, tuple[int, int]]:
    """``{port: (rx_bytes, tx_bytes)}``, as ``mlx5_0:1`` and ``cxi0``; ports that count no bytes are left out."""
    found = [(name, files_of(device, port)) for name, device, port in sysfs.rdma_ports(root)]
    found += [(device.name, cxi_files_of(device)) for device in sysfs.cxi_devices(root)]
    counts = {name: files.read() for name, files in found if files is not None}
    return {name: count for name, count in counts.items() if count is not None}


def carriers(root: Path) -> dict[str, frozenset[str]]:
    """``{interface: ports that count its bytes too}``: IP over InfiniBand or Omni-Path, and Slingshot's Ethernet.

    Not RoCE, whose interface and port count apart.
    """
    found: dict[str, set[str]] = {}
    for name, device, port in sysfs.rdma_ports(root):
        for interface in sysfs.interfaces_of(device, int(port.name)):
            if sysfs.text(root / "class/net" / interface / "type") == sysfs.INFINIBAND:
                found.setdefault(interface, set()).add(name)
    for device in sysfs.cxi_devices(root):
        for interface in sysfs.interfaces_of(device):
            found.setdefault(interface, set()).add(device.name)
    return {interface: frozenset(names) for interface, names in found.items()}
