"""The hosts that a run names: how they are reached, and which fabrics join them."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from fabrics import definition, hosts
from fabrics.definition import Definition
from fabrics.errors import CannotRun, UserError
from fabrics.hosts import Host
from fabrics.model import Fabric
from suite import launch
from suite.launch import agent
from suite.survey import Start, Survey, survey

SSH_VARIABLE = "FABRICBENCH_SSH"


@dataclass(frozen=True)
class Site:
    """Hosts and their DPUs; ``allocation`` says that Slurm gave them, ``definitions`` which fabrics join them."""

    hosts: tuple[Host, ...]
    dpus: tuple[Host, ...]
    definitions: tuple[Definition, ...]
    allocation: bool = False

    @property
    def members(self) -> tuple[Host, ...]:
        """Hosts, then DPUs."""
        return self.hosts + self.dpus

    @property
    def slots(self) -> dict[str, int]:
        """How many ranks each host or DPU takes."""
        return {host.name: host.ranks for host in self.members}

    @property
    def beside(self) -> dict[str, str]:
        """The DPU of each host that has one."""
        return {host.name: host.dpu for host in self.hosts if host.dpu}


def named(file: Path | None, fabrics: Path | None, environment: Mapping[str, str] = os.environ) -> Site | None:
    """The hosts of a file, or of Slurm's allocation where fabrics are named for it; None for this machine alone.

    UserError where hosts are named without fabrics, or fabrics without hosts.
    """
    allocated = hosts.allocation(environment)
    if file is None and fabrics is None:
        return None
    if fabrics is None:
        raise UserError("--hosts names hosts: say with --fabrics FILE which devices join them")
    if file is None and allocated is None:
        raise UserError("--fabrics joins hosts: name them with --hosts FILE, or run inside an allocation of Slurm's")
    members = hosts.read(file) if file is not None else allocated or ()
    return Site(*hosts.split(members), definition.read(fabrics), allocated is not None)


def python_of(folder: Path | None, elsewhere: bool = True) -> str:
    """The Python of an environment that hosts have on disks of their own; UserError where its folder is none.

    It need not be on this machine where ranks run ``elsewhere``.
    """
    if folder is None:
        return ""
    if not folder.is_absolute():
        raise UserError(f"--env-dir {folder}: give the whole path, which is the same on every host")
    python = folder / "bin" / "python"
    if (folder.exists() or not elsewhere) and not os.access(python, os.X_OK):
        raise UserError(f"--env-dir {folder}: there is no bin/python in it")
    return str(python)


def access(site: Site, launcher: launch.Launcher, folder: Path, ssh: str = "", python: str = "") -> launch.Access:
    """How ``launcher`` reaches the hosts of a site; ``folder`` is this run's for a while.

    ``ssh`` names what stands in for ssh, with its options, as ``FABRICBENCH_SSH`` does. UserError for lines of the
    hosts file that the launcher cannot follow.
    """
    pythons = {host.name: host.python for host in site.members if host.python}
    if launcher.family == "slurm" or (site.allocation and not ssh):
        _check_slurm(site, launcher)
        return launch.Access(allocation=True, python=python, pythons=pythons, scratch=str(folder))
    words = shlex.split(ssh or os.environ.get(SSH_VARIABLE, "")) or ["ssh"]
    script = agent.write(folder, agent.table(site.members, words, launcher.path))
    return launch.Access(agent=str(script), python=python, pythons=pythons, scratch=str(folder))


def _check_slurm(site: Site, launcher: launch.Launcher) -> None:
    """Slurm starts its daemons and steps itself."""
    by_ssh = {"user": "user", "port": "port", "mpi_prefix": "mpi"}
    for host in site.members:
        for attribute, key in by_ssh.items():
            if getattr(host, attribute):
                raise UserError(
                    f"host {host.name}: {key}= is for ssh, and Slurm starts the ranks: leave it out, or give --ssh ssh"
                )
    pythons = {host.python for host in site.members}
    if launcher.family == "slurm" and len(pythons) > 1:
        raise UserError("srun starts one program on all hosts: give every host the same python=, or --launcher mpiexec")


def start(launcher: launch.Launcher, way: launch.Access) -> Start:
    """What starts a plain program once on each of some hosts."""
    given = launch.passed(allocation=way.allocation)
    return partial(_started, launcher, way, given)


def _started(
    launcher: launch.Launcher, way: launch.Access, env: Mapping[str, str], names: Sequence[str], program: Sequence[str]
) -> list[str]:
    return launch.job_command(launcher, names, program, env, way)


def fabrics(site: Site, starter: Start) -> list[Fabric]:
    """Shared memory and loopback of the first host, and the fabrics that are defined, unusable or not.

    All hosts are asked who they are, for what joins hosts of one machine is emulated, and for their addresses, by which
    definitions may find devices. One that does not answer is told here where its addresses are needed, and else when
    the routes are tried.
    """
    first = site.hosts[0].name
    found = survey(starter, [host.name for host in site.members])
    if any(each.networks for each in site.definitions):
        for why in found.silent.values():
            print(f"fabricbench: {why}", file=sys.stderr)
        if not found.addresses:
            raise CannotRun(f"no host answers: {next(iter(found.silent.values()), 'none is named')}")
    return [
        Fabric("shm", "shm", (first,), note="shared memory between ranks of one host"),
        Fabric("tcp-lo", "tcp", (first,), {first: ("lo",)}, note="TCP over the loopback interface"),
        *(_marked(_fabric(site, each, found), found) for each in site.definitions),
    ]


def _marked(fabric: Fabric, found: Survey) -> Fabric:
    """The fabric, emulated where some of its hosts or DPUs are one machine."""
    why = found.one_machine((*fabric.hosts, *(host for host in fabric.devices if host not in fabric.hosts)))
    return replace(fabric, emulated=True, note="; ".join(filter(None, (fabric.note, why)))) if why else fabric


def _fabric(site: Site, defined: Definition, found: Survey) -> Fabric:
    """A fabric with its DPUs, where they all have devices of it, and else without them."""
    names = _on(defined, site.hosts)
    dpus = _on(defined, site.dpus)
    if not names:
        return Fabric(defined.name, defined.kind, (), unusable="none of the hosts is among those that it names")
    alone = definition.fabric(defined, names, found.addresses)
    told = [found.silent[host] for host in names if defined.networks and host in found.silent]
    alone = replace(alone, unusable="; ".join(told)) if told else alone
    whole = definition.fabric(defined, [*names, *dpus], found.addresses)
    return replace(whole, hosts=alone.hosts) if dpus and whole.usable else alone


def _on(defined: Definition, members: Sequence[Host]) -> list[str]:
    """Those of the hosts that a definition is for: all, or the ones it names where it names no devices for others."""
    for_all = defined.devices or defined.networks
    return [host.name for host in members if for_all or host.name in defined.by_host]
