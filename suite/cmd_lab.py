"""``fabricbench lab``: the emulated cluster, made, shown, entered, shaped and removed."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from tabulate import tabulate

from fabrics.errors import UserError
from fabrics.lab import cluster
from fabrics.lab.config import (
    DEFAULT_FABRICS,
    DEFAULT_NAME,
    LabConfig,
    format_rate,
    parse_fabric,
    parse_rate,
)

_EPILOG = """\
examples:
  fabricbench lab up                                   two hosts, two DPUs, eth2g5 and eth10g
  fabricbench lab up --no-dpus --fabric eth1g:1gbit
  fabricbench lab exec h0 ping -c 1 h1-eth10g
  fabricbench lab shape eth10g 200mbit --host h1       a slow link, both ways
  fabricbench lab down
"""
_UNSHAPED = "none"
Subparsers = argparse._SubParsersAction  # it has no public name


def add(subparsers: Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command, with its own commands, to the command line."""
    parser = subparsers.add_parser(
        "lab",
        help="the emulated cluster on this machine",
        description="An emulated cluster in Linux namespaces: hosts and DPUs joined by shaped Ethernet. "
        "Needs root and the package iproute2.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add_up(actions)
    _add_down(actions)
    _add_status(actions)
    _add_exec(actions)
    _add_shape(actions)


def run(args: argparse.Namespace) -> int:
    """Do the chosen action; the exit code. Raises UserError or CannotRun."""
    return int(args.act(args))


def _action(
    actions: Subparsers[argparse.ArgumentParser],
    act: Callable[[argparse.Namespace], int],
    name: str,
    summary: str,
    example: str,
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=summary, description=summary, epilog=f"example: fabricbench lab {example}")
    parser.add_argument("--name", default=DEFAULT_NAME, help="the lab's name (default: %(default)s)")
    parser.set_defaults(act=act)
    return parser


def _add_up(actions: Subparsers[argparse.ArgumentParser]) -> None:
    summary = "make the lab; one that is up just so is kept, another of the name is replaced"
    parser = _action(actions, _up, "up", summary, "up --fabric eth1g:1gbit")
    parser.add_argument("--nodes", type=int, default=LabConfig.nodes, help="hosts (default: %(default)s)")
    parser.add_argument("--no-dpus", action="store_true", help="hosts alone")
    fabrics = " ".join(f"{f.name}:{(f.rate_bits_per_s or 0) / 1e9:g}gbit" for f in DEFAULT_FABRICS)
    parser.add_argument(
        "--fabric",
        action="append",
        metavar="NAME:RATE",
        help=f"a fabric; again for another (default: {fabrics})",
    )


def _up(args: argparse.Namespace) -> int:
    fabrics = tuple(map(parse_fabric, args.fabric)) if args.fabric else DEFAULT_FABRICS
    lab = cluster.up(LabConfig(args.name, args.nodes, not args.no_dpus, fabrics))
    print(f"lab {lab.name}: {', '.join(lab.config.members)} on {', '.join(lab.rates)}", file=sys.stderr)
    return 0


def _add_down(actions: Subparsers[argparse.ArgumentParser]) -> None:
    summary = "remove the lab, whatever its state, and end what runs in it"
    parser = _action(actions, _down, "down", summary, "down --all")
    parser.add_argument("--all", action="store_true", help="every lab here")


def _down(args: argparse.Namespace) -> int:
    names = [status.name for status in cluster.status()] if args.all else [args.name]
    for name in names:
        removed = cluster.down(name)
        print(f"lab {name}: {'removed' if removed else 'was not there'}", file=sys.stderr)
    return 0


def _add_status(actions: Subparsers[argparse.ArgumentParser]) -> None:
    summary = "show every lab here"
    parser = actions.add_parser("status", help=summary, description=summary, epilog="example: fabricbench lab status")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(act=_status)


def _status(args: argparse.Namespace) -> int:
    labs = cluster.status()
    if args.json:
        print(json.dumps([_as_dict(status) for status in labs], indent=1))
    elif labs:
        headers = ("lab", "state", "hosts and DPUs", "fabrics", "processes")
        print(tabulate([_row(status) for status in labs], headers))
    else:
        print("no lab is up: fabricbench lab up", file=sys.stderr)
    return 0


def _as_dict(status: cluster.LabStatus) -> dict[str, Any]:
    lab = status.lab
    about = {"config": lab.config.as_dict(), "rates_bits_per_s": lab.rates} if lab else {}
    return {"name": status.name, "up": lab is not None, "processes": status.processes, **about}


def _row(status: cluster.LabStatus) -> tuple[str, ...]:
    lab = status.lab
    if lab is None:
        return status.name, "half made", "", "", str(status.processes)
    fabrics = [f"{fabric} {_rates(by_host)}" for fabric, by_host in lab.rates.items()]
    return lab.name, "up", " ".join(lab.config.members), "; ".join(fabrics), str(status.processes)


def _rates(by_host: Any) -> str:
    words = {host: "unshaped" if rate is None else format_rate(rate) for host, rate in by_host.items()}
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return ", ".join(f"{host} {word}" for host, word in words.items())


def _add_exec(actions: Subparsers[argparse.ArgumentParser]) -> None:
    parser = _action(actions, _exec, "exec", "run a command in a host or DPU", "exec h0 ping -c 1 h1-eth10g")
    parser.add_argument("host", metavar="HOST", help="h0, h1, ... or d0, d1, ...")
    parser.add_argument("command", metavar="CMD", nargs=argparse.REMAINDER, help="the command and its arguments")


def _exec(args: argparse.Namespace) -> int:
    if not args.command:
        raise UserError("lab exec: a command is needed after the host")
    cluster.need_root()
    words = cluster.load(args.name).enter(args.host, args.command)
    sys.stdout.flush()
    os.execv(words[0], words)  # noqa: S606 - the command's own exit code and signals are then ours


def _add_shape(actions: Subparsers[argparse.ArgumentParser]) -> None:
    summary = "change the rate of a fabric, or of one host's uplink, both ways"
    parser = _action(actions, _shape, "shape", summary, "shape eth10g 200mbit --host h1")
    parser.add_argument("fabric", metavar="FABRIC", help="a fabric of the lab")
    parser.add_argument("rate", metavar="RATE", help=f"such as 2.5gbit or 200mbit; {_UNSHAPED}: as fast as it goes")
    parser.add_argument("--host", help="this host's uplink alone")


def _shape(args: argparse.Namespace) -> int:
    rate = None if args.rate == _UNSHAPED else parse_rate(args.rate)
    lab = cluster.shape(cluster.load(args.name), args.fabric, rate, args.host)
    print(f"lab {lab.name}: {args.fabric} {_rates(lab.rates[args.fabric])}", file=sys.stderr)
    return 0
