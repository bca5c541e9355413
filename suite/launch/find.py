"""Finding the MPI launcher, and checking that it fits the library."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from fabrics.errors import CannotRun
from microbench.mpi import GET_MPI, make
from suite.launch.model import Family, Launcher

_QUERY_S = 20.0
_PRINT_LIBRARY = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; print(MPI.Get_library_version())"
_OPEN_MPI = re.compile(r"\(Open MPI\)\s+(\d+)", re.IGNORECASE)
_FIRST_WITH_PRRTE = 5


def ask(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """What a command prints; CannotRun with its last line when it fails or does not answer.

    It runs with ``environment``, or with this process's.
    """
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_QUERY_S, stdin=subprocess.DEVNULL, check=False,
            env=environment,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotRun(f"{command[0]} does not answer: {error}") from None
    if done.returncode:
        raise CannotRun(((done.stderr or done.stdout).strip().splitlines() or [f"{command[0]} failed"])[-1])
    return done.stdout


def find_launcher(environment: Mapping[str, str] = os.environ) -> Launcher:
    """The mpiexec beside this Python, or the first on PATH; CannotRun says how to get one."""
    beside = Path(sys.executable).with_name("mpiexec")
    path = str(beside) if os.access(beside, os.X_OK) else shutil.which("mpiexec", path=environment.get("PATH"))
    if not path:
        raise CannotRun(f"no MPI found (no mpiexec beside this Python or on PATH): {GET_MPI}")
    text = ask([path, "--version"])
    return Launcher(path, family(text), _version(text))


def find_srun(environment: Mapping[str, str] = os.environ) -> Launcher | None:
    """Slurm's srun, None where there is none or this is no allocation."""
    path = shutil.which("srun", path=environment.get("PATH")) if environment.get("SLURM_JOB_ID") else None
    return None if path is None else Launcher(path, "slurm", ask([path, "--version"]).strip())


def family(text: str) -> Family:
    """The family of a launcher by what ``--version`` prints."""
    lower = text.lower()
    if "intel(r) mpi" in lower:
        return "intel"
    if found := _OPEN_MPI.search(text):
        return "prrte" if int(found[1]) >= _FIRST_WITH_PRRTE else "orte"
    if "openrte" in lower:
        return "orte"
    if "prrte" in lower:
        return "prrte"
    return "hydra" if "hydra" in lower else "unknown"


def _version(text: str) -> str:
    for line in text.splitlines():
        if line.strip().startswith("Version:"):
            return f"Hydra {line.split(':', 1)[1].strip()}"
    return text.strip().splitlines()[0] if text.strip() else "unknown"


def library(python: str = "") -> str:
    """Name and version of the MPI library that mpi4py of ``python`` (default: this one) uses, asked in a process."""
    try:
        return make(ask([python or sys.executable, "-c", _PRINT_LIBRARY]))
    except CannotRun as error:
        raise CannotRun(f"no MPI library found ({error}): {GET_MPI}") from None


def backend(library_name: str) -> str:
    """The backend that recipes are made for, by the library's name."""
    lower = library_name.lower()
    if "open mpi" in lower:
        return "openmpi"
    return "impi-ofi" if "intel" in lower else "mpich"


_STARTS: Mapping[str, tuple[Family, ...]] = {  # by backend
    "openmpi": ("prrte", "orte"),
    "impi-ofi": ("intel", "hydra"),
    "mpich": ("hydra", "intel", "slurm"),
}


def check_match(launcher: Launcher, library_name: str) -> None:
    """Raise CannotRun when launcher and library are of different makes, before anything is measured."""
    if launcher.family not in _STARTS[backend(library_name)]:
        raise CannotRun(
            f"{launcher.path} is of another make ({launcher.version}) than the MPI library that mpi4py uses"
            f" ({library_name}): put the library's own mpiexec first on PATH"
        )
    if launcher.family == "orte":
        raise CannotRun(
            f"run launches Open MPI from {_FIRST_WITH_PRRTE} on, and this is {launcher.version}:"
            " start a benchmark in a job of your own instead, such as mpiexec -n 2 fabricbench bench latency"
        )


def choose(
    hosts_named: bool = False, wanted: str = "auto", python: str = "", environment: Mapping[str, str] = os.environ
) -> tuple[Launcher, str]:
    """The launcher of a run, and the name and version of the library that it fits.

    On hosts that are named, inside an allocation of Slurm's, srun starts libraries that speak PMI-2; else it is the
    library's own mpiexec. ``wanted`` is ``auto``, ``mpiexec`` or ``srun``; ``python`` is the one whose library counts,
    where it is another than this. CannotRun where there is none that fits.
    """
    srun = find_srun(environment) if hosts_named and wanted != "mpiexec" else None
    if wanted == "srun" and srun is None:
        raise CannotRun("srun starts ranks on hosts of an allocation: run inside one, such as salloc -N 4, with them")
    launcher = srun or find_launcher(environment)
    name = library(python)
    if srun is not None and wanted == "auto" and srun.family not in _STARTS[backend(name)]:
        launcher = find_launcher(environment)
    check_match(launcher, name)
    return launcher, name
