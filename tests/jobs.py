"""Real MPI jobs for tests: launched with a deadline, and reaped whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from suite import launch


@dataclass(frozen=True)
class Done:
    """How a process ended and what it said."""

    code: int
    out: str
    err: str


def run(command: Sequence[str], timeout_s: float = 60, env: Mapping[str, str] | None = None, stdin: str = "") -> Done:
    """Run a command; its whole process group is ended when it overruns."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**launch.clean_environment(), **(env or {})},
        start_new_session=True,
    )
    try:
        out, err = process.communicate(stdin, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        raise AssertionError(f"{command} took over {timeout_s} s\n{out}\n{err}") from None
    return Done(process.returncode, out, err)


def mpi(ranks: int, *program: str, timeout_s: float = 60, env: Mapping[str, str] | None = None) -> Done:
    """``mpiexec -n RANKS python PROGRAM...`` with the MPI of this environment."""
    launcher = launch.find_launcher()
    return run([launcher.path, "-n", str(ranks), sys.executable, *program], timeout_s, env)


def python(*program: str, timeout_s: float = 60, env: Mapping[str, str] | None = None) -> Done:
    """A Python process of its own."""
    return run([sys.executable, *program], timeout_s, env)


def fabricbench(*arguments: str, timeout_s: float = 120, env: Mapping[str, str] | None = None) -> Done:
    """The command, as a user would run it."""
    return python("-m", "suite.cli", *arguments, timeout_s=timeout_s, env=env)
