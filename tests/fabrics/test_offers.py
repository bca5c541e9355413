"""The fabrics that planted trees make."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fabrics.discovery.ethernet import interfaces
from fabrics.discovery.offers import ONE_HOST, rdma_fabrics, tcp_fabrics
from fabrics.discovery.rdma import ports
from fabrics.model import Fabric
from tests.fabrics import trees
from tests.fabrics.trees import Tree


def rdma(tree: Tree, root: Path, *providers: str) -> dict[str, Fabric]:
    found = rdma_fabrics(ports(tree.write(root)), "n1", providers or None)
    return {fabric.name: fabric for fabric in found}


def tcp(tree: Tree, root: Path) -> dict[str, Fabric]:
    return {fabric.name: fabric for fabric in tcp_fabrics(interfaces(tree.write(root), tree.addresses), "n1")}


def test_infiniband(tmp_path: Path) -> None:
    found = rdma(trees.infiniband(), tmp_path)
    assert found["ib-mlx5_0"] == Fabric(
        name="ib-mlx5_0",
        kind="ib",
        hosts=("n1",),
        devices={"n1": ("mlx5_0:1",)},
        rate_bits_per_s=200e9,
        note="ConnectX-6 MT4123 MT_0000000223; NUMA node 1",
        unusable=ONE_HOST,
    )
    assert found["ib-mlx5_1"].unusable == "mlx5_1:1 is DOWN, physically Polling"
    assert found["ib-mlx5_1"].note.endswith("; PCIe x8 at 16 GT/s of x16 at 16 GT/s")
    assert set(found) == {"ib-mlx5_0", "ib-mlx5_1"}  # one usable rail is no set


def test_eight_rails_alone_and_together(tmp_path: Path) -> None:
    found = rdma(trees.eight_rails(), tmp_path)
    assert list(found) == [*(f"ib-mlx5_{rail}" for rail in range(8)), "ib-mlx5_10", "ib-x8"]
    together = found["ib-x8"]
    assert together.devices == {"n1": tuple(f"mlx5_{rail}:1" for rail in range(8))}
    assert (together.kind, together.rate_bits_per_s, together.rails) == ("ib", 3200e9, ())
    assert together.note == "8 equal rails together, 400 Gbit/s each, on NUMA nodes 0, 1"
    assert found["ib-mlx5_5"].note == "ConnectX-7; NUMA node 1"


def test_dark_rails_are_left_out_of_the_set_and_make_none(tmp_path: Path) -> None:
    tree = trees.eight_rails()
    for path in [path for path in tree.files if path.endswith(("mlx5_3/ports/1/state", "mlx5_4/ports/1/state"))]:
        tree.files[path] = "1: DOWN"
    found = rdma(tree, tmp_path)
    assert [name for name in found if "-x" in name] == ["ib-x6"]
    assert not {"mlx5_3:1", "mlx5_4:1"} & set(found["ib-x6"].devices["n1"])
    assert found["ib-mlx5_3"].unusable.startswith("mlx5_3:1 is DOWN")


def test_two_sets_of_one_size_have_their_rates_in_the_name(tmp_path: Path) -> None:
    tree = Tree()
    for number, rate in enumerate(("200 Gb/sec (4X HDR)", "100 Gb/sec (4X EDR)") * 2):
        tree.port(tree.rdma(f"mlx5_{number}", tree.pci(f"0000:{number}0:00.0", "15b3:101b", "mlx5_core")), rate=rate)
    found = rdma(tree, tmp_path)
    assert found["ib-x2-200g"].devices["n1"] == ("mlx5_0:1", "mlx5_2:1")
    assert found["ib-x2-100g"].devices["n1"] == ("mlx5_1:1", "mlx5_3:1")


def test_roce_has_its_gid(tmp_path: Path) -> None:
    found = rdma(trees.roce(), tmp_path)
    assert found["roce-rocep94s0f0"].gids == {"rocep94s0f0:1": 3}
    assert "GID 3, RoCE v2, 10.1.0.1 on enp94s0f0" in found["roce-rocep94s0f0"].note
    assert found["roce-rocep134s0"].gids == {}
    assert not any("-x" in name for name in found)  # v1 and v2 are not equal
    both = rdma(trees.bluefield_in_its_host(), tmp_path / "other")["roce-x2"]
    assert (both.devices["n1"], both.gids) == (("mlx5_0:1", "mlx5_1:1"), {"mlx5_0:1": 3, "mlx5_1:1": 3})


@pytest.mark.parametrize(
    ("build", "name", "kind", "device"),
    [
        (trees.omni_path, "opa-hfi1_0", "opa", "hfi1_0:1"),
        (trees.efa, "efa-rdmap0s6", "efa", "rdmap0s6:1"),
        (trees.slingshot, "cxi-cxi0", "cxi", "cxi0"),
    ],
)
def test_other_kinds(build: Callable[[], Tree], name: str, kind: str, device: str, tmp_path: Path) -> None:
    found = rdma(build(), tmp_path)[name]
    assert (found.kind, found.devices, found.unusable, found.rdma) == (kind, {"n1": (device,)}, ONE_HOST, True)


def test_a_port_that_cannot_be_proved_says_so(tmp_path: Path) -> None:
    tree = Tree()
    tree.port(tree.rdma("mlx5_0", tree.pci("0000:3b:00.0", "15b3:101b", "mlx5_core")), words=None)
    assert rdma(tree, tmp_path)["ib-mlx5_0"].note.endswith("no byte counters: cannot be proved")


def test_ports_of_a_device_with_several_are_numbered(tmp_path: Path) -> None:
    tree = Tree()
    two = tree.rdma("mlx4_0", tree.pci("0000:f0:00.0", "15b3:1003", "mlx4_core"))
    tree.port(two, 1, rate="56 Gb/sec (4X FDR)")
    tree.port(two, 2, rate="56 Gb/sec (4X FDR)")
    assert list(rdma(tree, tmp_path)) == ["ib-mlx4_0-1", "ib-mlx4_0-2", "ib-x2"]


def test_what_the_library_lacks(tmp_path: Path) -> None:
    tree = trees.infiniband()
    assert rdma(tree, tmp_path / "a", "tcp", "verbs")["ib-mlx5_0"].unusable == ONE_HOST
    lacking = rdma(tree, tmp_path / "b", "tcp", "psm2")
    assert lacking["ib-mlx5_0"].unusable == (
        "the MPI library lacks the provider: it loads none of rc, ud, dc, verbs (which need libibverbs)"
    )
    assert lacking["ib-mlx5_1"].unusable == "mlx5_1:1 is DOWN, physically Polling"


def test_what_has_no_recipes_makes_no_fabric(tmp_path: Path) -> None:
    tree = Tree()
    tree.port(tree.rdma("iw0", tree.pci("0000:3b:00.0", "8086:159b", "irdma"), node_type="4: RNIC"))
    assert rdma(tree, tmp_path) == {}


def test_tcp(tmp_path: Path) -> None:
    found = tcp(trees.bond(), tmp_path)
    assert {name: fabric.unusable for name, fabric in found.items()} == {
        "bond0": ONE_HOST,
        "bond0.20": "bond0.20 is a port of br20",
        "br20": ONE_HOST,
        "eno1": "eno1 is a slave of bond0",
        "eno2": "eno2 is a slave of bond0",
    }
    assert found["bond0"].note == "bond of eno1 and eno2, bonding, MTU 9000"
    assert (found["bond0"].rate_bits_per_s, found["bond0"].devices) == (50e9, {"n1": ("bond0",)})
    assert found["br20"].note == "bridge over bond0.20, MTU 1500"


def test_what_leads_nowhere_makes_no_fabric(tmp_path: Path) -> None:
    assert list(tcp(trees.containers(), tmp_path)) == ["eno1"]


def test_ip_over_omni_path_and_infiniband(tmp_path: Path) -> None:
    assert tcp(trees.omni_path(), tmp_path / "a")["ibp130s0"].note.startswith("IP over Omni-Path, hfi1, MTU 10236")
    assert tcp(trees.infiniband(), tmp_path / "b")["ib0"].note == "IP over InfiniBand, mlx5_core, MTU 4092"
