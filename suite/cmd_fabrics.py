"""``fabricbench fabrics``: the fabrics here, usable or why not, and each one's recipes."""

from __future__ import annotations

import argparse
import json
from typing import Any

from tabulate import tabulate

from fabrics.discover import discover
from fabrics.lab import cluster
from fabrics.lab.config import DEFAULT_NAME, format_rate
from fabrics.model import Fabric
from fabrics.recipes import BACKENDS, NoRecipe, recipe


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "fabrics",
        help="the fabrics here, usable or why not, and each one's recipe",
        description="List the ways for bytes to travel between ranks, and the environment that makes a library "
        "use each of them.",
        epilog="example: fabricbench fabrics --json",
    )
    parser.add_argument("--lab", metavar="NAME", help=f"a lab that is up (default: {DEFAULT_NAME}, if it is)")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the fabrics; raises UserError for a lab that is not up."""
    fabrics = discover(_lab(args.lab))
    if args.json:
        print(json.dumps([{**fabric.as_dict(), "recipes": _recipes(fabric)} for fabric in fabrics], indent=1))
    else:
        print(tabulate([_row(fabric) for fabric in fabrics], _HEADERS, disable_numparse=True))
        print()
        print(tabulate([row for fabric in fabrics for row in _recipe_rows(fabric)], ("fabric", "library", "recipe")))
    return 0


_HEADERS = ("fabric", "kind", "hosts", "devices", "rate", "emulated", "usable", "note")


def _lab(name: str | None) -> cluster.Lab | None:
    return cluster.find() if name is None else cluster.load(name)


def _row(fabric: Fabric) -> tuple[str, ...]:
    devices = dict.fromkeys("+".join(names) for names in fabric.devices.values())
    rate = "" if fabric.rate_bits_per_s is None else format_rate(fabric.rate_bits_per_s)
    emulated = "EMULATED" if fabric.emulated else ""
    usable = fabric.unusable or "yes"
    return fabric.name, fabric.kind, " ".join(fabric.hosts), " ".join(devices), rate, emulated, usable, fabric.note


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
