"""Small sysfs trees like recorded ones: the names of files and the texts in them are a real kernel's.

A tree is built in memory and written below a root, with the same links that sysfs has: ``class/net/eth0`` and
``class/infiniband/mlx5_0`` lead to the PCI function's folder, which has its ``driver``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

V1, V2 = "IB/RoCE v1", "RoCE v2"
MAPPED = "0000:0000:0000:0000:0000:ffff:{:02x}{:02x}:{:02x}{:02x}"
EMPTY = "0000:0000:0000:0000:0000:0000:0000:0000"
LINK_LOCAL = "fe80:0000:0000:0000:0e42:a1ff:fe1d:d12a"
Gids = Mapping[int, tuple[str, str, str]]  # index: address, type, interface


def mapped(address: str) -> str:
    """An IPv4 address as the kernel prints it in a GID."""
    return MAPPED.format(*(int(part) for part in address.split(".")))


class Tree:
    """Files and links below a root, and the addresses that interfaces have."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.links: dict[str, str] = {}
        self.addresses: dict[str, tuple[str, ...]] = {}
        self._indices = 0

    def write(self, root: Path) -> Path:
        """All of it below ``root``, which is returned."""
        for path, text in self.files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(f"{text}\n")
        for path, target in self.links.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / target).mkdir(parents=True, exist_ok=True)
            (root / path).symlink_to(os.path.relpath(root / target, (root / path).parent))
        return root

    def put(self, folder: str, **texts: object) -> None:
        """Files of ``folder``; in a name, ``__`` stands for a slash."""
        self.files.update({f"{folder}/{name.replace('__', '/')}": str(text) for name, text in texts.items()})

    def pci(self, address: str, identity: str, driver: str, **texts: object) -> str:
        """A PCI function's folder, x16 at 16 GT/s on NUMA node 0 where ``texts`` does not say otherwise."""
        folder = f"devices/pci{address[:7]}/{address}"
        vendor, _, device = identity.partition(":")
        link = {"current_link_width": 16, "max_link_width": 16}
        speed = {"current_link_speed": "16.0 GT/s PCIe", "max_link_speed": "16.0 GT/s PCIe"}
        known = {"vendor": f"0x{vendor}", "device": f"0x{device}", "class": "0x020000", "numa_node": 0}
        self.put(folder, **{**known, **link, **speed, **texts})
        self.links[f"{folder}/driver"] = f"bus/pci/drivers/{driver}"
        self.links[f"bus/pci/devices/{address}"] = folder
        return folder

    def net(self, name: str, on: str = "", addresses: Sequence[str] = (), lowers: Sequence[str] = (),
            **texts: object) -> str:  # fmt: skip
        """An interface on the device at ``on``, or a virtual one; up, with carrier, MTU 1500."""
        self._indices += 1
        index, folder = self._indices, f"{on or 'devices/virtual'}/net/{name}"
        usual: dict[str, object] = {"type": 1, "flags": "0x1003", "carrier": 1, "mtu": 1500, "ifindex": index}
        usual |= {"iflink": index, "uevent": f"INTERFACE={name}", "address": f"0c:42:a1:1d:d1:{index:02x}"}
        if on:
            usual["dev_port"] = 0
            self.links[f"{folder}/device"] = on
        self.put(folder, **{**usual, "statistics__rx_bytes": 0, "statistics__tx_bytes": 0, **texts})
        self.links[f"class/net/{name}"] = folder
        for lower in lowers:
            self.links[f"{folder}/lower_{lower}"] = f"class/net/{lower}"
        if addresses:
            self.addresses[name] = tuple(addresses)
        return folder

    def rdma(self, name: str, on: str = "", **texts: object) -> str:
        """An RDMA device; its ports come by :meth:`port`."""
        folder = f"{on or 'devices/virtual'}/infiniband/{name}"
        self.put(folder, **{"node_type": "1: CA", **texts})
        if on:
            self.links[f"{folder}/device"] = on
        self.links[f"class/infiniband/{name}"] = folder
        return folder

    def port(self, device: str, number: int = 1, gids: Gids | None = None, words: tuple[object, object] | None = (0, 0),
             **texts: object) -> str:  # fmt: skip
        """A port, ACTIVE; ``words`` are port_rcv_data and port_xmit_data, None for a port without them."""
        folder = f"{device}/ports/{number}"
        self.put(folder, **{"state": "4: ACTIVE", "phys_state": "5: LinkUp", "link_layer": "InfiniBand", **texts})
        if words is not None:
            self.put(folder, counters__port_rcv_data=words[0], counters__port_xmit_data=words[1])
        for index, (address, kind, interface) in (gids or {}).items():
            self.put(folder, **{f"gids__{index}": address})
            if kind:  # of an empty entry the kernel refuses to tell the type
                self.put(folder, **{f"gid_attrs__types__{index}": kind, f"gid_attrs__ndevs__{index}": interface})
        return folder


