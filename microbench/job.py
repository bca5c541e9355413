"""What a benchmark is given: the ranks of one MPI job, their fabric, and means to agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fabrics.model import Fabric, Proof
from microbench.proving import prove

if TYPE_CHECKING:
    from mpi4py import MPI

    from microbench.engine import Engine


@dataclass
class Job:
    """One rank's view of a job; ``hosts``, ``roles`` and ``cpus`` hold an entry per rank."""

    engine: Engine
    comm: MPI.Intracomm
    fabric: Fabric
    hosts: tuple[str, ...]
    roles: tuple[str, ...] = ()
    cpus: tuple[tuple[int, ...], ...] = ()
    launch: int = 1
    seed: int = 0
    pages: str = "small"

    @property
    def rank(self) -> int:
        """This rank."""
        return self.comm.Get_rank()

    @property
    def size(self) -> int:
        """How many ranks."""
        return self.comm.Get_size()

    def sum(self, value: int) -> int:
        """The sum of an integer over all ranks, known to all."""
        return int(self.comm.allreduce(value))

    def max(self, value: float) -> float:
        """The maximum over all ranks, known to all."""
        return float(self.comm.allreduce(value, op=self.engine.MPI.MAX))

    def decide(self, value: Any) -> Any:
        """Rank 0's value, on every rank."""
        return self.comm.bcast(value, root=0)

    def gather(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Every rank's row: shape (ranks, n) on rank 0, (0, n) elsewhere."""
        rows = np.zeros((self.size if self.rank == 0 else 0, times.size), "i8")
        self.comm.Gather(np.ascontiguousarray(times), rows if self.rank == 0 else None, root=0)
        return rows

    def prove(self, traffic: Callable[[], None], sent_bytes: int, received_bytes: int) -> Proof:
        """What counters say of ``traffic``; see :func:`microbench.proving.prove`."""
        return prove(self, traffic, sent_bytes, received_bytes)
