"""The native reader of schedules: one rank's view, lowered to the calls of a program.

A part of a view becomes: all receives posted, all sends posted, a wait for all of them, MPI_Reduce_local for what
arrived to be combined, then what the rank copies or reduces within itself. A part of one send and one receive is one
MPI_Sendrecv, of a single message MPI_Send or MPI_Recv, which is what those calls do, in fewer of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives.schedule import BUFFERS, Part, Round, Schedule
from microbench.buffers import allocate
from microbench.dtypes import DType, counted
from microbench.engine import CallSpec, requests, statuses
from microbench.job import Job

_TAG = 7


@dataclass(frozen=True)
class _Message:
    """One message as this rank sees it: where its bytes stand, how many elements, and with whom."""

    memory: NDArray[np.uint8]
    count: int
    peer: int


class Lowering:
    """What the calls of one rank need: its buffers (INPUT, OUTPUT, SCRATCH, as bytes), the type and a staging area.

    Raises ValueError where a buffer is smaller than the schedule says.
    """

    def __init__(self, job: Job, schedule: Schedule, kind: DType, mpi_type: Any, given: Sequence[NDArray[np.uint8]]):
        self.job, self.kind, self.type = job, kind, mpi_type
        needed = schedule.sizes[:, job.rank] * kind.nbytes
        self.buffers = [*given, allocate(int(needed[len(given)]), job.pages)] if len(given) < len(BUFFERS) else given
        for name, buffer, nbytes in zip(BUFFERS, self.buffers, needed, strict=True):
            if buffer.size < nbytes:
                raise ValueError(f"{name} has {buffer.size} B, and the schedule takes {nbytes} B")
        self.parts = tuple(schedule.view(job.rank))
        self.staging = allocate(max(map(self._staged, self.parts), default=0), job.pages)

    def _staged(self, part: Part) -> int:
        """Bytes that arrive in a part to be combined."""
        return int(part.receives.count[part.receives.combine].sum()) * self.kind.nbytes

    def calls(self) -> list[CallSpec]:
        """All that the rank does, in order."""
        return [call for part in self.parts for call in self._part(part)]

    def _part(self, part: Part) -> Iterator[CallSpec]:
        received, combined, at = list[_Message](), list[tuple[NDArray[np.uint8], NDArray[np.uint8], int]](), 0
        for buffer, offset, count, source, combine in _rows(part.receives, "write_to", "write_at", "source"):
            memory = self._region(buffer, offset, count)
            if combine:
                into, memory = memory, self.staging[at : at + memory.size]
                combined.append((memory, into, count))
                at += memory.size
            received.append(_Message(memory, count, source))
        sent = [
            _Message(self._region(buffer, offset, count), count, target)
            for buffer, offset, count, target, _ in _rows(part.sends, "read_from", "read_at", "target")
        ]
        yield from self._exchange(sent, received)
        for memory, into, count in combined:
            yield self._reduce(memory, into, count)
        yield from self._within(part.local)

    def _exchange(self, sent: Sequence[_Message], received: Sequence[_Message]) -> Iterator[CallSpec]:
        comm = self.job.comm
        if len(sent) == len(received) == 1:
            (s,), (r,) = sent, received
            name = counted(self.job.engine, "MPI_Sendrecv", max(s.count, r.count))
            yield (name, s.memory, s.count, self.type, s.peer, _TAG, r.memory, r.count, self.type, r.peer, _TAG, comm,
                   statuses(1))  # fmt: skip
        elif len(sent) + len(received) == 1:
            for r in received:
                yield (*self._message("MPI_Recv", r), statuses(1))
            for s in sent:
                yield self._message("MPI_Send", s)
        elif sent or received:
            under_way = requests(len(sent) + len(received), self.job.engine.MPI)
            posts = [("MPI_Irecv", r) for r in received] + [("MPI_Isend", s) for s in sent]
            for (name, message), request in zip(posts, under_way, strict=True):
                yield (*self._message(name, message), request)
            yield ("MPI_Waitall", len(posts), under_way, statuses(len(posts)))

    def _message(self, name: str, message: _Message) -> CallSpec:
        name = counted(self.job.engine, name, message.count)
        return (name, message.memory, message.count, self.type, message.peer, _TAG, self.job.comm)

    def _within(self, local: Round) -> Iterator[CallSpec]:
        """Copies and reductions within the rank; MPI_Reduce_local is not needed to copy."""
        ends = zip(_rows(local, "read_from", "read_at", "source"), _rows(local, "write_to", "write_at", "target"),
                   strict=True)  # fmt: skip
        for (read_from, read_at, count, _, combine), (write_to, write_at, _, _, _) in ends:
            source, target = self._region(read_from, read_at, count), self._region(write_to, write_at, count)
            yield self._reduce(source, target, count) if combine else ("copy", target, source, source.size)

    def _reduce(self, source: NDArray[np.uint8], into: NDArray[np.uint8], count: int) -> CallSpec:
        name = counted(self.job.engine, "MPI_Reduce_local", count)
        return (name, source, into, count, self.type, self.job.engine.MPI.SUM)

    def _region(self, buffer: int, offset: int, count: int) -> NDArray[np.uint8]:
        start, size = offset * self.kind.nbytes, count * self.kind.nbytes
        return self.buffers[buffer][start : start + size]


def _rows(messages: Round, buffer: str, offset: str, peer: str) -> Iterable[tuple[int, int, int, int, bool]]:
    """Buffer, offset, count, peer and ``combine`` of every message, as Python's numbers."""
    columns = (getattr(messages, buffer), getattr(messages, offset), messages.count, getattr(messages, peer))
    return zip(*(column.tolist() for column in columns), messages.combine.tolist(), strict=True)


def lower(
    job: Job, schedule: Schedule, kind: DType, mpi_type: Any, send: NDArray[np.uint8], receive: NDArray[np.uint8]
) -> list[CallSpec]:
    """This rank's part of ``schedule`` as calls on its send and receive buffers; scratch is its own.

    The arrays that the calls refer to live as long as the calls do. Raises Unsupported for a count that the library
    cannot take.
    """
    return Lowering(job, schedule, kind, mpi_type, (send, receive)).calls()