MLX5 = {"fw_ver": "20.35.1012", "hca_type": "MT4123", "board_id": "MT_0000000223"}


def infiniband() -> Tree:
    """A ConnectX-6 at 200 Gbit/s on NUMA node 1, with IP over InfiniBand, and one whose cable is out."""
    tree = Tree()
    first = tree.pci("0000:3b:00.0", "15b3:101b", "mlx5_core", numa_node=1, **{"class": "0x020700"})
    tree.net("ib0", first, ["10.9.0.1/24"], type=32, mtu=4092, speed=200000)
    tree.port(tree.rdma("mlx5_0", first, **MLX5), words=(1000, 2000), rate="200 Gb/sec (4X HDR)")
    second = tree.pci("0000:3b:00.1", "15b3:101b", "mlx5_core", current_link_width=8, **{"class": "0x020700"})
    dark = {"state": "1: DOWN", "phys_state": "2: Polling", "rate": "10 Gb/sec (4X SDR)"}
    tree.port(tree.rdma("mlx5_1", second, **MLX5), **dark)
    return tree


def roce() -> Tree:
    """A ConnectX-6 Dx with RoCE v1 and v2 and a VLAN, a v1-only one, and one without an address."""
    tree = Tree()
    first = tree.pci("0000:5e:00.0", "15b3:101d", "mlx5_core")
    tree.net("enp94s0f0", first, ["10.1.0.1/24", "fe80::e42:a1ff:fe1d:d12a/64"], mtu=9000, speed=100000)
    tree.net("enp94s0f0.7", "", ["10.7.0.1/24"], ["enp94s0f0"], uevent="DEVTYPE=vlan\nINTERFACE=enp94s0f0.7")
    gids = {
        0: (LINK_LOCAL, V1, "enp94s0f0"),
        1: (LINK_LOCAL, V2, "enp94s0f0"),
        2: (mapped("10.1.0.1"), V1, "enp94s0f0"),
        3: (mapped("10.1.0.1"), V2, "enp94s0f0"),
        4: (mapped("10.7.0.1"), V1, "enp94s0f0.7"),
        5: (mapped("10.7.0.1"), V2, "enp94s0f0.7"),
        **{index: (EMPTY, "", "") for index in range(6, 256)},
    }
    ethernet = {"link_layer": "Ethernet", "rate": "100 Gb/sec (4X EDR)"}
    tree.port(tree.rdma("rocep94s0f0", first, **MLX5 | {"hca_type": "MT4125"}), gids=gids, **ethernet)
    second = tree.pci("0000:5e:00.1", "15b3:1017", "mlx5_core", numa_node=-1)
    old = {0: (LINK_LOCAL, V1, "enp94s0f1"), 1: (mapped("10.2.0.1"), V1, "enp94s0f1")}
    tree.net("enp94s0f1", second, ["10.2.0.1/24"], speed=100000)
    tree.port(tree.rdma("rocep94s0f1", second, **MLX5), gids=old, **ethernet)
    third = tree.pci("0000:86:00.0", "15b3:101d", "mlx5_core")
    tree.net("enp134s0", third, speed=100000)
    tree.port(tree.rdma("rocep134s0", third, **MLX5), gids={0: (EMPTY, "", "")}, **ethernet)
    return tree


