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
    parse_percent,
    parse_rate,
    parse_speed,
)
from fabrics.lab.words import by_member, quotas, shares
from suite import labspeed

_EPILOG = """\
examples:
  fabricbench lab up                                   two hosts, two DPUs, eth2g5 and eth10g
  fabricbench lab up --no-dpus --fabric eth1g:1gbit
  fabricbench lab exec h0 ping -c 1 h1-eth10g
  fabricbench lab up --slurm                           a Slurm cluster: lab exec h0 srun -N 2 hostname
  fabricbench lab shape eth10g 200mbit --host h1       a slow link, both ways
  fabricbench lab shape eth10g --loss 0.5% --host h1   what arrives at h1 is lost now and then
  fabricbench lab shape --cpu 25% --host d0            a DPU with a share of a core
  fabricbench lab speed 25% --host d0                  a slow DPU: the share under which its work is a quarter as fast
  fabricbench lab down
"""
_NONE = "none"
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
    _add_speed(actions)


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
    parser.add_argument(
        "--shared-identity",
        action="store_true",
        help="host and DPU share boot id, /dev/shm and IPC, as CMA and shared windows between them need",
    )
    parser.add_argument(
        "--slurm", action="store_true", help="the hosts are a Slurm cluster (packages slurm-wlm, munge)"
    )
    fabrics = " ".join(f"{f.name}:{(f.rate_bits_per_s or 0) / 1e9:g}gbit" for f in DEFAULT_FABRICS)
    parser.add_argument(
        "--fabric",
        action="append",
        metavar="NAME:RATE",
        help=f"a fabric; again for another (default: {fabrics})",
    )


def _up(args: argparse.Namespace) -> int:
    fabrics = tuple(map(parse_fabric, args.fabric)) if args.fabric else DEFAULT_FABRICS
    config = LabConfig(
        cluster.check_not_own(args.name),
        args.nodes,
        not args.no_dpus,
        fabrics,
        shared_identity=args.shared_identity,
        slurm=args.slurm,
    )
    lab = cluster.up(config)
    slurm = ", with Slurm" if config.slurm else ""
    print(f"lab {lab.name}: {', '.join(config.members)} on {', '.join(lab.rates)}{slurm}", file=sys.stderr)
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
        headers = ("lab", "state", "hosts and DPUs", "fabrics", "also", "processes")
        print(tabulate([_row(status) for status in labs], headers))
    else:
        print("no lab is up: fabricbench lab up", file=sys.stderr)
    for status in labs:
        if status.orphan:
            print(
                f"lab {status.name} is an orphan: its run has ended, and the next run as root removes it;"
                f" now: fabricbench lab down --name {status.name}",
                file=sys.stderr,
            )
    return 0


def _as_dict(status: cluster.LabStatus) -> dict[str, Any]:
    lab = status.lab
    told = {"name": status.name, "up": lab is not None, "processes": status.processes, "orphan": status.orphan}
    if lab is None:
        return told
    held = {"rates_bits_per_s": lab.rates, "loss": lab.loss, "cpu_cores": lab.cpus, "speeds": lab.speeds}
    return {**told, "config": lab.config.as_dict(), **held, "slurm_absent": list(status.absent)}


def _row(status: cluster.LabStatus) -> tuple[str, ...]:
    lab = status.lab
    orphan = ", orphan" if status.orphan else ""
    if lab is None:
        return status.name, f"half made{orphan}", "", "", "", str(status.processes)
    fabrics = "; ".join(_fabric(lab, fabric) for fabric in lab.rates)
    members = " ".join(lab.config.members)
    return lab.name, f"up{orphan}", members, fabrics, _also(status, lab), str(status.processes)


def _fabric(lab: cluster.Lab, fabric: str) -> str:
    words = {host: "unshaped" if rate is None else format_rate(rate) for host, rate in lab.rates[fabric].items()}
    loss = lab.loss.get(fabric)
    return f"{fabric} {by_member(words, lab.hosts)}" + (f", loss {shares(loss, lab.config)}" if loss else "")


