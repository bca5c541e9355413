"""DPUs: BlueField cards in this host, or the one that this system runs on. Not verified on hardware.

A card is known by the PCI ids of its network functions, which are the same on both sides; that this system is the
card's own by what its firmware or device tree calls the machine ("BlueField SoC", "BlueField-3 ...").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabrics import sysfs
from fabrics.discovery import pci
from fabrics.discovery.ethernet import Interface
from fabrics.discovery.rdma import Port

_MACHINE = ("product_name", "product_family", "board_name")
_VENDOR = "0x15b3"  # NVIDIA, once Mellanox


@dataclass(frozen=True)
class Dpu:
    """A DPU.

    ``functions`` are its PCI functions as seen from here, ``interfaces`` and ``ports`` theirs. ``here`` tells
    that this system runs on it. ``parent`` is the host whose card it is, empty where that cannot be known from here.
    """

    model: str
    here: bool
    parent: str
    functions: tuple[str, ...]
    interfaces: tuple[str, ...]
    ports: tuple[str, ...]
    notes: tuple[str, ...] = ()


def dpus(root: Path, host: str, interfaces: Sequence[Interface], ports: Sequence[Port]) -> list[Dpu]:
    """The DPUs in this host, or the one that this system is."""
    machine = _machine(root)
    cards = _cards(root)
    if machine:
        functions = tuple(function.address for card in cards for function in card)
        model = cards[0][0].model if cards else machine
        return [_dpu(model, functions, interfaces, ports, here=True)]
    return [
        _dpu(card[0].model, tuple(function.address for function in card), interfaces, ports, parent=host)
        for card in cards
    ]


def _machine(root: Path) -> str:
    """What this system calls itself where that is a BlueField, else nothing."""
    names = [sysfs.text(root / "class/dmi/id" / file) for file in _MACHINE]
    names.append(sysfs.text(root / "firmware/devicetree/base/model"))
    return next((name for name in names if "bluefield" in name.lower()), "")


def _cards(root: Path) -> list[list[pci.Pci]]:
    """BlueField functions, those of one card together: they share all of their address but the last digit."""
    cards: dict[str, list[pci.Pci]] = {}
    for function in _bluefields(root):
        cards.setdefault(function.address.rpartition(".")[0], []).append(function)
    return list(cards.values())


def _bluefields(root: Path) -> Iterator[pci.Pci]:
    for folder in sysfs.folders(root / "bus/pci/devices"):
        mine = sysfs.text(folder / "vendor") == _VENDOR
        if mine and pci.MODELS.get(pci.identity(folder), "").startswith("BlueField"):
            yield pci.read(folder)


def _dpu(
    model: str,
    functions: tuple[str, ...],
    interfaces: Sequence[Interface],
    ports: Sequence[Port],
    *,
    here: bool = False,
    parent: str = "",
) -> Dpu:
    own = [each for each in interfaces if each.pci is not None and each.pci.address in functions]
    hosts = [each.name for each in own if each.kind == "representor" and each.name.endswith("hpf")]
    consoles = [each.name for each in interfaces if each.name.startswith("tmfifo_net")]
    return Dpu(
        model=model,
        here=here,
        parent=parent,
        functions=functions,
        interfaces=tuple(each.name for each in own),
        ports=tuple(each.name for each in ports if each.pci is not None and each.pci.address in functions),
        notes=tuple(_notes(here, hosts, consoles)),
    )


def _notes(here: bool, hosts: Sequence[str], consoles: Sequence[str]) -> Iterator[str]:
    if here:
        yield "this system runs on it; its host cannot be seen from here: name it in the hosts file (dpu=)"
    else:
        yield "whether its cores run a system of their own cannot be seen from here"
    if hosts:
        yield f"the host's functions reach the network through its switch ({', '.join(hosts)})"
    if consoles:
        yield f"console network {', '.join(consoles)}"
