"""PCI functions behind devices, and links that give less than the device could."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabrics.discovery.pci import Pci, of_device
from tests.fabrics.trees import Tree


@pytest.mark.parametrize(
    ("texts", "link", "degraded"),
    [
        ({}, "x16 at 16 GT/s", ""),
        ({"current_link_width": 8}, "x8 at 16 GT/s", "PCIe x8 at 16 GT/s of x16 at 16 GT/s"),
        ({"current_link_speed": "8.0 GT/s PCIe"}, "x16 at 8 GT/s", "PCIe x16 at 8 GT/s of x16 at 16 GT/s"),
        ({"current_link_speed": "2.5 GT/s", "max_link_speed": "2.5 GT/s"}, "x16 at 2.5 GT/s", ""),
        ({"current_link_speed": "Unknown", "current_link_width": 0}, "", ""),  # a virtual function
        ({"current_link_width": 63, "max_link_width": 255}, "at 16 GT/s", ""),
    ],
)
def test_links(texts: dict[str, object], link: str, degraded: str, tmp_path: Path) -> None:
    tree = Tree()
    tree.net("eth0", tree.pci("0000:3b:00.0", "15b3:101b", "mlx5_core", **texts))
    found = of_device(tree.write(tmp_path) / "class/net/eth0")
    assert found is not None
    assert (found.link, found.degraded, found.model) == (link, degraded, "ConnectX-6")


def test_a_virtio_device_sits_on_its_parent(tmp_path: Path) -> None:
    tree = Tree()
    parent = tree.pci("0000:00:03.0", "1af4:1041", "virtio-pci", numa_node=-1)
    tree.put(f"{parent}/virtio2", vendor="0x1af4", device="0x0001")
    tree.net("eth0", f"{parent}/virtio2")
    tree.net("br0")
    tree.write(tmp_path)
    assert of_device(tmp_path / "class/net/eth0") == Pci("0000:00:03.0", "1af4:1041", None, 16, 16, 16.0, 16.0)
    assert of_device(tmp_path / "class/net/br0") is None
