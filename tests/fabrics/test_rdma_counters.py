"""Byte counters of RDMA ports, and that they tell RDMA from TCP on one NIC."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fabrics import counters, rdma_counters
from fabrics.model import Fabric
from fabrics.proof import judge
from tests.fabrics import trees
from tests.fabrics.trees import Tree

MB = 1_000_000
WORDS = 4


@pytest.mark.parametrize(
    ("build", "counts"),
    [
        (trees.infiniband, {"mlx5_0:1": (4000, 8000), "mlx5_1:1": (0, 0)}),
        (trees.omni_path, {"hfi1_0:1": (1000, 2000)}),
        (trees.efa, {"rdmap0s6:1": (7000, 9000)}),
        (trees.slingshot, {"cxi0": (4096, 8192)}),
        (trees.plain, {}),
    ],
)
def test_units(build: Callable[[], Tree], counts: dict[str, tuple[int, int]], tmp_path: Path) -> None:
    root = build().write(tmp_path)
    assert rdma_counters.read(root) == counts
    assert {name: count for name, count in counters.read(root).items() if name in counts} == counts


@pytest.mark.parametrize("text", ["N/A (no PMA)", "", "4294967295"])
def test_a_port_without_a_count_is_left_out(text: str, tmp_path: Path) -> None:
    tree = Tree()
    tree.port(tree.rdma("mlx4_0", tree.pci("0000:5e:00.0", "15b3:1003", "mlx4_core")), words=(5, text))
    assert rdma_counters.read(tree.write(tmp_path)) == {}


@pytest.mark.parametrize(
    ("names", "values", "count"),
    [
        (("rx_rdma_ucast_bytes", "rx_rdma_mcast_bytes"), (100, 1), 101),
        (("ip4InOctets", "ip6InOctets"), (30, 4), 34),
        (("rx_bytes",), (9,), 9),
    ],
)
def test_hardware_counters_by_driver(
    names: tuple[str, ...], values: tuple[int, ...], count: int, tmp_path: Path
) -> None:
    tree = Tree()
    device = tree.rdma("x", tree.pci("0000:5e:00.0", "1dd8:1002", "x"))
    port = tree.port(device, words=("N/A (no PMA)", "N/A (no PMA)"), link_layer="Ethernet")
    for name, value in zip(names, values, strict=True):
        sent = name.replace("rx", "tx").replace("In", "Out")
        tree.put(port, **{f"hw_counters__{name}": value, f"hw_counters__{sent}": 2 * value})
    assert rdma_counters.read(tree.write(tmp_path)) == {"x:1": (count, 2 * count)}


def test_counters_of_a_device_are_those_of_its_only_port(tmp_path: Path) -> None:
    tree = Tree()
    for name in ("one", "two"):
        device = tree.rdma(name, tree.pci(f"0000:5{len(name)}:00.0", "1d0f:efa0", "efa"))
        tree.put(device, hw_counters__rx_bytes=1, hw_counters__tx_bytes=2)
        for port in range(1, 2 if name == "one" else 3):
            tree.port(device, port, words=None)
    assert rdma_counters.read(tree.write(tmp_path)) == {"one:1": (1, 2)}


@pytest.mark.parametrize(
    ("before", "after", "rise"),
    [
        (WORDS * (2**32 - 10), WORDS * 90, WORDS * 100),  # 32 bits of words that wrapped
        (2**32 - 10, 400, 400),  # where bytes would wrap a port does not: it began again
        (WORDS * 2**40, 8, 8),
        (1000, 5000, 4000),
    ],
)
def test_ports_wrap_in_words(before: int, after: int, rise: int) -> None:
    assert counters.delta({"mlx5_0:1": (before, 0)}, {"mlx5_0:1": (after, 0)}) == {"mlx5_0:1": (rise, 0)}


def test_a_roce_port_and_its_interface_are_not_one_path(tmp_path: Path) -> None:
    paths = counters.paths(trees.roce().write(tmp_path))
    assert paths["rocep94s0f0:1"] == {"rocep94s0f0:1"}
    assert paths["enp94s0f0"] == {"enp94s0f0", "enp94s0f0.7"}


def test_ip_over_a_port_counts_on_it_but_not_the_reverse(tmp_path: Path) -> None:
    paths = counters.paths(trees.infiniband().write(tmp_path / "ib"))
    assert (paths["ib0"], paths["mlx5_0:1"]) == ({"ib0", "mlx5_0:1"}, {"mlx5_0:1"})
    paths = counters.paths(trees.omni_path().write(tmp_path / "opa"))
    assert (paths["ibp130s0"], paths["hfi1_0:1"]) == ({"ibp130s0", "hfi1_0:1"}, {"hfi1_0:1"})
    paths = counters.paths(trees.slingshot().write(tmp_path / "cxi"))
    assert (paths["hsn0"], paths["cxi0"]) == ({"hsn0", "cxi0"}, {"cxi0"})


@pytest.mark.parametrize("build", [trees.infiniband, trees.roce, trees.eight_rails, trees.slingshot])
def test_paths_are_known_without_reading_a_counter(
    build: Callable[[], Tree], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, reads = build().write(tmp_path), list[Path]()
    read_text = Path.read_text
    monkeypatch.setattr(Path, "read_text", lambda path, **words: reads.append(path) or read_text(path, **words))
    paths = counters.paths(root)
    ports = set(rdma_counters.names(root))
    assert ports and ports <= set(paths)
    assert not [path for path in reads if path.parent.name in ("counters", "hw_counters", "telemetry", "statistics")]


def test_a_port_that_counts_nothing_has_a_path_of_its_own(tmp_path: Path) -> None:
    tree = Tree()
    tree.port(tree.rdma("mlx4_0", tree.pci("0000:5e:00.0", "15b3:1003", "mlx4_core")), words=None)
    assert counters.paths(tree.write(tmp_path)) == {"mlx4_0:1": {"mlx4_0:1"}}


def raise_counts(root: Path, device: str, sent: int) -> None:
    """``sent`` bytes out of ``device`` of the RoCE tree, and an answer of a hundredth."""
    if ":" in device:
        folder = root / "class/infiniband" / device.partition(":")[0] / "ports/1/counters"
        files = {"port_xmit_data": sent // WORDS, "port_rcv_data": sent // 100 // WORDS}
    else:
        folder, files = root / "class/net" / device / "statistics", {"tx_bytes": sent, "rx_bytes": sent // 100}
    for name, rise in files.items():
        (folder / name).write_text(f"{int((folder / name).read_text()) + rise}\n")


@pytest.mark.parametrize(
    ("kind", "device", "carried_by", "verdict", "named"),
    [
        ("roce", "rocep94s0f0:1", ("rocep94s0f0:1",), "proved", "rocep94s0f0:1 on h0 carried 88 MB of 88 MB"),
        ("roce", "rocep94s0f0:1", ("enp94s0f0",), "disproved", "enp94s0f0 on h0 rose 88 MB: another path"),
        ("tcp", "enp94s0f0", ("enp94s0f0",), "proved", "enp94s0f0 on h0 carried 88 MB of 88 MB"),
        ("tcp", "enp94s0f0", ("rocep94s0f0:1",), "disproved", "rocep94s0f0:1 on h0 rose 88 MB: another path"),
        ("roce", "rocep94s0f0:1", ("rocep94s0f0:1", "rocep94s0f1:1"), "disproved", "rocep94s0f1:1 on h0 rose 44 MB"),
    ],
)
def test_tcp_and_roce_on_one_nic_are_told_apart(
    kind: str, device: str, carried_by: tuple[str, ...], verdict: str, named: str, tmp_path: Path
) -> None:
    root = trees.roce().write(tmp_path)
    before = counters.read(root)
    for carrier in carried_by:
        raise_counts(root, carrier, 88 * MB // len(carried_by))
    rises = counters.delta(before, counters.read(root))
    fabric = Fabric.from_dict({"name": "f", "kind": kind, "hosts": ["h0", "h1"], "devices": {"h0": [device]}})
    quiet = {"h0": dict.fromkeys(rises, (0, 0))}
    proof = judge(fabric, {"h0": 88 * MB}, {}, {"h0": rises}, quiet, {"h0": counters.paths(root)})
    assert proof.verdict == verdict
    assert named in proof.detail


def test_tcp_over_infiniband_is_not_taken_for_striping(tmp_path: Path) -> None:
    root = trees.infiniband().write(tmp_path)
    before = counters.read(root)
    raise_counts(root, "ib0", 88 * MB)
    raise_counts(root, "mlx5_0:1", 90 * MB)  # the same bytes, with their headers
    rises = {"h0": counters.delta(before, counters.read(root))}
    quiet, paths = {"h0": dict.fromkeys(rises["h0"], (0, 0))}, {"h0": counters.paths(root)}
    over_ip = Fabric("ib0", "tcp", ("h0", "h1"), {"h0": ("ib0",)})
    assert judge(over_ip, {"h0": 88 * MB}, {}, rises, quiet, paths).verdict == "proved"
    verbs = Fabric("ib", "ib", ("h0", "h1"), {"h0": ("mlx5_0:1",)})
    proof = judge(verbs, {"h0": 88 * MB}, {}, rises, quiet, paths)
    assert (proof.verdict, "ib0 on h0 rose 88 MB" in proof.detail) == ("disproved", True)
