"""What a lab is now: the one JSON file that says so, and the one lock that guards all labs."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fabrics.errors import CannotRun, UserError
from fabrics.lab import groups
from fabrics.lab.build import SWITCH, Rates
from fabrics.lab.config import LabConfig, check_name
from fabrics.lab.enter import BASE, NETNS, enter_argv, namespace

_LOCK_DEADLINE_S = 60.0


@dataclass(frozen=True)
class Lab:
    """A lab that is up, as it is shaped now.

    ``rates`` is ``{fabric: {host: bit/s or None}}`` of the uplinks. ``loss`` is ``{fabric: {member: fraction}}`` of
    the packets that are dropped on arrival, and ``cpus`` is ``{member: cores}`` of those held to a quota; what is
    not held back is left out of both. ``speeds`` is ``{member: fraction}`` of those whose quota was set by its measured
    speed: what of the speed without a quota was then seen.
    """

    config: LabConfig
    rates: Rates
    loss: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    cpus: Mapping[str, float] = field(default_factory=dict)
    speeds: Mapping[str, float] = field(default_factory=dict)

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
        check_member(self, host)
        return enter_argv(self.name, host, *command)

    def address(self, host: str, network: str) -> str:
        """The IPv4 address of a host or DPU on a fabric or on ``mgmt``."""
        return self.config.address(host, network)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON data that :func:`find` reads back."""
        shaped = {"rates": self.rates, "loss": self.loss, "cpus": self.cpus, "speeds": self.speeds}
        return {"config": self.config.as_dict(), **shaped}


def check_member(lab: Lab, member: str) -> None:
    """Raise UserError, naming those there are, when ``lab`` has no such host or DPU."""
    _check(lab, "host", member, lab.config.members)


def check_host(lab: Lab, host: str) -> None:
    """Raise UserError, naming those there are, when ``lab`` has no such host; a DPU is none."""
    _check(lab, "host", host, lab.hosts)


def check_fabric(lab: Lab, fabric: str) -> None:
    """Raise UserError, naming those there are, when ``lab`` has no such fabric."""
    _check(lab, "fabric", fabric, tuple(lab.rates))


def _check(lab: Lab, kind: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise UserError(f"lab {lab.name} has no {kind} {name}: one of {', '.join(known)}")


def find(name: str = LabConfig.name) -> Lab | None:
    """The lab of that name if it is up and whole, else None."""
    try:
        data = json.loads(Path(BASE, name, "lab.json").read_text())
        config = LabConfig.from_dict(data.pop("config"))
        lab = Lab(config, **data)
    except (FileNotFoundError, ValueError, KeyError, TypeError, UserError):
        return None  # never finished, or written by a version that this one does not know
    places = (SWITCH, *lab.config.members)
    return lab if all(Path(NETNS, namespace(name, place)).exists() for place in places) else None


def load(name: str = LabConfig.name) -> Lab:
    """The lab of that name; raises UserError, naming those there are, when it is not up."""
    if (lab := find(check_name(name))) is not None:
        return lab
    others = [other for other in names() if find(other)]
    there = f"those up: {', '.join(others)}" if others else f"fabricbench lab up --name {name}"
    raise UserError(f"lab {name} is not up: {there}")


def names() -> list[str]:
    """The name of every lab of which there is anything, half-made ones included."""
    pinned = [path.name.split(".") for path in (*Path(NETNS).glob(namespace("*", "*")), *groups.folders("*"))]
    found = {parts[1] for parts in pinned if len(parts) == 3}
    found.update(path.name for path in Path(BASE).glob("*") if path.is_dir())
    return sorted(found)


def save(lab: Lab) -> None:
    """Write what ``lab`` is now; once it is written, the lab is up."""
    whole = lab.home / "lab.json.new"
    whole.write_text(json.dumps(lab.as_dict(), indent=1))
    whole.replace(lab.home / "lab.json")


def need_root() -> None:
    """Raise CannotRun for a user who is not root."""
    if os.geteuid() != 0:
        raise CannotRun("a lab needs root: run as root")


@contextmanager
def locked() -> Iterator[int]:
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
