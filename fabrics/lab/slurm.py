"""Slurm in a lab: one munged and slurmctld on h0, a slurmd on every host, all of the lab's own.

Key, socket, configuration, state, logs and ports belong to the lab, in a folder of its run directory; nothing of a
Slurm that the machine itself runs is read or touched. The daemons run in the hosts' namespaces, by which removing
the lab finds and ends them. Keys of the configuration are those of slurm.conf(5), Slurm 22.05.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fabrics.errors import CannotRun
from fabrics.lab import cleanup, kernel
from fabrics.lab.build import in_thread
from fabrics.lab.config import MANAGEMENT, LabConfig
from fabrics.lab.enter import BASE, NETNS, SLURM, enter_argv, join_host, namespace

_PACKAGES = {"munged": "munge", "slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "sinfo": "slurm-wlm"}
_SBIN = "/usr/sbin:/sbin"  # where daemons are, and where a user's PATH may not lead
_CONTROLLER_PORT, _NODE_PORT = 16817, 16818  # the system's own are 6817 and 6818
_KEY_BYTES = 128
_START_S = 30.0


@dataclass(frozen=True)
class Daemon:
    """One daemon of a lab's Slurm: where it runs, how it is started, and the file that holds its process id."""

    name: str
    host: str
    command: tuple[str, ...]
    pid_file: Path


def folder(lab: str) -> Path:
    """Where all that belongs to the Slurm of ``lab`` is kept."""
    return Path(BASE, lab, SLURM)


def configuration_file(lab: str) -> Path:
    """The slurm.conf of ``lab``, which SLURM_CONF names in its hosts."""
    return folder(lab) / "slurm.conf"


def why_not() -> str:
    """Empty when the daemons are installed, else what is missing and the package that has it, in one line."""
    absent = [program for program in _PACKAGES if _program(program) is None]
    if not absent:
        return ""
    packages = " ".join(dict.fromkeys(_PACKAGES[program] for program in absent))
    return f"a lab with Slurm needs {', '.join(absent)}: install the packages {packages}"


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{_SBIN}")


def configuration(config: LabConfig, cores: int) -> str:
    """The slurm.conf of a lab whose hosts have ``cores`` each. Binding is left to the worker: task/none."""
    home = folder(config.name)
    first = config.hosts[0]
    settings = {
        "ClusterName": "fabricbench",
        "SlurmctldHost": f"{first}({config.address(first, MANAGEMENT)})",
        "SlurmctldPort": _CONTROLLER_PORT,
        "SlurmdPort": _NODE_PORT,
        "SlurmUser": "root",
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={home}/munge.socket",
        "CredType": "cred/munge",
        "StateSaveLocation": f"{home}/state",
        "SlurmdSpoolDir": f"{home}/spool.%n",
        "SlurmctldPidFile": f"{home}/slurmctld.pid",
        "SlurmdPidFile": f"{home}/slurmd.%n.pid",
        "SlurmctldLogFile": f"{home}/slurmctld.log",
        "SlurmdLogFile": f"{home}/slurmd.%n.log",
        "ProctrackType": "proctrack/linuxproc",  # pgid would lose what a launcher puts into a session of its own
        "TaskPlugin": "task/none",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_CPU",
        "SlurmdParameters": "config_overrides",
        "JobAcctGatherType": "jobacct_gather/none",
        "AccountingStorageType": "accounting_storage/none",
        "ReturnToService": 2,
        "MailProg": "/bin/true",
        "MpiDefault": "none",
    }
    lines = [f"{key}={value}" for key, value in settings.items()]
    for host in config.hosts:
        lines.append(f"NodeName={host} NodeAddr={config.address(host, MANAGEMENT)} CPUs={cores} State=UNKNOWN")
    lines.append(f"PartitionName=lab Nodes={','.join(config.hosts)} Default=YES MaxTime=INFINITE State=UP")
    return "\n".join(lines) + "\n"


def daemons(config: LabConfig) -> tuple[Daemon, ...]:
    """All daemons of a lab, in the order in which they are started; none without Slurm."""
    if not config.slurm:
        return ()
    home, first = folder(config.name), config.hosts[0]
    files = {"key-file": "munge.key", "socket": "munge.socket", "pid-file": "munged.pid", "log-file": "munged.log"}
    words = [f"--{option}={home}/{name}" for option, name in {**files, "seed-file": "munge.seed"}.items()]
    conf = str(configuration_file(config.name))
    return (
        Daemon("munged", first, ("munged", *words), home / "munged.pid"),
        Daemon("slurmctld", first, ("slurmctld", "-f", conf), home / "slurmctld.pid"),
        *(Daemon("slurmd", host, ("slurmd", "-f", conf), home / f"slurmd.{host}.pid") for host in config.hosts),
    )


