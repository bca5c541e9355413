"""Interfaces of planted trees: what each is, and why one is not offered."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabrics.discovery.ethernet import Interface, interfaces
from fabrics.discovery.pci import Pci
from tests.fabrics import trees
from tests.fabrics.trees import Tree


def read(tree: Tree, root: Path) -> dict[str, Interface]:
    return {each.name: each for each in interfaces(tree.write(root), tree.addresses)}


def test_a_plain_nic_field_by_field(tmp_path: Path) -> None:
    assert read(trees.plain(), tmp_path)["ens0"] == Interface(
        name="ens0",
        kind="ethernet",
        state="up",
        speed_bits_per_s=10e9,
        mtu=1500,
        driver="i40e",
        mac="0c:42:a1:1d:d1:01",
        addresses=("10.6.0.1/24",),
        below=(),
        above=(),
        pci=Pci("0000:01:00.0", "8086:1572", 0, 16, 16, 16.0, 16.0),
        leads_out=True,
        reason="",
    )


def test_a_bond_its_slaves_its_vlan_and_a_bridge_over_that(tmp_path: Path) -> None:
    found = read(trees.bond(), tmp_path)
    assert {name: (each.kind, each.below, each.above) for name, each in found.items()} == {
        "bond0": ("bond", ("eno1", "eno2"), ("bond0.20",)),
        "bond0.20": ("vlan", ("bond0",), ("br20",)),
        "br20": ("bridge", ("bond0.20",), ()),
        "eno1": ("ethernet", (), ("bond0",)),
        "eno2": ("ethernet", (), ("bond0",)),
    }
    assert {name: each.reason for name, each in found.items()} == {
        "bond0": "",
        "bond0.20": "bond0.20 is a port of br20",
        "br20": "",
        "eno1": "eno1 is a slave of bond0",
        "eno2": "eno2 is a slave of bond0",
    }
    assert (found["bond0"].speed_bits_per_s, found["bond0"].mtu, found["bond0"].driver) == (50e9, 9000, "bonding")
    assert all(each.leads_out for each in found.values())


def test_networks_that_other_hosts_have_too_are_not_offered(tmp_path: Path) -> None:
    found = read(trees.containers(), tmp_path)
    assert {name: (each.kind, each.leads_out, each.reason) for name, each in found.items()} == {
        "docker0": (
            "bridge",
            False,
            "docker0 is a bridge without a physical port, other hosts have 172.17.0.1/16 too",
        ),
        "dummy0": ("virtual", False, "dummy0 is virtual: nothing tells that it leads to another host"),
        "eno1": ("ethernet", True, ""),
        "tap0": ("tap", False, "tap0 is virtual: nothing tells that it leads to another host"),
        "veth0a1b2c3": ("veth", False, "veth0a1b2c3 is virtual: nothing tells that it leads to another host"),
        "virbr0": (
            "bridge",
            False,
            "virbr0 is a bridge without a physical port, other hosts have 192.168.122.1/24 too",
        ),
    }
    speeds = {name: each.speed_bits_per_s for name, each in found.items() if each.speed_bits_per_s is not None}
    assert speeds == {"eno1": 10e9}  # of a pair, and of a bridge over it, the kernel makes one up


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("10.244.3.7/24", ""),
        ("172.17.0.2/16", "eth0 has 172.17.0.2/16, an address that containers of other hosts have too"),
    ],
)
def test_inside_a_container_the_address_decides(address: str, reason: str, tmp_path: Path) -> None:
    found = read(trees.container(address), tmp_path)["eth0"]
    assert (found.kind, found.leads_out, found.reason) == ("veth", True, reason)


def test_both_ends_of_a_pair_on_this_host_lead_nowhere(tmp_path: Path) -> None:
    tree = Tree()
    tree.net("a", "", ["10.0.0.1/24"], ifindex=1, iflink=2)
    tree.net("b", "", ["10.0.0.2/24"], ifindex=2, iflink=1)
    assert [each.leads_out for each in read(tree, tmp_path).values()] == [False, False]


@pytest.mark.parametrize(
    ("texts", "addresses", "state", "reason"),
    [
        ({"flags": "0x1002", "carrier": ""}, ["10.0.0.1/24"], "down", "e is down"),
        ({"carrier": "0"}, ["10.0.0.1/24"], "no carrier", "e has no carrier"),
        ({}, [], "up", "e has no IPv4 address"),
        ({}, ["fd00::1/64"], "up", "e has no IPv4 address"),
        ({}, ["169.254.3.1/16", "fe80::1/64"], "up", "e has only link-local addresses"),
        ({}, ["169.254.3.1/16", "10.0.0.1/24"], "up", ""),
        ({}, ["172.17.0.1/16"], "up", ""),  # of a real NIC it may well be one's own
    ],
)
def test_why_a_nic_is_not_offered(
    texts: dict[str, str], addresses: list[str], state: str, reason: str, tmp_path: Path
) -> None:
    tree = trees.plain()
    tree.net("e", "devices/pci0000:01/0000:01:00.0", addresses, **texts)
    found = read(tree, tmp_path)["e"]
    assert (found.state, found.reason, found.leads_out) == (state, reason, True)


def test_a_dpu_s_switch_and_console_are_not_offered(tmp_path: Path) -> None:
    found = read(trees.bluefield_itself(), tmp_path)
    console = "tmfifo_net0 is the console network of a DPU, and every host has its address"
    assert {name: (each.kind, each.leads_out, each.reason) for name, each in found.items()} == {
        "p0": ("ethernet", True, ""),
        "pf0hpf": ("representor", False, "pf0hpf is a port of the NIC's own switch"),
        "tmfifo_net0": ("ethernet", False, console),
    }


def test_ip_over_infiniband_is_an_interface(tmp_path: Path) -> None:
    found = read(trees.infiniband(), tmp_path)["ib0"]
    assert (found.kind, found.mtu, found.driver, found.reason) == ("ipoib", 4092, "mlx5_core", "")
    assert found.pci is not None
    assert (found.pci.model, found.pci.numa_node) == ("ConnectX-6", 1)


def test_loopback_and_tunnels_without_ethernet_are_left_out(tmp_path: Path) -> None:
    tree = trees.plain()
    tree.net("lo", "", ["127.0.0.1/8"], type=772)
    tree.net("wg0", "", ["10.99.0.1/24"], type=65534)
    assert list(read(tree, tmp_path)) == ["ens0"]
    assert interfaces(tmp_path / "nowhere", {}) == []
