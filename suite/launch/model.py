"""A launcher, how it reaches its hosts, and the parts of its command that all launchers share. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Family = Literal["hydra", "intel", "prrte", "orte", "slurm", "unknown"]
LOCAL = "localhost"


@dataclass(frozen=True)
class Launcher:
    """An mpiexec or srun: where, of which family, and what it calls itself.

    ``hydra`` is MPICH's and its relatives', ``intel`` Intel MPI's Hydra, ``prrte`` Open MPI's from 5 on, ``orte`` that
    of Open MPI before.
    """

    path: str
    family: Family
    version: str


@dataclass(frozen=True)
class Access:
    """How a launcher reaches the hosts of a job; nothing set, all of them are this machine.

    ``enter`` runs the launcher itself on another host, ``agent`` stands in for ssh, ``interface`` is what launchers
    connect through, ``allocation`` says that Slurm starts the launcher's daemons. ``python`` is the Python of hosts
    where it is another than here, ``pythons`` that of single ones. ``scratch`` is a folder of this machine where
    launchers keep what they need during a job; with ``one_machine`` it is that of all hosts.
    """

    enter: tuple[str, ...] = ()
    agent: str = ""
    interface: str = ""
    allocation: bool = False
    python: str = ""
    pythons: Mapping[str, str] = field(default_factory=dict)
    scratch: str = ""
    one_machine: bool = False


HERE = Access()


@dataclass(frozen=True)
class Block:
    """Ranks that follow each other and run one program: ``hosts`` with how many of them each has, in order."""

    hosts: tuple[tuple[str, int], ...]
    program: tuple[str, ...]

    @property
    def ranks(self) -> int:
        """How many ranks."""
        return sum(count for _, count in self.hosts)


def counted(hosts: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """Neighbours that are alike, once each, with their number."""
    return tuple((host, len(tuple(same))) for host, same in itertools.groupby(hosts))


def blocks(hosts: Sequence[str], program: Sequence[str], access: Access) -> list[Block]:
    """The ranks of a job, cut where the host's Python changes; ``program`` begins with the Python of here."""
    python, rest = access.python or program[0], tuple(program[1:])
    groups = itertools.groupby(counted(hosts), key=lambda entry: access.pythons.get(entry[0]) or python)
    return [Block(tuple(entries), (own, *rest)) for own, entries in groups]


def between(separator: str, parts: Iterable[Sequence[str]]) -> list[str]:
    """The words of all parts, with ``separator`` between two."""
    return [word for part in parts for word in (separator, *part)][1:]
