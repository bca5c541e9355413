"""What a collective works on: the buffers of one rank, how they are divided, and how the operation is called.

A size is the bytes of one rank's send buffer, of every operation alike: what it adds (allreduce, reduce,
reduce-scatter), what it contributes (allgather, gather), all blocks together that it sends (all-to-all), and what the
root has (broadcast, scatter). Where a buffer is divided over ranks that do not divide it, the first blocks hold an
element more, and the operation's form with counts is called: no other size is measured than the one asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.buffers import allocate
from microbench.case import Case
from microbench.dtypes import DType, counted, dtype, elements, mpi_type
from microbench.engine import CallSpec, requests, statuses
from microbench.job import Job
from microbench.registry import BLOCKING
from microbench.staging import HostMemory, Memory, memory

ROOT = 0
NONBLOCKING, IN_PLACE = "nonblocking", "in-place"
MODES = (BLOCKING, NONBLOCKING, IN_PLACE, f"{NONBLOCKING} {IN_PLACE}")


@dataclass(frozen=True)
class Mode:
    """How a collective is called: returning when it is done or at once, into another buffer or in place."""

    nonblocking: bool = False
    in_place: bool = False

    @classmethod
    def of(cls, case: Case) -> Mode:
        """The mode that a case names; what else its mode tells (how ranks start) is not of the call."""
        words = case.mode.split()
        return cls(NONBLOCKING in words, IN_PLACE in words)


def shares(count: int, ranks: int, first: int = 0) -> NDArray[np.int64]:
    """``count`` elements as ``ranks`` blocks that differ by one at most; ``first`` rotates which are the larger.

    With a rank as ``first``, block d of rank s is as large as block s of rank d, as all-to-all in place asks for, and
    every rank receives as much as it sends.
    """
    larger = (np.arange(ranks) + first) % ranks < count % ranks
    return np.asarray(count // ranks + larger, np.int64)


def offsets(blocks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each block begins."""
    return np.cumsum(blocks) - blocks


@dataclass
class Operands:
    """The buffers of one rank, and what they hold; in place, ``send`` keeps the input that ``receive`` is given."""

    job: Job
    kind: DType
    type: Any
    count: int
    send: NDArray[np.uint8]
    receive: NDArray[np.uint8]
    mode: Mode = field(default_factory=Mode)
    memory: Memory = field(default_factory=HostMemory)

    @property
    def rank(self) -> int:
        """This rank."""
        return self.job.rank

    @property
    def ranks(self) -> int:
        """How many ranks."""
        return self.job.size

    @property
    def is_root(self) -> bool:
        """Whether it is the one that a rooted operation begins or ends at."""
        return self.rank == ROOT

    @property
    def values(self) -> NDArray[Any]:
        """The send buffer, as elements."""
        return self.send.view(self.kind.numpy)

    @property
    def results(self) -> NDArray[Any]:
        """The receive buffer, as elements."""
        return self.receive.view(self.kind.numpy)

    @property
    def source(self) -> Any:
        """What a call is given to send: the send buffer, or MPI_IN_PLACE."""
        return self.job.engine.MPI.IN_PLACE if self.mode.in_place else self.send

    @property
    def source_of_root(self) -> Any:
        """The same where only the root may work in place."""
        return self.source if self.is_root else self.send

    @property
    def divides(self) -> bool:
        """Whether the ranks divide the count."""
        return self.count % self.ranks == 0

    @property
    def block(self) -> int:
        """Elements of a block, where the ranks divide the count."""
        return self.count // self.ranks

    def name(self, function: str, largest: int | None = None) -> str:
        """The form of an MPI function that its mode asks for, and that takes this count (``largest``, where given)."""
        if self.mode.nonblocking:
            function = f"MPI_I{function[4].lower()}{function[5:]}"
        return counted(self.job.engine, function, self.count if largest is None else largest)

    def finished(self, call: CallSpec) -> list[CallSpec]:
        """The call, and in its non-blocking form the wait for it."""
        if not self.mode.nonblocking:
            return [call]
        request = requests(1, self.job.engine.MPI)
        return [(*call, request), ("MPI_Wait", request, statuses(1))]


def no_blocks(count: int, kind: DType, ranks: int, why: str) -> str:
    """That ``ranks`` do not divide ``count`` elements, why that matters, and which sizes they divide."""
    these = "1 element makes" if count == 1 else f"{count} elements are"
    sizes = f"take sizes that are multiples of {ranks * kind.nbytes} B"
    return f"{these} no whole blocks for {ranks} ranks, and {why}: {sizes}"


def vector(function: str, values: Iterable[int]) -> NDArray[Any]:
    """Counts or displacements as ``function`` takes them: ints, or 64-bit words in its large-count form."""
    return np.array(list(values), "i8" if function.endswith("_c") else "i4")


def operands(job: Job, case: Case, receives: Callable[[Operands], int]) -> Operands:
    """Buffers for a case, written; ``receives`` tells how many elements the receive buffer holds."""
    kind, nbytes = dtype(case.dtype or "float32"), case.nbytes or 0
    place = memory(job, case.device)
    made = Operands(
        job,
        kind,
        mpi_type(job.engine.MPI, kind),
        elements(nbytes, kind),
        place.buffer(nbytes, sent=True),
        allocate(0),
        Mode.of(case),
        place,
    )
    made.receive = place.buffer(receives(made) * kind.nbytes)
    return made
