"""What a benchmark is given: the ranks of one MPI job, their fabric, and means to agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fabrics.errors import CannotRun
from fabrics.model import Fabric, Proof
from microbench.clocksync import Clocks
from microbench.proving import prove
from microbench.sync import RoundTime
from microbench.timer import Timer, measure_timer

if TYPE_CHECKING:
    from mpi4py import MPI

    from microbench.engine import Engine

_TYPE = "dtype"


@dataclass
class Job:
    """One rank's view of a job; ``hosts``, ``roles`` and ``cpus`` hold an entry per rank.

    ``proofs`` keeps what counters said of other libraries' traffic than MPI's, by the library's name.
    """

    engine: Engine
    comm: MPI.Intracomm
    fabric: Fabric
    hosts: tuple[str, ...]
    roles: tuple[str, ...] = ()
    cpus: tuple[tuple[int, ...], ...] = ()
    launch: int = 1
    seed: int = 0
    pages: str = "small"
    proofs: dict[str, Proof] = field(default_factory=dict)

    @property
    def rank(self) -> int:
        """This rank."""
        return self.comm.Get_rank()

    @property
    def size(self) -> int:
        """How many ranks."""
        return self.comm.Get_size()

    @property
    def oversubscribed(self) -> bool:
        """Whether more ranks wait busily than there are cores for them; emulated hosts share one machine's cores.

        DPU ranks of an emulated fabric sleep while they wait, and are not counted.
        """
        emulated = self.fabric.emulated
        roles = self.roles or ("host",) * len(self.hosts)
        busy = [rank for rank, role in enumerate(roles) if not (emulated and role == "dpu")]
        for machine in {"" if emulated else self.hosts[rank] for rank in busy}:
            here = [rank for rank in busy if emulated or self.hosts[rank] == machine]
            if len(here) > len({cpu for rank in here for cpu in self.cpus[rank]}):
                return True
        return False

    def sum(self, value: int) -> int:
        """The sum of an integer over all ranks, known to all."""
        return int(self.comm.allreduce(value))

    def max(self, value: float) -> float:
        """The maximum over all ranks, known to all."""
        return float(self.comm.allreduce(value, op=self.engine.MPI.MAX))

    def decide(self, value: Any) -> Any:
        """Rank 0's value, on every rank."""
        return self.comm.bcast(value, root=0)

    @cached_property
    def timer(self) -> Timer:
        """What this rank's clock costs; read once."""
        return measure_timer(self.engine)

    @cached_property
    def clocks(self) -> Clocks:
        """The clocks of all ranks against rank 0's; learned once, by all ranks together."""
        return Clocks.learn(self)

    @cached_property
    def round_time(self) -> RoundTime:
        """The synchronised start of the whole job, so that all cases begin with one slack; needs the clocks."""
        return RoundTime(self, self.clocks)

    def gather(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Every rank's array as a row: shape (ranks, ...) on rank 0, (0, ...) elsewhere."""
        rows = np.zeros((self.size if self.rank == 0 else 0, *times.shape), "i8")
        self.comm.Gather(np.ascontiguousarray(times), rows if self.rank == 0 else None, root=0)
        return rows

    def agree(self, what: str, **facts: Any) -> None:
        """Raise CannotRun on every rank alike, with what differs, where they do not all say the same of ``what``."""
        told = self.comm.allgather((what, {name: str(value) for name, value in facts.items()}))
        other = next((rank for rank, view in enumerate(told) if view != told[0]), None)
        if other is None:
            return
        (first, mine), (second, theirs) = told[0], told[other]
        if first != second:
            raise CannotRun(
                f"ranks disagree: rank 0 runs {first} with {_phrase(mine)}, rank {other} runs {second} with"
                f" {_phrase(theirs)}"
            )
        here, there = _phrase(differing(mine, theirs)), _phrase(differing(theirs, mine))
        raise CannotRun(f"ranks disagree on {what}: rank 0 has {here}, rank {other} has {there}")

    def prove(self, traffic: Callable[[], None], sent_bytes: int, received_bytes: int) -> Proof:
        """What counters say of ``traffic``; see :func:`microbench.proving.prove`."""
        return prove(self, traffic, sent_bytes, received_bytes)


def lowest_fault(comm: MPI.Intracomm, fault: str) -> str:
    """``rank N: fault`` of the lowest rank that has one, the same on all ranks; nothing where none has. Collective."""
    told: list[str] = comm.allgather(fault)
    return next((f"rank {rank}: {text}" for rank, text in enumerate(told) if text), "")


def local_rank(hosts: Sequence[str], rank: int) -> int:
    """How many ranks of a rank's host come before it."""
    return list(hosts[:rank]).count(hosts[rank])


def differing(facts: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str | None]:
    """Those of ``facts`` that ``others`` have not alike, a type with what it is of; None for what only they have."""
    names = [name for name in facts if facts[name] != others.get(name)]
    for before, name in pairwise(facts):
        if name == _TYPE and (before in names or name in names):
            names += [before, name]
    mine = {name: value for name, value in facts.items() if name in names}
    return mine | {name: None for name in others if name not in facts}


def _phrase(facts: Mapping[str, str | None]) -> str:
    """``count 8 of float32, root 0, no sync``: a type belongs to what stands before it."""
    told = ""
    for name, value in facts.items():
        joint = "" if not told else " of " if name == _TYPE else ", "
        told += joint + (f"no {name}" if value is None else value if joint == " of " else f"{name} {value}")
    return told
