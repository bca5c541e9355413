"""``fabricbench fabrics``: what this host has to send through, the fabrics it makes, and each one's recipes.

``--json`` prints one object::

    {"fabrics":    [{Fabric's fields, "recipes": [{"backend", "flavour", "hosts", "local_ranks", "env", "reason",
                                                   "source", "verified"}]}],
     "interfaces": [{Interface's fields}],
     "rdma_ports": [{Port's fields}],
     "dpus":       [{Dpu's fields}]}

Fields are those of :class:`fabrics.model.Fabric`, :class:`fabrics.discovery.ethernet.Interface`,
:class:`fabrics.discovery.rdma.Port` and :class:`fabrics.discovery.dpu.Dpu`; a ``pci`` in them is
:class:`fabrics.discovery.pci.Pci` or null. Rates are bit/s, null where unknown; ``env`` is null where there is no
recipe, and ``reason`` says why; ``hosts`` and ``local_ranks`` name those that a recipe is for, empty where it is for
all; an empty ``unusable`` or ``reason`` means usable. Interfaces and ports that no fabric is made of are listed too.
What is said of RDMA and DPUs is not verified on hardware.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tabulate import tabulate

from fabrics import definition
from fabrics.definition import Definition
from fabrics.discover import Survey, by_names, fabrics_of, survey
from fabrics.discovery.dpu import Dpu
from fabrics.discovery.ethernet import Interface
from fabrics.discovery.offers import lacking
from fabrics.discovery.pci import Pci
from fabrics.discovery.rdma import Port
from fabrics.errors import CannotRun, UserError
from fabrics.lab import cluster
from fabrics.lab.config import DEFAULT_NAME, format_rate
from fabrics.model import RDMA, Fabric
from fabrics.recipes import FLAVOURS, LIBRARIES, TRANSPORTS
from suite import providers, recipetext
from suite.recipetext import Asked, recipes

_ELSEWHERE = "measured by fabricbench run --hosts FILE --fabrics FILE"


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "fabrics",
        help="the fabrics here, usable or why not, and each one's recipe",
        description="List the ways for bytes to travel between ranks, the interfaces, RDMA ports and DPUs of this "
        "host; with --recipe, the environment that makes a library use each fabric.",
        epilog="examples: fabricbench fabrics --json"
        "\n          fabricbench fabrics --recipe --fabric eth0 --backend openmpi --flavour job",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--fabric", action="append", metavar="F", help="only this fabric; may be given again")
    parser.add_argument(
        "--fabrics", type=Path, metavar="FILE", help="TOML that defines fabrics, listed before those that are found"
    )
    parser.add_argument("--lab", metavar="NAME", help=f"a lab that is up (default: {DEFAULT_NAME}, if it is)")
    parser.add_argument("--json", action="store_true", help="as JSON")
    _add_recipe(parser)
    parser.set_defaults(run=run)


def _add_recipe(parser: argparse.ArgumentParser) -> None:
    about = "Lines to copy into a shell, for jobs of your own; --json has them too."
    meanings = "; ".join(f"{name}: {meaning}" for name, meaning in recipetext.MEANING.items())
    wanted = parser.add_argument_group("recipes", about)
    wanted.add_argument("--recipe", action="store_true", help="print each fabric's recipes instead of the lists")
    wanted.add_argument(
        "--backend", action="append", choices=LIBRARIES, metavar="B",
        help=f"only this library; may be given again: {', '.join(LIBRARIES)}",
    )  # fmt: skip
    wanted.add_argument("--flavour", choices=FLAVOURS, default=FLAVOURS[0], help=f"{meanings} (default: %(default)s)")
    wanted.add_argument(
        "--transport", choices=TRANSPORTS, metavar="T",
        help=f"another than the usual one, of RDMA: {', '.join(TRANSPORTS)}",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Print the fabrics, or their recipes; raises UserError for a lab that is not up, a file or a name."""
    if not (args.recipe or args.json) and (args.backend or args.transport or args.flavour != FLAVOURS[0]):
        raise UserError("--backend, --flavour and --transport are for --recipe or --json: give one of them too")
    found = survey()
    fabrics = _fabrics(args, found)
    asked = Asked(tuple(dict.fromkeys(args.backend or LIBRARIES)), args.flavour, args.transport)
    if args.json:
        print(json.dumps(as_json(found, fabrics, asked), indent=1))
    else:
        print(recipetext.as_text(fabrics, asked) if args.recipe else as_text(found, fabrics))
    return 0


def _fabrics(args: argparse.Namespace, found: Survey) -> list[Fabric]:
    """Those of the file, and those of here that have other names; of these the ones asked for."""
    definitions = definition.read(args.fabrics) if args.fabrics else ()
    lab = cluster.find() if args.lab is None else cluster.load(args.lab)
    can = _providers([port.kind for port in found.ports] + [each.kind for each in definitions])
    ours = [_defined(each, found, can) for each in definitions]
    names = {fabric.name for fabric in ours}
    listed = [*ours, *(fabric for fabric in fabrics_of(found, lab, can) if fabric.name not in names)]
    return by_names(listed, args.fabric) if args.fabric else listed


def _providers(kinds: Iterable[str]) -> Collection[str] | None:
    """What the MPI library can drive, None where no RDMA asks for it or it is not known, which is told."""
    if not any(kind in RDMA for kind in kinds):
        return None
    try:
        return providers.here()
    except CannotRun as error:
        print(f"fabricbench: warning: whether the MPI library drives RDMA is not known: {error}", file=sys.stderr)
        return None


def _defined(own: Definition, found: Survey, can: Collection[str] | None) -> Fabric:
    """A fabric of the file, on the hosts that it names, and on this one where it is for all."""
    everywhere = [found.host] if own.devices or own.networks else []
    addresses = {found.host: {each.name: each.addresses for each in found.interfaces}}
    fabric = definition.fabric(own, list(dict.fromkeys([*everywhere, *own.by_host])), addresses)
    why = fabric.unusable or (lacking(fabric.kind, can) if fabric.rdma else "") or _ELSEWHERE
    return replace(fabric, unusable=why)


def as_json(found: Survey, fabrics: Sequence[Fabric], asked: Asked) -> dict[str, Any]:
    """The object that ``--json`` prints."""
    return {
        "fabrics": [
            {**fabric.as_dict(), "recipes": [told.as_dict() for told in recipes(fabric, asked)]} for fabric in fabrics
        ],
        "interfaces": [asdict(each) for each in found.interfaces],
        "rdma_ports": [asdict(each) for each in found.ports],
        "dpus": [asdict(each) for each in found.dpus],
    }


def as_text(found: Survey, fabrics: Sequence[Fabric]) -> str:
    """Tables of fabrics, interfaces, RDMA ports and DPUs; one that would be empty is left out."""
    tables: list[tuple[str, Sequence[str], Sequence[Sequence[str]]]] = [
        ("", _FABRICS, [_fabric_row(fabric) for fabric in fabrics]),
        ("Interfaces", _INTERFACES, [_interface_row(each) for each in found.interfaces]),
        ("RDMA ports (not verified on hardware)", _PORTS, [_port_row(each) for each in found.ports]),
        ("DPUs (not verified on hardware)", _DPUS, [_dpu_row(each) for each in found.dpus]),
    ]
    parts = [_table(title, headers, rows) for title, headers, rows in tables if rows]
    return "\n\n".join([*parts, "What makes a library use one: fabricbench fabrics --recipe --fabric F --backend B"])


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