def _also(status: cluster.LabStatus, lab: cluster.Lab) -> str:
    """What a lab is beside its hosts and fabrics."""
    words = [f"CPU {_quotas(lab)}"] if lab.cpus else []
    words += ["host and DPU share identity"] if lab.config.shared_identity else []
    if lab.config.slurm:
        words.append(f"Slurm without {', '.join(status.absent)}" if status.absent else "Slurm")
    return "; ".join(words)


def _quotas(lab: cluster.Lab) -> str:
    return quotas(lab.cpus, lab.speeds, lab.config)


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
    summary = "change a fabric's rate (both ways) or loss, or the cores that hosts have; of all or of one host"
    parser = _action(actions, _shape, "shape", summary, "shape eth10g 200mbit --host h1")
    rate = f"such as 2.5gbit or 200mbit; {_NONE}: as fast as it goes"
    loss = f"percentage of the packets from FABRIC that are dropped on arrival, such as 0.5%%; {_NONE}: none is"
    cpu = f"percentage of one core, in periods of 10 ms, from 10%% on; {_NONE}: no quota"
    parser.add_argument("fabric", metavar="FABRIC", nargs="?", help="a fabric of the lab, for a rate or a loss")
    parser.add_argument("rate", metavar="RATE", nargs="?", help=rate)
    parser.add_argument("--loss", metavar="PERCENT", help=loss)
    parser.add_argument("--cpu", metavar="PERCENT", help=cpu)
    parser.add_argument("--host", help="this host alone: its uplink's rate; what it or a DPU loses, or has of the CPU")


def _shape(args: argparse.Namespace) -> int:
    lab = cluster.load(args.name)
    for change in _changes(args):  # all of them are understood before the first is made
        lab = change(lab)
    told = [_fabric(lab, args.fabric)] if args.fabric else []
    told += [f"CPU {_quotas(lab) or 'without quota'}"] if args.cpu else []
    print(f"lab {lab.name}: {'; '.join(told)}", file=sys.stderr)
    return 0


def _changes(args: argparse.Namespace) -> list[Callable[[cluster.Lab], cluster.Lab]]:
    if args.fabric is None and args.loss:
        raise UserError("lab shape: --loss needs a fabric, such as lab shape eth10g --loss 0.5%")
    if args.fabric and args.rate is None and args.loss is None:
        raise UserError(f"lab shape: fabric {args.fabric} needs a rate or --loss; --cpu goes without a fabric")
    if args.fabric is None and args.cpu is None:
        raise UserError("lab shape: what to change is needed: FABRIC RATE, FABRIC --loss PERCENT or --cpu PERCENT")
    changes: list[Callable[[cluster.Lab], cluster.Lab]] = []
    if args.rate is not None:
        rate = None if args.rate == _NONE else parse_rate(args.rate)
        changes.append(lambda lab: cluster.shape(lab, args.fabric, rate, args.host))
    if args.loss is not None:
        share = 0.0 if args.loss == _NONE else parse_percent(args.loss, "loss")
        changes.append(lambda lab: cluster.lose(lab, args.fabric, share, args.host))
    if args.cpu is not None:
        cores = None if args.cpu == _NONE else parse_percent(args.cpu, "CPU share")
        changes.append(lambda lab: cluster.limit_cpu(lab, cores, args.host))
    return changes


def _add_speed(actions: Subparsers[argparse.ArgumentParser]) -> None:
    summary = "slow DPUs or a host down: the CPU quota under which fixed work is measured to go that fast"
    parser = _action(actions, _speed, "speed", summary, "speed 25% --host d0")
    share = f"fraction of the speed without a quota, such as 25%% or 0.25; {_NONE}: no quota"
    parser.add_argument("speed", metavar="SPEED", help=share)
    parser.add_argument("--host", help="this host or DPU alone (default: every DPU)")


def _speed(args: argparse.Namespace) -> int:
    lab = cluster.load(args.name)
    speed = None if args.speed == _NONE else parse_speed(args.speed)
    members = (args.host,) if args.host else lab.dpus
    if not members:
        raise UserError(f"lab {lab.name} has no DPUs: name a host with --host")
    for member in members:
        if speed is None:
            lab = cluster.limit_cpu(lab, None, member)
            told = f"lab {lab.name}: {member} without quota"
        else:
            lab, seen = labspeed.calibrate(lab, member, speed)
            told = labspeed.told(member, lab, seen)
        print(told, file=sys.stderr)
    return 0
