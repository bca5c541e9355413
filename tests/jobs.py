"""Real MPI jobs for tests: launched with a deadline, and reaped whatever happens."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import psutil

from suite import cli, launch

_TELLING_S = 1.0
_STACKS = Path(__file__).with_name("stacks")


@dataclass(frozen=True)
class Done:
    """How a process ended and what it said."""

    code: int
    out: str
    err: str


def run(command: Sequence[str], timeout_s: float = 60, env: Mapping[str, str] | None = None, stdin: str = "") -> Done:
    """Run a command; where it overruns, every Python process in it tells its stack and all of them are ended."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**launch.clean_environment(), "PYTHONPATH": _path(), **(env or {})},
        start_new_session=True,
    )
    try:
        out, err = process.communicate(stdin, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        out, err = _ended(process)
        raise AssertionError(f"{command} took over {timeout_s} s\n{out}\n{err}") from None
    return Done(process.returncode, out, err)


def lives(pid: int) -> bool:
    """Whether a process runs; a dead one that its parent has not yet collected does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _path() -> str:
    """The search path of Python processes, with what makes them tell their stacks in front."""
    return os.pathsep.join(filter(None, [str(_STACKS), os.environ.get("PYTHONPATH", "")]))


def _ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    """End a job that overran; its Python processes tell their stacks first."""
    top = psutil.Process(process.pid)
    family = [top, *top.children(recursive=True)]
    states = [f"pid {p.pid} was {p.status()}: {' '.join(p.cmdline())[:200]}" for p in family]
    for member in family:
        if _listens(member.pid):
            member.send_signal(signal.SIGUSR2)
            time.sleep(0.05)  # so that stacks do not run into each other
    time.sleep(_TELLING_S)
    for member in family:
        if member.is_running():
            member.kill()
    out, err = process.communicate()
    return out, "\n".join([err, *states])


def _listens(pid: int) -> bool:
    """Whether a process has a handler for SIGUSR2, so that it would not die of it."""
    caught = re.search(r"^SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text(), re.M)
    return caught is not None and bool(int(caught[1], 16) >> (signal.SIGUSR2 - 1) & 1)


def mpi(ranks: int, *program: str, timeout_s: float = 60, env: Mapping[str, str] | None = None) -> Done:
    """``mpiexec -n RANKS python PROGRAM...`` with the MPI of this environment."""
    command = launch.job_command(launch.find_launcher(), ("localhost",) * ranks, [sys.executable, *program], {})
    return run(command, timeout_s, env)


def python(*program: str, timeout_s: float = 60, env: Mapping[str, str] | None = None) -> Done:
    """A Python process of its own."""
    return run([sys.executable, *program], timeout_s, env)


def once(plan: str) -> str:
    """A plan of one launch, where it does not say how many."""
    return plan if "launches" in plan else f"launches = 1\n{plan}"


@contextmanager
def disk(path: Path, options: str) -> Iterator[Path]:
    """A file system in memory, mounted at ``path`` with these options of mount: a disk that is small, or read-only."""
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "small", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", path], check=True)


def fabricbench(*arguments: str, timeout_s: float = 120, env: Mapping[str, str] | None = None) -> Done:
    """The command, as a user would run it."""
    return python("-m", "suite.cli", *arguments, timeout_s=timeout_s, env=env)


def inside(*arguments: str) -> Done:
    """The command in this process, for what it says before it starts a job: Python and numpy need not start again."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = cli.main(arguments)
        except SystemExit as end:  # --help
            code = end.code if isinstance(end.code, int) else 0
    return Done(code, out.getvalue(), err.getvalue())
