"""Finding the MPI launcher, checking that it fits the library, and building the command of a job."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fabrics.errors import CannotRun
from microbench.mpi import GET_MPI, make
from suite import watchdog

Family = Literal["hydra", "openmpi", "unknown"]
_QUERY_S = 20.0
_OURS = ("UCX_", "FI_", "MPIR_CVAR_", "GLOO_", "PMI_", "PMIX_", "OMPI_", "PRTE_", "HYDRA_")
_PRINT_LIBRARY = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; print(MPI.Get_library_version())"


@dataclass(frozen=True)
class Launcher:
    """An mpiexec: where, of which family, and what it calls itself."""

    path: str
    family: Family
    version: str


def _ask(command: Sequence[str]) -> str:
    """What a command prints; CannotRun with its last line when it fails or does not answer."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_QUERY_S, stdin=subprocess.DEVNULL, check=False
        )
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
    text = _ask([path, "--version"])
    return Launcher(path, _family(text), _version(text))


def _family(text: str) -> Family:
    if "open mpi" in text.lower() or "openrte" in text.lower() or "prrte" in text.lower():
        return "openmpi"
    return "hydra" if "hydra" in text.lower() or "intel(r) mpi" in text.lower() else "unknown"


def _version(text: str) -> str:
    for line in text.splitlines():
        if line.strip().startswith("Version:"):
            return f"Hydra {line.split(':', 1)[1].strip()}"
    return text.strip().splitlines()[0] if text.strip() else "unknown"


def library() -> str:
    """Name and version of the MPI library that mpi4py uses, asked in a process of its own."""
    try:
        return make(_ask([sys.executable, "-c", _PRINT_LIBRARY]))
    except CannotRun as error:
        raise CannotRun(f"no MPI library found ({error}): {GET_MPI}") from None


def check_match(launcher: Launcher, library_name: str) -> None:
    """Raise CannotRun when launcher and library are of different makes, before anything is measured."""
    of_library: Family = "openmpi" if "open mpi" in library_name.lower() else "hydra"
    if launcher.family != of_library:
        raise CannotRun(
            f"{launcher.path} is of another make ({launcher.version}) than the MPI library that mpi4py uses"
            f" ({library_name}): put the library's own mpiexec first on PATH"
        )
    if of_library == "openmpi":
        raise CannotRun(
            f"run launches through Hydra (MPICH, Intel MPI), and mpi4py uses {library_name}:"
            " start a benchmark in a job of your own instead, such as mpiexec -n 2 fabricbench bench latency"
        )


def clean_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The caller's environment without what would choose a transport, or is left of another MPI job."""
    kept = {key: value for key, value in environment.items() if not key.startswith(_OURS)}
    return {**kept, "OMP_NUM_THREADS": "1"}


def removed_variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that :func:`clean_environment` takes away, to be recorded."""
    return {key: value for key, value in environment.items() if key.startswith(_OURS)}


def job_command(
    launcher: Launcher,
    hosts: Sequence[str],
    program: Iterable[str],
    env: Mapping[str, str],
    enter: Sequence[str] = (),
    agent: str = "",
) -> list[str]:
    """The argument vector of a job with one rank per entry of ``hosts``.

    ``enter`` runs the launcher on a lab host, ``agent`` stands in for ssh there. Binding is the worker's: hosts of
    a lab share one machine's cores, which no launcher knows.
    """
    where = ["-launcher", "ssh", "-launcher-exec", agent] if agent else ["-launcher", "fork"]
    settings = [part for key, value in env.items() for part in ("-genv", key, value)]
    ranks = ["-hosts", ",".join(dict.fromkeys(hosts)), "-ppn", str(max(hosts.count(h) for h in hosts))]
    return [
        *enter, launcher.path, *where, *ranks, "-n", str(len(hosts)), "-bind-to", "none", *settings, *program
    ]  # fmt: skip


def worker_program(
    thread_level: str, cpus: Sequence[Sequence[int]], start_deadline_s: float = watchdog.START_S
) -> list[str]:
    """The argument vector of a worker under its watchdog, with a processor list per rank."""
    lists = ":".join(",".join(map(str, cpu)) for cpu in cpus)
    guarded = [sys.executable, "-m", "suite.watchdog", "--start-deadline", str(start_deadline_s)]
    return [*guarded, "--thread-level", thread_level, "--cpus", lists]