def eight_rails() -> Tree:
    """Eight ConnectX-7 at 400 Gbit/s on two NUMA nodes, and a slower ninth for storage."""
    tree = Tree()
    for rail in range(8):
        at = tree.pci(f"0000:{0x18 + 8 * rail:02x}:00.0", "15b3:1021", "mlx5_core", numa_node=rail // 4)
        tree.port(tree.rdma(f"mlx5_{rail}", at, fw_ver="28.39.1002"), rate="400 Gb/sec (4X NDR)")
    at = tree.pci("0000:e0:00.0", "15b3:101b", "mlx5_core", numa_node=1)
    tree.port(tree.rdma("mlx5_10", at, fw_ver="20.35.1012"), rate="200 Gb/sec (4X HDR)")
    return tree


def omni_path() -> Tree:
    """An Intel Omni-Path adapter in a narrow slot, with IP over it; its driver calls the link InfiniBand."""
    tree = Tree()
    slot = {"current_link_width": 8, "current_link_speed": "8.0 GT/s PCIe", "max_link_speed": "8.0 GT/s PCIe"}
    at = tree.pci("0000:82:00.0", "8086:24f0", "hfi1", **{**slot, "class": "0x020800"})
    tree.net("ibp130s0", at, ["10.8.0.1/24"], type=32, mtu=10236)
    board = "Intel Omni-Path Host Fabric Interface Adapter 100 Series"
    device = tree.rdma("hfi1_0", at, fw_ver="1.27.0", board_id=board)
    tree.port(device, words=(125, 250), rate="100 Gb/sec (4X EDR)")
    return tree


def efa() -> Tree:
    """An Elastic Fabric Adapter beside the instance's Ethernet (ena)."""
    tree = Tree()
    tree.net("ens5", tree.pci("0000:00:05.0", "1d0f:ec20", "ena"), ["172.31.4.10/20"], mtu=9001)
    at = tree.pci("0000:00:06.0", "1d0f:efa1", "efa")
    device = tree.rdma("rdmap0s6", at, node_type="7: <unknown>")
    port = tree.port(device, words=None, rate="100 Gb/sec (4X EDR)", link_layer="Unknown")
    tree.put(port, hw_counters__rx_bytes=7000, hw_counters__tx_bytes=9000, hw_counters__lifespan=12)
    return tree


def slingshot() -> Tree:
    """Two Slingshot NICs, the second without a link and without telemetry."""
    tree = Tree()
    for number, carrier in enumerate((1, 0)):
        at = tree.pci(f"0000:c{number}:00.0", "17db:0501", "cxi_ss1", numa_node=number)
        addresses = [f"10.150.0.{number + 1}/16"]
        tree.net(f"hsn{number}", at, addresses, mtu=9000, speed=200000 if carrier else -1, carrier=carrier)
        tree.links[f"{at}/cxi/cxi{number}/device"] = at
        tree.links[f"class/cxi/cxi{number}"] = f"{at}/cxi/cxi{number}"
    first = "devices/pci0000:c0/0000:c0:00.0"
    tree.put(f"{first}/telemetry", hni_sts_rx_ok_octets="4096@1700000000.123", hni_sts_tx_ok_octets="8192@1700000000.1")
    return tree


def bluefield_in_its_host() -> Tree:
    """A host with a BlueField-2 of two ports, and the console network to it."""
    tree = Tree()
    for function in (0, 1):
        at = tree.pci(f"0000:03:00.{function}", "15b3:a2d6", "mlx5_core")
        tree.net(f"enp3s0f{function}np{function}", at, [f"10.3.{function}.1/24"], phys_port_name=f"p{function}")
        gids = {3: (mapped(f"10.3.{function}.1"), V2, f"enp3s0f{function}np{function}")}
        ethernet = {"link_layer": "Ethernet", "rate": "100 Gb/sec (4X EDR)"}
        tree.port(tree.rdma(f"mlx5_{function}", at, fw_ver="24.35.1012"), gids=gids, **ethernet)
    tree.pci("0000:03:00.2", "15b3:c2d3", "mlxbf-pf")  # the card's management function
    tree.net("tmfifo_net0", "", ["192.168.100.1/30"], tun_flags="0x1002")
    return tree


def bluefield_itself() -> Tree:
    """The system on a BlueField-2, which switches for its host."""
    tree = Tree()
    tree.put(
        "class/dmi/id", product_name="BlueField SoC", product_family="BlueField", sys_vendor="https://www.mellanox.com"
    )
    at = tree.pci("0000:03:00.0", "15b3:a2d6", "mlx5_core")
    tree.net("p0", at, ["10.3.0.101/24"], phys_port_name="p0", speed=100000)
    tree.net("pf0hpf", at, phys_port_name="pf0hpf")
    console = "devices/platform/MLNXBF01:00/virtio0"
    tree.links[f"{console}/driver"] = "bus/virtio/drivers/virtio_net"
    tree.net("tmfifo_net0", console, ["192.168.100.2/30"])
    return tree


def bond() -> Tree:
    """A bond over two ports with a VLAN on it, and a bridge over the VLAN."""
    tree = Tree()
    for port in (0, 1):
        at = tree.pci(f"0000:17:00.{port}", "8086:159b", "ice")
        tree.net(f"eno{port + 1}", at, speed=25000)
    folder = tree.net("bond0", "", ["10.4.0.1/24"], ["eno1", "eno2"], speed=50000, mtu=9000)
    tree.put(folder, bonding__slaves="eno1 eno2", bonding__mode="802.3ad 4")
    tree.net("bond0.20", "", (), ["bond0"], speed=50000, uevent="DEVTYPE=vlan\nINTERFACE=bond0.20")
    folder = tree.net("br20", "", ["10.4.20.1/24"], ["bond0.20"], speed=50000)
    tree.put(folder, bridge__bridge_id="8000.0c42a11dd101")
    return tree


def containers() -> Tree:
    """A host with one NIC and docker's, libvirt's and its own virtual networks."""
    tree = Tree()
    tree.net("eno1", tree.pci("0000:01:00.0", "8086:1572", "i40e"), ["10.5.0.1/24"], speed=10000)
    veth = {"iflink": 2, "speed": 10000}  # the end of a container, whose other end has index 2 in its own namespace
    tree.net("veth0a1b2c3", "", (), **{**veth, "ifindex": 77, "iflink": 76})
    for name, address, ports in (("docker0", "172.17.0.1/16", ["veth0a1b2c3"]), ("virbr0", "192.168.122.1/24", [])):
        tree.put(tree.net(name, "", [address], ports, speed=10000), bridge__bridge_id="8000.024213")
    tree.net("dummy0", "", ["10.66.0.1/24"])
    tree.net("tap0", "", (), tun_flags="0x1002")
    return tree


def container(address: str) -> Tree:
    """Inside a container: one end of a pair, whose other end is in the host's namespace."""
    tree = Tree()
    tree.net("eth0", "", [address], iflink=77, speed=10000)
    return tree


def plain(count: int = 1) -> Tree:
    """``count`` NICs of one driver."""
    tree = Tree()
    for number in range(count):
        at = tree.pci(f"0000:{number // 32 + 1:02x}:{number % 32:02x}.0", "8086:1572", "i40e", numa_node=number % 2)
        tree.net(f"ens{number}", at, [f"10.6.{number}.1/24"], speed=10000)
    return tree