def absent(config: LabConfig) -> tuple[str, ...]:
    """The daemons of a lab's Slurm that do not run, as ``slurmd on h1``; none where it has no Slurm."""
    wanted = daemons(config)
    running = set(cleanup.processes(config.name)) if wanted else set[int]()
    return tuple(f"{daemon.name} on {daemon.host}" for daemon in wanted if _pid(daemon) not in running)


def _pid(daemon: Daemon) -> int | None:
    with suppress(OSError, ValueError):
        return int(daemon.pid_file.read_text())
    return None


def start(config: LabConfig) -> None:
    """Start the daemons of a lab that has none yet and wait until every node is idle; raises CannotRun or OSError."""
    _prepare(config)
    deadline = time.monotonic() + _START_S
    for daemon in daemons(config):
        in_thread(partial(_launch, config.name, daemon))
        if daemon.name == "slurmctld":
            in_thread(partial(_await_controller, config, deadline))  # else a slurmd's first call would fail and wait
    _await_nodes(config, deadline)


def _prepare(config: LabConfig) -> None:
    home = folder(config.name)
    home.mkdir()
    for name in ("state", *(f"spool.{host}" for host in config.hosts)):
        (home / name).mkdir(mode=0o700)
    key = home / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(_KEY_BYTES))
    configuration_file(config.name).write_text(configuration(config, os.cpu_count() or 1))


def _launch(lab: str, daemon: Daemon) -> None:
    """Start one daemon, in a thread that may become a process of its host; the daemon leaves its parent itself."""
    join_host(lab, daemon.host)
    program = _program(daemon.command[0])
    if program is None:
        raise CannotRun(why_not())
    path = f"{os.environ.get('PATH', os.defpath)}:{_SBIN}"
    try:
        with (folder(lab) / f"{daemon.name}.out").open("a+") as told:
            code = subprocess.run(
                [program, *daemon.command[1:]],
                env={"PATH": path, "SLURM_CONF": str(configuration_file(lab))},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=told,
                timeout=_START_S,
                check=False,
            ).returncode
            told.seek(0)
            said = " ".join(told.read().split())
    except subprocess.TimeoutExpired:
        raise CannotRun(f"lab {lab}: {daemon.name} on {daemon.host} does not start in {_START_S:.0f} s") from None
    if code:
        raise CannotRun(f"lab {lab}: {daemon.name} on {daemon.host} does not start: {said}")


def _await_controller(config: LabConfig, deadline: float) -> None:
    first = config.hosts[0]
    kernel.join(f"{NETNS}/{namespace(config.name, first)}", kernel.NEWNET)
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((config.address(first, MANAGEMENT), _CONTROLLER_PORT), timeout=1):
                return
        except OSError:
            _raise_complaint(config)
            time.sleep(0.02)
    raise CannotRun(f"lab {config.name}: slurmctld does not answer in {_START_S:.0f} s")


def _await_nodes(config: LabConfig, deadline: float) -> None:
    ask = enter_argv(config.name, config.hosts[0], "sinfo", "--noheader", "--Node", "--format=%N %T")
    states: dict[str, str] = {}
    while time.monotonic() < deadline:
        states = _states(ask)
        if all(states.get(host) == "idle" for host in config.hosts):
            return
        _raise_complaint(config)
        time.sleep(0.05)
    late = [f"{host} is {states.get(host, 'unknown')}" for host in config.hosts if states.get(host) != "idle"]
    raise CannotRun(f"lab {config.name}: Slurm's nodes are not up in {_START_S:.0f} s: {', '.join(late)}")


def _states(ask: Sequence[str]) -> dict[str, str]:
    with suppress(subprocess.TimeoutExpired):
        result = subprocess.run(ask, capture_output=True, text=True, timeout=_START_S, check=False)
        pairs = [line.split() for line in result.stdout.splitlines()]
        return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
    return {}


def _raise_complaint(config: LabConfig) -> None:
    """Raise CannotRun with what a daemon said before it gave up."""
    for log in sorted(folder(config.name).glob("*.log")):
        for line in log.read_text(errors="replace").splitlines():
            if "fatal:" in line:
                raise CannotRun(f"lab {config.name}: {log.stem}: {line.partition('] ')[2] or line}")
