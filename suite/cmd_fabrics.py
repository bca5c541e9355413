"""``fabricbench fabrics``: what this host has to send through, the fabrics it makes, and each one's recipes.

``--json`` prints one object::

    {"fabrics":    [{Fabric's fields, "recipes": [{"backend", "flavour", "env", "reason"}]}],
     "interfaces": [{Interface's fields}],
     "rdma_ports": [{Port's fields}],
     "dpus":       [{Dpu's fields}]}

Fields are those of :class:`fabrics.model.Fabric`, :class:`fabrics.discovery.ethernet.Interface`,
:class:`fabrics.discovery.rdma.Port` and :class:`fabrics.discovery.dpu.Dpu`; a ``pci`` in them is
:class:`fabrics.discovery.pci.Pci` or null. Rates are bit/s, null where unknown; ``env`` is null where there is no
recipe, and ``reason`` says why; an empty ``unusable`` or ``reason`` means usable. Interfaces and ports that no fabric
is made of are listed too. What is said of RDMA and DPUs is not verified on hardware.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from tabulate import tabulate

from fabrics.discover import Survey, fabrics_of, survey
from fabrics.discovery.dpu import Dpu
from fabrics.discovery.ethernet import Interface
from fabrics.discovery.pci import Pci
from fabrics.discovery.rdma import Port
from fabrics.lab import cluster
from fabrics.lab.config import DEFAULT_NAME, format_rate
from fabrics.model import Fabric
from fabrics.recipes import BACKENDS, NoRecipe, recipe


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "fabrics",
        help="the fabrics here, usable or why not, and each one's recipe",
        description="List the ways for bytes to travel between ranks, the interfaces, RDMA ports and DPUs of this "
        "host, and the environment that makes a library use each fabric.",
        epilog="example: fabricbench fabrics --json",
    )
    parser.add_argument("--lab", metavar="NAME", help=f"a lab that is up (default: {DEFAULT_NAME}, if it is)")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the fabrics; raises UserError for a lab that is not up."""
    found = survey()
    fabrics = fabrics_of(found, _lab(args.lab))
    print(json.dumps(as_json(found, fabrics), indent=1) if args.json else as_text(found, fabrics))
    return 0


def _lab(name: str | None) -> cluster.Lab | None:
    return cluster.find() if name is None else cluster.load(name)


def as_json(found: Survey, fabrics: Sequence[Fabric]) -> dict[str, Any]:
    """The object that ``--json`` prints."""
    return {
        "fabrics": [{**fabric.as_dict(), "recipes": _recipes(fabric)} for fabric in fabrics],
        "interfaces": [asdict(each) for each in found.interfaces],
        "rdma_ports": [asdict(each) for each in found.ports],
        "dpus": [asdict(each) for each in found.dpus],
    }


def as_text(found: Survey, fabrics: Sequence[Fabric]) -> str:
    """Tables of fabrics, interfaces, RDMA ports, DPUs and recipes; one that would be empty is left out."""
    tables: list[tuple[str, Sequence[str], Sequence[Sequence[str]]]] = [
        ("", _FABRICS, [_fabric_row(fabric) for fabric in fabrics]),
        ("Interfaces", _INTERFACES, [_interface_row(each) for each in found.interfaces]),
        ("RDMA ports (not verified on hardware)", _PORTS, [_port_row(each) for each in found.ports]),
        ("DPUs (not verified on hardware)", _DPUS, [_dpu_row(each) for each in found.dpus]),
        ("", ("fabric", "library", "recipe"), [row for fabric in fabrics for row in _recipe_rows(fabric)]),
    ]
    return "\n\n".join(_table(title, headers, rows) for title, headers, rows in tables if rows)


def _table(title: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    table = tabulate(rows, headers, disable_numparse=True)
    return f"{title}\n{table}" if title else table


_FABRICS = ("fabric", "kind", "hosts", "devices", "rate", "emulated", "usable", "note")
_INTERFACES = ("interface", "kind", "state", "rate", "MTU", "driver", "addresses", "over", "NUMA", "PCIe", "offered")
_PORTS = (
    "port", "kind", "state", "rate", "link layer", "board", "firmware", "driver", "interface", "counters", "NUMA",
    "PCIe", "offered", "notes",
)  # fmt: skip
_DPUS = ("DPU", "here", "parent", "functions", "interfaces", "RDMA ports", "notes")


def _rate(rate_bits_per_s: float | None) -> str:
    return "" if rate_bits_per_s is None else format_rate(rate_bits_per_s)


def _fabric_row(fabric: Fabric) -> tuple[str, ...]:
    devices = dict.fromkeys("+".join(names) for names in fabric.devices.values())
    rate, emulated = _rate(fabric.rate_bits_per_s), "EMULATED" if fabric.emulated else ""
    usable = fabric.unusable or "yes"
    return fabric.name, fabric.kind, " ".join(fabric.hosts), " ".join(devices), rate, emulated, usable, fabric.note


def _pci(function: Pci | None) -> tuple[str, str]:
    """The NUMA node and the link; of a degraded one also what the device could."""
    if function is None:
        return "", ""
    node = "" if function.numa_node is None else str(function.numa_node)
    return node, function.degraded.removeprefix("PCIe ") or function.link


def _interface_row(each: Interface) -> tuple[str, ...]:
    return (
        each.name,
        each.kind,
        each.state,
        _rate(each.speed_bits_per_s),
        "" if each.mtu is None else str(each.mtu),
        each.driver,
        " ".join(each.addresses),
        " ".join(each.below),
        *_pci(each.pci),
        each.reason or "yes",
    )


def _port_row(each: Port) -> tuple[str, ...]:
    state = f"{each.state} ({each.physical_state})" if each.physical_state else each.state
    return (
        each.name,
        each.kind,
        state,
        _rate(each.rate_bits_per_s),
        each.link_layer,
        each.board,
        each.firmware,
        each.driver,
        each.interface,
        each.counters or "none",
        *_pci(each.pci),
        each.reason or "yes",
        "; ".join(each.notes),
    )


def _dpu_row(each: Dpu) -> tuple[str, ...]:
    lists: Iterable[Sequence[str]] = (each.functions, each.interfaces, each.ports)
    columns = (" ".join(names) for names in lists)
    return each.model, "yes" if each.here else "no", each.parent or "unknown", *columns, "; ".join(each.notes)


def _recipes(fabric: Fabric) -> list[dict[str, Any]]:
    """One for each library: its environment, or why there is none."""
    rows: list[dict[str, Any]] = []
    for backend in BACKENDS:
        try:
            found = recipe(fabric, backend)
        except NoRecipe as error:
            rows.append({"backend": backend, "flavour": "pure", "env": None, "reason": str(error)})
        else:
            rows.append({"backend": backend, "flavour": found.flavour, "env": dict(found.env), "reason": ""})
    return rows


def _recipe_rows(fabric: Fabric) -> list[tuple[str, str, str]]:
    rows = []
    for row in _recipes(fabric):
        words = " ".join(f"{name}={value}" for name, value in (row["env"] or {}).items())
        rows.append((fabric.name, row["backend"], words or f"none: {row['reason']}"))
    return rows
