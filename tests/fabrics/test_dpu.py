"""DPUs in planted trees: a card in its host, and the card itself."""

from __future__ import annotations

from pathlib import Path

from fabrics.discover import survey
from fabrics.discovery.dpu import Dpu, dpus
from tests.fabrics import trees
from tests.fabrics.trees import Tree


def found(tree: Tree, root: Path) -> list[Dpu]:
    seen = survey(tree.write(root), tree.addresses)
    return dpus(root, "n1", seen.interfaces, seen.ports)


def test_a_card_in_its_host(tmp_path: Path) -> None:
    assert found(trees.bluefield_in_its_host(), tmp_path) == [
        Dpu(
            model="BlueField-2",
            here=False,
            parent="n1",
            functions=("0000:03:00.0", "0000:03:00.1"),
            interfaces=("enp3s0f0np0", "enp3s0f1np1"),
            ports=("mlx5_0:1", "mlx5_1:1"),
            notes=(
                "whether its cores run a system of their own cannot be seen from here",
                "console network tmfifo_net0",
            ),
        )
    ]


def test_two_cards_of_two_generations(tmp_path: Path) -> None:
    tree = trees.bluefield_in_its_host()
    tree.pci("0000:83:00.0", "15b3:a2dc", "mlx5_core")
    assert [(dpu.model, dpu.functions[0]) for dpu in found(tree, tmp_path)] == [
        ("BlueField-2", "0000:03:00.0"),
        ("BlueField-3", "0000:83:00.0"),
    ]


def test_on_the_card_itself(tmp_path: Path) -> None:
    dpu, *others = found(trees.bluefield_itself(), tmp_path)
    assert (dpu.model, dpu.here, dpu.parent, others) == ("BlueField-2", True, "", [])
    assert (dpu.functions, dpu.interfaces) == (("0000:03:00.0",), ("p0", "pf0hpf"))
    assert "its host cannot be seen from here: name it in the hosts file (dpu=)" in dpu.notes[0]
    assert dpu.notes[1] == "the host's functions reach the network through its switch (pf0hpf)"


def test_a_card_known_by_its_device_tree_alone(tmp_path: Path) -> None:
    tree = Tree()
    tree.put("firmware/devicetree/base", model="NVIDIA BlueField-3 DPU\0")
    assert [(dpu.model, dpu.here) for dpu in found(tree, tmp_path)] == [("NVIDIA BlueField-3 DPU", True)]


def test_a_plain_nic_of_the_same_maker_is_no_dpu(tmp_path: Path) -> None:
    assert found(trees.infiniband(), tmp_path) == []
