"""Labs by name: make, find, shape and remove them. Their state is what the kernel and one JSON file say."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from fabrics.errors import CannotRun, UserError
from fabrics.lab import cleanup
from fabrics.lab.build import SWITCH, Rates, batch, make_namespaces, shape_lines
from fabrics.lab.check import why_not
from fabrics.lab.config import LabConfig, check_name, check_rate
from fabrics.lab.enter import BASE, NETNS, enter_argv, namespace

_LOCK_DEADLINE_S = 60.0
_OWN_NAME = re.compile(r"run(\d+)")


@dataclass(frozen=True)
class Lab:
    """A lab that is up; ``rates`` is ``{fabric: {host: bit/s or None}}`` as the uplinks are shaped now."""

    config: LabConfig
    rates: Rates

    @property
    def name(self) -> str:
        """The lab's name."""
        return self.config.name

    @property
    def hosts(self) -> tuple[str, ...]:
        """Its hosts, h0 first."""
        return self.config.hosts

    @property
    def dpus(self) -> tuple[str, ...]:
        """Its DPUs, in their hosts' order."""
        return self.config.dpu_hosts

    @property
    def home(self) -> Path:
        """Its run directory."""
        return Path(BASE, self.name)

    @property
    def agent(self) -> Path:
        """The executable that stands in for ssh: ``mpiexec -launcher ssh -launcher-exec AGENT``."""
        return self.home / "agent"

    def enter(self, host: str, command: Sequence[str]) -> list[str]:
        """The argument vector that runs ``command`` in ``host`` (or DPU); raises UserError for another name."""
        if host not in self.config.members:
            raise UserError(f"lab {self.name} has no host {host}: one of {', '.join(self.config.members)}")
        return enter_argv(self.name, host, *command)

    def address(self, host: str, network: str) -> str:
        """The IPv4 address of a host or DPU on a fabric or on ``mgmt``."""
        return self.config.address(host, network)


@dataclass(frozen=True)
class LabStatus:
    """What there is under a lab's name: ``lab`` is None where it is half made; ``processes`` run inside it."""

    name: str
    lab: Lab | None
    processes: int


def own_name() -> str:
    """The name of a lab that belongs to this process alone."""
    return f"run{os.getpid()}"


def remove_orphans() -> list[str]:
    """Remove the labs of processes that have gone without doing so; their names. Needs root, else does nothing."""
    if os.geteuid() != 0:
        return []
    owned = {name: match[1] for name in _names() if (match := _OWN_NAME.fullmatch(name))}
    gone = [name for name, pid in owned.items() if not Path("/proc", pid).exists()]
    for name in gone:
        down(name)
    return gone


def up(config: LabConfig | None = None) -> Lab:
    """The lab of ``config``: kept when it is up just so, else made anew, whatever bore its name before.

    Raises CannotRun when it cannot be made; nothing of it is then left.
    """
    config = config or LabConfig()
    if reason := why_not():
        raise CannotRun(reason)
    wanted = Lab(config, declared_rates(config))
    with _locked() as lock:
        if find(config.name) == wanted:
            return wanted
        cleanup.remove(config.name)
        try:
            make_namespaces(config, wanted.rates, lock)
            _write_agent(wanted)
            _save(wanted)
        except BaseException as error:
            cleanup.remove(config.name)
            if isinstance(error, OSError):
                raise CannotRun(f"lab {config.name}: {error.filename}: {error.strerror}") from None
            raise
    return wanted


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
    with _locked():
        return cleanup.remove(name)


def load(name: str = LabConfig.name) -> Lab:
    """The lab of that name; raises UserError, naming those there are, when it is not up."""
    if (lab := find(check_name(name))) is not None:
        return lab
    others = [status.name for status in status() if status.lab]
    there = f"those up: {', '.join(others)}" if others else f"fabricbench lab up --name {name}"
    raise UserError(f"lab {name} is not up: {there}")


def status() -> list[LabStatus]:
    """Every lab here, half-made ones included, by name."""
    return [LabStatus(name, find(name), len(cleanup.processes(name))) for name in _names()]


def _names() -> list[str]:
    pinned = [path.name.split(".") for path in Path(NETNS).glob(namespace("*", "*"))]
    names = {parts[1] for parts in pinned if len(parts) == 3}
    names.update(path.name for path in Path(BASE).glob("*") if path.is_dir())
    return sorted(names)


def shape(lab: Lab, fabric: str, rate_bits_per_s: float | None, host: str | None = None) -> Lab:
    """``lab`` with a fabric's uplinks, or one host's, at another rate both ways (None: unshaped).

    Raises UserError for a fabric, host or rate that cannot be.
    """
    if fabric not in lab.rates:
        raise UserError(f"lab {lab.name} has no fabric {fabric}: one of {', '.join(lab.rates)}")
    if host is not None and host not in lab.hosts:
        raise UserError(f"lab {lab.name} has no host {host}: one of {', '.join(lab.hosts)}")
    if rate_bits_per_s is not None:
        check_rate(rate_bits_per_s, fabric)
    need_root()
    with _locked() as lock:
        now = load(lab.name)
        change = dict.fromkeys([host] if host else now.hosts, rate_bits_per_s)
        batch("tc", shape_lines({fabric: change}), namespace(lab.name, SWITCH), lock)
        shaped = replace(now, rates={**now.rates, fabric: {**now.rates[fabric], **change}})
        _save(shaped)
    return shaped


def find(name: str = LabConfig.name) -> Lab | None:
    """The lab of that name if it is up and whole, else None."""
    try:
        data = json.loads(Path(BASE, name, "lab.json").read_text())
        lab = Lab(LabConfig.from_dict(data["config"]), data["rates"])
    except (FileNotFoundError, ValueError, KeyError, TypeError, UserError):
        return None  # never finished, or written by a version that this one does not know
    places = (SWITCH, *lab.config.members)
    return lab if all(Path(NETNS, namespace(name, place)).exists() for place in places) else None


def _save(lab: Lab) -> None:
    whole = lab.home / "lab.json.new"
    whole.write_text(json.dumps({"config": lab.config.as_dict(), "rates": lab.rates}, indent=1))
    whole.replace(lab.home / "lab.json")  # last of all: a lab with this file is up


def need_root() -> None:
    """Raise CannotRun for a user who is not root."""
    if os.geteuid() != 0:
        raise CannotRun("a lab needs root: run as root")


@contextmanager
def _locked() -> Iterator[int]:
    """Hold the one lock of all labs: the base directory, which goes when the last lab has gone."""
    base = Path(BASE)
    descriptor = _lock(base)
    try:
        yield descriptor
    finally:
        if not any(base.iterdir()):
            base.rmdir()
        os.close(descriptor)


def _lock(base: Path) -> int:
    deadline = time.monotonic() + _LOCK_DEADLINE_S
    while time.monotonic() < deadline:
        base.mkdir(mode=0o755, exist_ok=True)
        try:
            descriptor = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if base.exists() and os.path.samestat(os.fstat(descriptor), base.stat()):
                return descriptor  # and not one that its last holder has removed meanwhile
        except BlockingIOError:
            pass
        os.close(descriptor)
        time.sleep(0.01)
    raise CannotRun(f"{BASE} is locked for over {_LOCK_DEADLINE_S:.0f} s: another lab is being made or removed")
