"""Labs by name: make, find and remove them. Their state is what the kernel and one JSON file say."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fabrics.errors import CannotRun, UserError
from fabrics.lab import check, cleanup, slurm
from fabrics.lab.build import Rates, make_namespaces
from fabrics.lab.config import LabConfig, check_name
from fabrics.lab.enter import enter_argv
from fabrics.lab.shaping import limit_cpu, lose, note_speed, shape
from fabrics.lab.state import Lab, find, load, locked, names, need_root, save

__all__ = [
    "Lab", "LabStatus", "check_not_own", "declared_rates", "down", "find", "is_orphan", "limit_cpu", "load", "lose",
    "need_root", "note_speed", "own_name", "remove_orphans", "shape", "status", "up",
]  # fmt: skip

_OWN_NAME = re.compile(r"run(\d+)")


@dataclass(frozen=True)
class LabStatus:
    """What there is under a lab's name: ``lab`` is None where it is half made; ``processes`` run inside it.

    ``absent``: the daemons of its Slurm that do not run; none where it has no Slurm. ``orphan``: it is the lab of a run
    that has ended without removing it.
    """

    name: str
    lab: Lab | None
    processes: int
    absent: tuple[str, ...] = ()
    orphan: bool = False


def own_name() -> str:
    """The name of a lab that belongs to this process alone."""
    return f"run{os.getpid()}"


def check_not_own(name: str) -> str:
    """``name`` if a user's lab may have it; UserError for one of those that runs give theirs, and remove."""
    if _OWN_NAME.fullmatch(name):
        raise UserError(f"lab name {name!r}: run and a number is the name of a run's own lab, which any run may remove")
    return name


def is_orphan(name: str) -> bool:
    """Whether a lab of this name belongs to a process that has gone."""
    owner = _OWN_NAME.fullmatch(name)
    return owner is not None and not Path("/proc", owner[1]).exists()


def remove_orphans() -> list[str]:
    """Remove the labs of processes that have gone without doing so; their names. Needs root, else does nothing."""
    if os.geteuid() != 0:
        return []
    gone = [name for name in names() if is_orphan(name)]
    for name in gone:
        down(name)
    return gone


def up(config: LabConfig | None = None) -> Lab:
    """The lab of ``config``: kept when it is up just so, else made anew, whatever bore its name before.

    Raises CannotRun when it cannot be made; nothing of it is then left.
    """
    config = config or LabConfig()
    if reason := check.why_not() or (slurm.why_not() if config.slurm else ""):
        raise CannotRun(reason)
    wanted = Lab(config, declared_rates(config))
    with locked() as lock:
        if find(config.name) == wanted and not slurm.absent(config):
            return wanted
        cleanup.remove(config.name)
        with _removed_on_failure(config.name):
            make_namespaces(config, wanted.rates, lock)
            _write_agent(wanted)
            if config.slurm:
                slurm.start(config)
            save(wanted)  # last of all: a lab with this file is up
    return wanted


@contextmanager
def _removed_on_failure(name: str) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        cleanup.remove(name)
        if isinstance(error, OSError):
            raise CannotRun(f"lab {name}: {error.filename}: {error.strerror}") from None
        raise


def declared_rates(config: LabConfig) -> Rates:
    """The rates of ``config`` before anything is shaped otherwise: ``{fabric: {host: bit/s or None}}``."""
    return {fabric.name: dict.fromkeys(config.hosts, fabric.rate_bits_per_s) for fabric in config.fabrics}


def _write_agent(lab: Lab) -> None:
    words = " ".join(shlex.quote(word) for word in enter_argv(lab.name, "--ssh"))
    lab.agent.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    lab.agent.chmod(0o755)


def down(name: str = LabConfig.name) -> bool:
    """Remove a lab in whatever state it is; True when there was anything. Raises CannotRun."""
    check_name(name)
    need_root()
    with locked():
        return cleanup.remove(name)


def status() -> list[LabStatus]:
    """Every lab here, half-made ones included, by name."""
    return [_status_of(name) for name in names()]


def _status_of(name: str) -> LabStatus:
    lab = find(name)
    absent = slurm.absent(lab.config) if lab else ()
    return LabStatus(name, lab, len(cleanup.processes(name)), absent, is_orphan(name))
