"""The PCI function behind a device: what it is, where it sits, and whether its link has all its lanes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fabrics import sysfs

# From the tables of the kernel's drivers mlx5_core, hfi1 and efa.
MODELS = {
    "15b3:1017": "ConnectX-5",
    "15b3:1019": "ConnectX-5 Ex",
    "15b3:101b": "ConnectX-6",
    "15b3:101d": "ConnectX-6 Dx",
    "15b3:101f": "ConnectX-6 Lx",
    "15b3:1021": "ConnectX-7",
    "15b3:1023": "ConnectX-8",
    "15b3:a2d2": "BlueField",
    "15b3:a2d6": "BlueField-2",
    "15b3:a2dc": "BlueField-3",
    "15b3:a2df": "BlueField-4",
    "8086:24f0": "Omni-Path HFI 100",
    "1d0f:efa0": "EFA",
    "1d0f:efa1": "EFA",
    "1d0f:efa2": "EFA",
    "1d0f:efa3": "EFA",
}


@dataclass(frozen=True)
class Pci:
    """A PCI function. Link widths are lanes, speeds GT/s; None where the kernel does not know, as for many VFs."""

    address: str
    id: str
    numa_node: int | None = None
    width: int | None = None
    max_width: int | None = None
    speed_gt_per_s: float | None = None
    max_speed_gt_per_s: float | None = None

    @property
    def model(self) -> str:
        """The device's name, empty for an id that is not in ``MODELS``."""
        return MODELS.get(self.id, "")

    @property
    def link(self) -> str:
        """``x16 at 16 GT/s``, empty where it is not known."""
        return _link(self.width, self.speed_gt_per_s)

    @property
    def degraded(self) -> str:
        """Which part of what the device can its link gives, empty where it gives all or is not known."""
        narrow = None not in (self.width, self.max_width) and (self.width or 0) < (self.max_width or 0)
        known = None not in (self.speed_gt_per_s, self.max_speed_gt_per_s)
        slow = known and (self.speed_gt_per_s or 0) < (self.max_speed_gt_per_s or 0)
        if not narrow and not slow:
            return ""
        return f"PCIe {self.link} of {_link(self.max_width, self.max_speed_gt_per_s)}"


def _link(width: int | None, speed_gt_per_s: float | None) -> str:
    lanes = "" if width is None else f"x{width}"
    speed = "" if speed_gt_per_s is None else f"at {speed_gt_per_s:g} GT/s"
    return f"{lanes} {speed}".strip()


def of_device(folder: Path) -> Pci | None:
    """The function that the class device at ``folder`` sits on, None for one that is not on PCI."""
    found = sysfs.pci_folder(folder)
    return None if found is None else read(found)


def read(folder: Path) -> Pci:
    """The function whose folder this is."""
    node = sysfs.number(folder / "numa_node")
    return Pci(
        address=folder.name,
        id=identity(folder),
        numa_node=None if node == -1 else node,
        width=_lanes(folder / "current_link_width"),
        max_width=_lanes(folder / "max_link_width"),
        speed_gt_per_s=_speed(folder / "current_link_speed"),
        max_speed_gt_per_s=_speed(folder / "max_link_speed"),
    )


def identity(folder: Path) -> str:
    """Vendor and device as ``15b3:101b``."""
    vendor, device = (sysfs.text(folder / name).removeprefix("0x") for name in ("vendor", "device"))
    return f"{vendor}:{device}"


def _lanes(path: Path) -> int | None:
    lanes = sysfs.number(path)
    return lanes if lanes is not None and 0 < lanes <= 32 else None  # 0, 63 and 255 mean that nobody knows


def _speed(path: Path) -> float | None:
    """GT/s of ``16.0 GT/s PCIe``; None of ``Unknown``."""
    first, _, rest = sysfs.text(path).partition(" ")
    try:
        return float(first) if rest.startswith("GT/s") else None
    except ValueError:
        return None
