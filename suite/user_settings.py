"""A user's own settings in a job of the user's own: those that do not do what they say are told before MPI starts.

A run needs none of this: it takes all such variables away, and gives its recipes'.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from fabrics import sysfs
from fabrics.errors import UserError
from fabrics.recipes import settings
from microbench import mpi

_DEVICE = re.compile(r"MPICH Device:\s*ch4:(.+)")  # ucx ofi: the first is what it takes unless it is told
_OFI, _UCX = "mpich-ofi", "mpich-ucx"
_CHOSEN_BY_NAME = {"ucx": _UCX, "ofi": _OFI}
_OPENMPI = ("openmpi-ob1", "openmpi-ucx", "openmpi-ofi")  # which, it finds out by itself unless it is told


def check(environment: Mapping[str, str] = os.environ, root: Path = sysfs.SYS) -> None:
    """Warn of each setting that is not what it seems; UserError where one names a fabric that it does not lead to.

    Loads the MPI library where there is anything to check, and does not start it.
    """
    own = {name: value for name, value in environment.items() if settings.readers(name)}
    stacks = stacks_of(mpi.library_version(), own) if own else ()
    if not stacks:
        return
    here = devices(root)
    for line in findings(own, stacks, here):
        _warn(line)  # at once: the library may refuse them too, and end the job without another word
    if wrong := settings.elsewhere(own, stacks, here):
        raise UserError(
            f"the numbers would be of another fabric than the settings name: mend or unset {', '.join(wrong)}"
        )


def stacks_of(version: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """What the library may run on with these settings, by what it says of itself; empty where that is not known."""
    if "Open MPI" in version:
        chosen = settings.in_use("openmpi", environment)
        return (chosen,) if environment.get("OMPI_MCA_pml") else _OPENMPI
    if "Intel(R) MPI" in version:
        return ("impi-ofi",)
    built = netmods(version)
    wanted = environment.get("MPIR_CVAR_CH4_NETMOD") or (built[0] if built else "")
    return (_CHOSEN_BY_NAME[wanted],) if wanted in built and wanted in _CHOSEN_BY_NAME else ()


def netmods(version: str) -> list[str]:
    """The netmods that an MPICH or a relative was built with, the one that it takes by itself first; else none."""
    device = _DEVICE.search(version)
    return device[1].replace(",", " ").split() if device else []


def findings(environment: Mapping[str, str], stacks: Sequence[str], devices_here: Collection[str]) -> list[str]:
    """What is wrong, a line each: where a fabric is named in vain, and what all stacks find that may be run on."""
    wrong = settings.elsewhere(environment, stacks, devices_here)
    rest = {name: value for name, value in environment.items() if name not in wrong}
    first, *others = (settings.check_settings(rest, stack, devices_here) for stack in stacks)
    lines = [f"{name}={environment[name]}: {why}" for name, why in wrong.items()]
    return lines + [line for line in first if all(line in told for told in others)]


def devices(root: Path = sysfs.SYS) -> frozenset[str]:
    """This host's interfaces and RDMA ports, as variables name them."""
    names = [folder.name for folder in (*sysfs.interfaces(root), *sysfs.cxi_devices(root))]
    return frozenset([*names, *(name for name, _, _ in sysfs.rdma_ports(root))])


def _warn(line: str) -> None:
    if mpi.launched_rank() == 0:
        print(f"fabricbench: warning: {line}", file=sys.stderr)
