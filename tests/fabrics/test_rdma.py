"""RDMA ports of planted trees, field by field."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabrics.discovery.pci import Pci
from fabrics.discovery.rdma import Gid, Port, ports
from tests.fabrics import trees
from tests.fabrics.trees import EMPTY, LINK_LOCAL, V1, V2, Tree, mapped

WORDS = "port_rcv_data, port_xmit_data (4-byte words)"


def read(tree: Tree, root: Path) -> dict[str, Port]:
    return {each.name: each for each in ports(tree.write(root))}


def test_infiniband(tmp_path: Path) -> None:
    found = read(trees.infiniband(), tmp_path)
    assert found["mlx5_0:1"] == Port(
        name="mlx5_0:1",
        kind="ib",
        state="ACTIVE",
        physical_state="LinkUp",
        rate_bits_per_s=200e9,
        link_layer="InfiniBand",
        firmware="20.35.1012",
        board="ConnectX-6 MT4123 MT_0000000223",
        driver="mlx5_core",
        interface="ib0",
        gid=None,
        counters=WORDS,
        pci=Pci("0000:3b:00.0", "15b3:101b", 1, 16, 16, 16.0, 16.0),
        reason="",
        notes=(),
    )
    dark = found["mlx5_1:1"]
    assert (dark.state, dark.physical_state, dark.rate_bits_per_s) == ("DOWN", "Polling", None)
    assert dark.reason == "mlx5_1:1 is DOWN, physically Polling"
    assert dark.notes == ("PCIe x8 at 16 GT/s of x16 at 16 GT/s",)


def test_roce(tmp_path: Path) -> None:
    found = read(trees.roce(), tmp_path)
    first = found["rocep94s0f0:1"]
    assert first.gid == Gid(3, "RoCE v2", "10.1.0.1", "enp94s0f0")
    assert (first.kind, first.link_layer, first.interface, first.counters) == ("roce", "Ethernet", "enp94s0f0", WORDS)
    assert (first.rate_bits_per_s, first.reason) == (100e9, "")
    assert first.notes == ("GID 3, RoCE v2, 10.1.0.1 on enp94s0f0",)
    old = found["rocep94s0f1:1"]
    assert old.gid == Gid(1, "RoCE v1", "10.2.0.1", "enp94s0f1")
    assert old.notes[1] == "no RoCE v2: cannot be routed"
    bare = found["rocep134s0:1"]
    assert (bare.gid, bare.reason) == (None, "rocep134s0:1 has no GID: its interface has no address")
    assert bare.interface == "enp134s0"  # that of the same function


@pytest.mark.parametrize(
    ("gids", "index"),
    [
        ({0: (LINK_LOCAL, V1, "e"), 1: (LINK_LOCAL, V2, "e")}, 1),
        ({0: ("fd00::1", V2, "e"), 1: (mapped("10.0.0.1"), V2, "e")}, 1),
        ({0: (LINK_LOCAL, V2, "e"), 1: ("fd00::1", V2, "e")}, 1),
        ({0: (mapped("10.0.0.1"), V1, "e"), 1: (LINK_LOCAL, V2, "e")}, 1),
        ({2: (mapped("10.0.0.1"), V2, "e"), 10: (mapped("10.0.0.2"), V2, "e")}, 2),
        ({0: (LINK_LOCAL, "", ""), 1: (mapped("10.0.0.1"), "", "")}, 1),  # a kernel that tells no types: v1
        ({0: (EMPTY, "", ""), 7: (mapped("10.0.0.1"), V1, "e")}, 7),
    ],
)
def test_the_gid_that_is_chosen(gids: trees.Gids, index: int, tmp_path: Path) -> None:
    tree = Tree()
    device = tree.rdma("mlx5_0", tree.pci("0000:5e:00.0", "15b3:101d", "mlx5_core"))
    tree.port(device, gids=gids, link_layer="Ethernet", rate="100 Gb/sec (4X EDR)")
    gid = read(tree, tmp_path)["mlx5_0:1"].gid
    assert gid is not None
    assert gid.index == index


def test_omni_path(tmp_path: Path) -> None:
    found = read(trees.omni_path(), tmp_path)["hfi1_0:1"]
    assert (found.kind, found.driver, found.firmware, found.interface) == ("opa", "hfi1", "1.27.0", "ibp130s0")
    assert found.counters == "port_rcv_data, port_xmit_data (8-byte flits)"
    assert found.board.startswith("Omni-Path HFI 100 Intel Omni-Path")
    assert (found.rate_bits_per_s, found.reason) == (100e9, "")
    assert found.notes == ("PCIe x8 at 8 GT/s of x16 at 8 GT/s",)


def test_efa(tmp_path: Path) -> None:
    found = read(trees.efa(), tmp_path)["rdmap0s6:1"]
    assert (found.kind, found.driver, found.board, found.link_layer) == ("efa", "efa", "EFA", "Unknown")
    assert (found.counters, found.interface) == ("rx_bytes, tx_bytes (bytes)", "")
    assert (found.rate_bits_per_s, found.reason, found.notes) == (100e9, "", ())


def test_slingshot(tmp_path: Path) -> None:
    first, second = ports(trees.slingshot().write(tmp_path))
    assert (first.name, first.kind, first.state, first.interface) == ("cxi0", "cxi", "ACTIVE", "hsn0")
    assert first.counters == "hni_sts_rx_ok_octets, hni_sts_tx_ok_octets (bytes)"
    assert (first.rate_bits_per_s, first.reason) == (200e9, "")
    assert (second.rate_bits_per_s, second.counters) == (None, "")
    assert second.reason == "cxi1 has no link: hsn1 has no carrier"


@pytest.mark.parametrize(
    ("texts", "node", "kind", "reason"),
    [
        ({"state": "2: INIT"}, "1: CA", "ib", "x_0:1 is INIT: no subnet manager has configured it"),
        ({"state": "1: DOWN", "phys_state": "3: Disabled"}, "1: CA", "ib", "x_0:1 is DOWN, physically Disabled"),
        ({"link_layer": "Ethernet"}, "4: RNIC", "iwarp", "x_0:1 is iwarp, which there are no recipes for"),
        ({}, "5: usNIC", "usnic", "x_0:1 is usnic, which there are no recipes for"),
        ({"link_layer": "Unknown"}, "1: CA", "unknown", "x_0:1 is of an unknown kind, which there are no recipes for"),
    ],
)
def test_why_a_port_is_not_offered(texts: dict[str, str], node: str, kind: str, reason: str, tmp_path: Path) -> None:
    tree = Tree()
    device = tree.rdma("x_0", tree.pci("0000:5e:00.0", "15b3:101d", "x"), node_type=node)
    tree.port(device, rate="100 Gb/sec (4X EDR)", **texts)
    found = read(tree, tmp_path)["x_0:1"]
    assert (found.kind, found.reason) == (kind, reason)


def test_old_signalling_and_devices_in_software_are_noted(tmp_path: Path) -> None:
    tree = Tree()
    tree.port(tree.rdma("mlx4_0", tree.pci("0000:5e:00.0", "15b3:1003", "mlx4_core")), rate="40 Gb/sec (4X QDR)")
    gids = {1: (mapped("10.0.0.1"), V2, "eth0")}
    tree.port(tree.rdma("rxe0"), gids=gids, words=None, link_layer="Ethernet", rate="2.5 Gb/sec (1X SDR)")
    found = read(tree, tmp_path)
    assert found["mlx4_0:1"].notes == ("8b/10b coding: data at 80 % of the rate",)
    assert found["rxe0:1"].notes == ("GID 1, RoCE v2, 10.0.0.1 on eth0", "no PCI device: done in software")
    assert (found["rxe0:1"].counters, found["rxe0:1"].interface) == ("", "eth0")


def test_ports_are_in_natural_order_and_may_be_two_a_device(tmp_path: Path) -> None:
    tree = trees.eight_rails()
    at = tree.pci("0000:f0:00.0", "15b3:1003", "mlx4_core")
    two = tree.rdma("mlx4_0", at)
    for number in (1, 2):
        tree.port(two, number, rate="56 Gb/sec (4X FDR)")
        tree.net(f"ib{number}", at, type=32, dev_port=number - 1)
    found = ports(tree.write(tmp_path))
    assert [each.interface for each in found[:2]] == ["ib1", "ib2"]
    assert [each.name for each in found] == [
        "mlx4_0:1",
        "mlx4_0:2",
        *(f"mlx5_{rail}:1" for rail in range(8)),
        "mlx5_10:1",
    ]
    assert ports(tmp_path / "nowhere") == []
