"""Fabrics that a user defines: what the file says, what it finds on hosts, and where it cannot be meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabrics.definition import Definition, fabric, parse, read
from fabrics.errors import UserError
from fabrics.model import Fabric
from fabrics.recipes import recipe

FILE = """
[fabrics.ib0]
devices = ["mlx5_0:1"]
rate = "200gbit"
note = "HDR"

[fabrics.eth]
cidr = "10.1.0.0/24"
rate = "2.5gbit"
hosts = { "node[02-03]" = ["ens1f0"] }

[fabrics.rails]
devices = ["mlx5_0:1", "mlx5_1:1"]
kind = "roce"
gid_index = 3
rails = [0, 0, 1, 1]
"""
ADDRESSES = {
    "node01": {"lo": ["127.0.0.1", "::1"], "eno1": ["192.168.0.1"], "eth7": ["10.1.0.1", "fe80::1%eth7"]},
    "node02": {"lo": ["127.0.0.1"], "ens1f0": ["10.1.0.2/24"], "docker0": ["172.17.0.1"]},
    "node04": {"lo": ["127.0.0.1"], "docker0": ["172.17.0.1"]},
}


def one(text: str) -> Definition:
    (found,) = parse(text, "f")
    return found


def test_a_file_defines_fabrics(tmp_path: Path) -> None:
    path = tmp_path / "fabrics.toml"
    path.write_text(FILE)
    ib, eth, rails = read(path)
    assert ib == Definition("ib0", "ib", devices=("mlx5_0:1",), rate_bits_per_s=200e9, note="HDR")
    assert eth == Definition(
        "eth",
        "tcp",
        networks=("10.1.0.0/24",),
        by_host={"node02": ("ens1f0",), "node03": ("ens1f0",)},
        rate_bits_per_s=2.5e9,
    )
    assert (rails.kind, rails.rails) == ("roce", (0, 0, 1, 1))
    assert rails.gids == {"mlx5_0:1": 3, "mlx5_1:1": 3}


def test_a_definition_makes_a_fabric_on_hosts() -> None:
    ib = fabric(parse(FILE, "f")[0], ("a", "b"))
    devices = {"a": ("mlx5_0:1",), "b": ("mlx5_0:1",)}
    assert ib == Fabric("ib0", "ib", ("a", "b"), devices, 200e9, note="HDR")
    assert Fabric.from_dict(ib.as_dict()) == ib


def test_its_fabric_has_recipes_by_rail() -> None:
    rails = fabric(parse(FILE, "f")[2], ("a", "b"))
    seen = [recipe(rails, "mpich", local_rank=rank).env["UCX_NET_DEVICES"] for rank in range(5)]
    assert seen == ["mlx5_0:1", "mlx5_0:1", "mlx5_1:1", "mlx5_1:1", "mlx5_0:1"]
    assert recipe(rails, "mpich").env["UCX_IB_GID_INDEX"] == "3"


def test_a_network_finds_each_hosts_interface() -> None:
    found = fabric(parse(FILE, "f")[1], ("node01", "node02"), ADDRESSES)
    assert found.devices == {"node01": ("eth7",), "node02": ("ens1f0",)}
    assert found.usable
    assert recipe(found, "mpich", host="node01").env["UCX_NET_DEVICES"] == "eth7"


@pytest.mark.parametrize(
    ("text", "hosts", "why"),
    [
        ('cidr = "10.1.0.0/24"', ("node01", "node04"), "node04 has no address in 10.1.0.0/24"),
        ('cidr = "10.1.0.0/24"', ("node01", "node09"), "addresses of node09 are not known"),
        ('cidr = "172.17.0.0/16"', ("node02", "node04"), "node02 and node04 both have 172.17.0.1"),
        ('cidr = ["10.1.0.0/24"]\nrails = [0, 1]', ("node01",), "rails name device 1, and node01 has 1 in 10.1.0.0/24"),
        ('hosts = { a = ["eth0"] }', ("a", "b"), "no device is named for b"),
        ('devices = ["eth0"]', (), "no host is named"),
    ],
)
def test_a_fabric_that_a_host_lacks_says_so(text: str, hosts: tuple[str, ...], why: str) -> None:
    assert fabric(one(f"[fabrics.x]\n{text}"), hosts, ADDRESSES).unusable == why


def test_hosts_named_in_the_definition_are_the_default() -> None:
    found = fabric(one('[fabrics.x.hosts]\n"n[1-2]" = ["eth0", "eth1"]\nn3 = ["ens1", "ens2"]'))
    assert found.hosts == ("n1", "n2", "n3")
    assert found.devices["n3"] == ("ens1", "ens2")
    assert found.usable


def test_networks_of_ipv6_and_several_at_once() -> None:
    here = {"a": {"e0": ["fd00:1::5"], "e1": ["10.9.0.1"], "e2": ["fd00:2::5"]}}
    found = fabric(one('[fabrics.x]\ncidr = ["fd00:1::/64", "10.9.0.0/16"]'), ("a",), here)
    assert found.devices == {"a": ("e0", "e1")}


@pytest.mark.parametrize(
    ("devices", "kind"),
    [
        ('["eth0", "bond0.12", "ib0"]', "tcp"),
        ('["mlx5_0:1", "mlx5_1:1"]', "ib"),
        ('["mlx5_bond_0:1"]', "ib"),
        ('["rocep1s0f0:1"]', "roce"),
        ('["bnxt_re0:1", "mlx5_0:1"]', "roce"),
        ('["ibp59s0:1"]', "ib"),
        ('["hfi1_0:1"]', "opa"),
        ('["rdmap0s6:1"]', "efa"),
        ('["cxi0", "cxi1"]', "cxi"),
    ],
)
def test_the_kind_follows_from_the_devices_names(devices: str, kind: str) -> None:
    assert one(f"[fabrics.x]\ndevices = {devices}").kind == kind


def test_a_gid_index_makes_it_roce() -> None:
    found = one('[fabrics.x]\ndevices = ["mlx5_0:1", "mlx5_1:1"]\ngid_index = { "mlx5_1:1" = 5 }')
    assert (found.kind, found.gids) == ("roce", {"mlx5_1:1": 5})


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "fabrics file f defines nothing: add a table such as"),
        ("fabrics = 1", "fabrics file f defines nothing"),
        ("[fabric.x]", "fabrics file f: at its top there is no 'fabric'"),
        ("[fabrics.x", "fabrics file f: "),
        (
            "[fabrics.x]\ndevice = 1",
            r"fabrics file f: \[fabrics.x\] has no 'device': allowed are devices, cidr, hosts, ",
        ),
        ("[fabrics.shm]\ndevices = ['e0']", r"\[fabrics.shm\]: a name is a letter, .*not shm, tcp-lo"),
        ('[fabrics."a b"]\ndevices = ["e0"]', "a name is a letter"),
        ("[fabrics]\nx = 3", r"\[fabrics.x\] is 3: make it a table"),
        ("[fabrics.x]\nrate = '1gbit'", r"\[fabrics.x\] names no devices"),
        ("[fabrics.x]\ndevices = ['e0']\ncidr = '10.0.0.0/8'", "has devices and cidr: give one"),
        ("[fabrics.x]\ndevices = 'e0'", "devices = 'e0': devices takes a list of unlike names"),
        ("[fabrics.x]\ndevices = []", "devices takes a list"),
        ("[fabrics.x]\ndevices = ['e0', 'e0']", "devices takes a list of unlike"),
        ("[fabrics.x]\ndevices = ['e 0']", "'e 0' is no interface, such as eth0, and no RDMA device"),
        ("[fabrics.x]\ndevices = ['mlx5_0']", "'mlx5_0': an RDMA device is named with its port, such as mlx5_0:1"),
        ("[fabrics.x]\ndevices = ['mlx5_0:0']", "an RDMA device is named with its port"),
        ("[fabrics.x]\ndevices = ['mlx5_0:1', 'eth0']", "eth0 is of another kind than the devices before it"),
        ("[fabrics.x]\ndevices = ['mlx5_0:1']\nkind = 'opa'", 'kind = "opa": mlx5_0:1 can be ib or roce'),
        ("[fabrics.x]\ndevices = ['e0']\nkind = 'shm'", "kind = 'shm': kind takes one of tcp, ib, roce, opa, efa, cxi"),
        ("[fabrics.x]\ncidr = '10.1.0.0/24'\nkind = 'roce'", "cidr finds interfaces: name RDMA devices"),
        ("[fabrics.x]\ncidr = '10.1.0.1/24'", "cidr = '10.1.0.1/24': cidr takes a network"),
        ("[fabrics.x]\ncidr = 'ten'", "cidr takes a network"),
        ("[fabrics.x]\ndevices = ['e0']\nrate = '10Gbps'", r"\[fabrics.x\]: rate: rate '10Gbps': a number with kbit"),
        ("[fabrics.x]\ndevices = ['e0']\nrate = 10", "rate = 10: rate takes a text"),
        ("[fabrics.x]\ndevices = ['e0']\nrails = [0, 1]", "rails name device 1, and e0 has 1, from 0"),
        ("[fabrics.x]\ndevices = ['e0']\nrails = [-1]", r"rails = \[-1\]: rails takes a list of whole numbers from 0"),
        ("[fabrics.x]\ndevices = ['e0']\nrails = [true]", "rails takes"),
        ("[fabrics.x]\ndevices = ['e0']\ngid_index = 3", "gid_index is RoCE's, and this fabric is tcp"),
        ("[fabrics.x]\ndevices = ['mlx5_0:1']\ngid_index = 300", "gid_index = 300: gid_index takes a whole number"),
        (
            "[fabrics.x]\ndevices = ['mlx5_0:1']\ngid_index = {a = 3}",
            "gid_index has no device 'a': allowed are mlx5_0:1",
        ),
        ("[fabrics.x.hosts]\na = 'e0'", "hosts takes a table of each host's devices"),
        ("[fabrics.x.hosts]\n'n[1-2]' = ['e0']\nn2 = ['e1']", r"\[fabrics.x\]: hosts: host n2 stands twice"),
        ("[fabrics.x.hosts]\n'n[2-1]' = ['e0']", "hosts takes a table"),
        ("[fabrics.x]\ndevices = ['e0']\nnote = 3", "note = 3: note takes a text"),
    ],
)
def test_what_cannot_be_meant_is_told(text: str, error: str) -> None:
    with pytest.raises(UserError, match=error):
        parse(text, "f")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read fabrics file .*none: No such file"):
        read(tmp_path / "none")
