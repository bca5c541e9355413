"""Reading sysfs: small files, and the links from a device to its driver, its PCI function and its ports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

SYS = Path("/sys")
INFINIBAND = "32"  # ARPHRD_INFINIBAND: an interface of IP over InfiniBand or Omni-Path
_DIGITS = re.compile(r"(\d+)")


def text(path: Path) -> str:
    """The file's text without surrounding blanks, empty where it is absent or refuses to be read."""
    try:
        return path.read_text(errors="replace").strip(" \t\r\n\0")  # the device tree ends its strings with a NUL
    except OSError:  # many attributes answer EINVAL while their device is down
        return ""


def number(path: Path) -> int | None:
    """The file's whole number, None where there is none in it."""
    try:
        return int(text(path))
    except ValueError:  # "N/A (no PMA)", "Unknown"
        return None


def natural(name: str) -> tuple[str | int, ...]:
    """A sorting key that puts mlx5_2 before mlx5_10."""
    return tuple(int(part) if part.isdigit() else part for part in _DIGITS.split(name))


def folders(parent: Path) -> list[Path]:
    """The folders in ``parent``, links to folders included, in natural order; none where it is absent."""
    if not parent.is_dir():
        return []
    return sorted((entry for entry in parent.iterdir() if entry.is_dir()), key=lambda entry: natural(entry.name))


def interfaces(root: Path) -> list[Path]:
    """The folders of all network interfaces."""
    return folders(root / "class/net")


def lowers(folder: Path) -> tuple[str, ...]:
    """The interfaces that the interface at ``folder`` sends through: slaves, ports, the device under a VLAN."""
    linked = {name.removeprefix("lower_") for name in _names(folder) if name.startswith("lower_")}
    slaves = set(text(folder / "bonding/slaves").split())
    return tuple(sorted(linked | slaves | set(_names(folder / "brif")), key=natural))


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except OSError:  # absent, or gone meanwhile
        return []


def driver(folder: Path) -> str:
    """The name of the driver of the class device at ``folder``, empty where it has none."""
    link = folder / "device/driver"
    if link.is_symlink():
        return link.readlink().name
    return ""


def pci_folder(folder: Path) -> Path | None:
    """The folder of the PCI function that a class device sits on, straight or by a virtio or auxiliary device."""
    device = folder / "device"
    if not device.exists():
        return None
    at = device.resolve()
    return next((place for place in (at, *at.parents[:2]) if (place / "vendor").is_file() and _is_pci(place)), None)


def _is_pci(folder: Path) -> bool:
    return (folder / "class").is_file()  # a PCI function has its class code there, a virtio device has none


def rdma_ports(root: Path) -> Iterator[tuple[str, Path, Path]]:
    """``(name, device's folder, port's folder)`` of each port in class/infiniband: ``mlx5_0:1``."""
    for device in folders(root / "class/infiniband"):
        for port in folders(device / "ports"):
            yield f"{device.name}:{port.name}", device, port


def cxi_devices(root: Path) -> list[Path]:
    """The folders of HPE Slingshot NICs (Cassini): ``cxi0``."""
    return folders(root / "class/cxi")


def interfaces_of(device: Path, port: int = 1) -> list[str]:
    """The interfaces on the PCI function of an RDMA device that belong to its ``port``."""
    mine = []
    for folder in folders(device / "device/net"):
        index = number(folder / "dev_port")  # counts from 0
        if index is None or index == port - 1:
            mine.append(folder.name)
    return mine


def is_omni_path(device: Path) -> bool:
    """Whether an RDMA device is an Omni-Path adapter, which calls its link layer InfiniBand."""
    return driver(device) == "hfi1" or device.name.startswith("hfi1")
