"""Launching MPI jobs: which launcher, whether it fits the library, and the command of a job."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

from fabrics.errors import CannotRun
from suite import binding, watchdog
from suite.launch import hydra, prrte, slurm
from suite.launch.find import backend, check_match, choose, find_launcher, library
from suite.launch.model import HERE, LOCAL, Access, Launcher
from suite.launch.variables import clean_environment, passed, removed_variables

__all__ = (
    "HERE", "LOCAL", "Access", "Launcher", "backend", "check_match", "choose", "clean_environment", "find_launcher",
    "job_command", "library", "passed", "removed_variables", "worker_program",
)  # fmt: skip

_ADAPTERS = {"hydra": hydra.command, "intel": hydra.command, "prrte": prrte.command, "slurm": slurm.command}


def job_command(
    launcher: Launcher, hosts: Sequence[str], program: Iterable[str], env: Mapping[str, str], access: Access = HERE
) -> list[str]:
    """The argument vector of a job with one rank per entry of ``hosts``, each with ``env``; input goes to rank 0.

    ``program`` begins with the Python of here, in whose place a host's own is put. Binding is the worker's: hosts of
    a lab share one machine's cores, which no launcher knows. CannotRun for a launcher of no known family.
    """
    adapter = _ADAPTERS.get(launcher.family)
    if adapter is None:
        raise CannotRun(f"{launcher.path} ({launcher.version}) is no launcher that is known: Hydra, PRRTE or srun")
    return adapter(launcher, hosts, list(program), env, access)


def worker_program(
    thread_level: str,
    cpus: Sequence[Sequence[int]],
    start_deadline_s: float = watchdog.START_S,
    hosts: Sequence[str] = (),
    settings: str = "",
) -> list[str]:
    """The argument vector of a worker under its watchdog, with a processor list per rank.

    A rank without processors of its own takes its place among its host's in ``hosts``. ``settings`` are variables
    that differ by rank, as :attr:`suite.settings.Settings.by_rank` has them.
    """
    lists = binding.encode(cpus, hosts or [LOCAL] * len(cpus))
    guarded = [sys.executable, "-m", "suite.watchdog", "--start-deadline", str(start_deadline_s)]
    more = ["--settings", settings] if settings else []
    return [*guarded, "--thread-level", thread_level, *more, "--cpus", lists]
