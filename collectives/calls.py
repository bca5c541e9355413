"""How each of MPI's collectives is called, what is put in, and what must come out, seen from one rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives.operands import ROOT, Operands, offsets, shares, vector
from microbench import check
from microbench.engine import CallSpec


@dataclass(frozen=True)
class Share:
    """A rank's block of a buffer that is divided over the ranks, in elements."""

    start: int
    size: int

    @property
    def elements(self) -> slice:
        """Its place."""
        return slice(self.start, self.start + self.size)


def share(o: Operands) -> Share:
    """This rank's block of a reduce-scatter's sum, or of a scatter's send buffer."""
    blocks = shares(o.count, o.ranks)
    return Share(int(offsets(blocks)[o.rank]), int(blocks[o.rank]))


def allreduce(o: Operands) -> CallSpec:
    """MPI_Allreduce."""
    return (o.name("MPI_Allreduce"), o.source, o.receive, o.count, o.type, o.job.engine.MPI.SUM, o.job.comm)


def reduce(o: Operands) -> CallSpec:
    """MPI_Reduce; in place at the root."""
    operation = o.job.engine.MPI.SUM
    return (o.name("MPI_Reduce"), o.source_of_root, o.receive, o.count, o.type, operation, ROOT, o.job.comm)


def broadcast(o: Operands) -> CallSpec:
    """MPI_Bcast, which has one buffer."""
    return (o.name("MPI_Bcast"), o.send if o.is_root else o.receive, o.count, o.type, ROOT, o.job.comm)


def allgather(o: Operands) -> CallSpec:
    """MPI_Allgather."""
    return (o.name("MPI_Allgather"), o.source, o.count, o.type, o.receive, o.count, o.type, o.job.comm)


def gather(o: Operands) -> CallSpec:
    """MPI_Gather; in place at the root."""
    return (o.name("MPI_Gather"), o.source_of_root, o.count, o.type, o.receive, o.count, o.type, ROOT, o.job.comm)


def reduce_scatter(o: Operands) -> CallSpec:
    """MPI_Reduce_scatter_block, or with counts where the ranks do not divide the count."""
    operation = o.job.engine.MPI.SUM
    if o.divides:
        name = o.name("MPI_Reduce_scatter_block", o.block)
        return (name, o.source, o.receive, o.block, o.type, operation, o.job.comm)
    name = o.name("MPI_Reduce_scatter")
    return (name, o.source, o.receive, vector(name, shares(o.count, o.ranks)), o.type, operation, o.job.comm)


def scatter(o: Operands) -> CallSpec:
    """MPI_Scatter, or MPI_Scatterv where the ranks do not divide the count; in place the root keeps its block."""
    into = o.job.engine.MPI.IN_PLACE if o.mode.in_place and o.is_root else o.receive
    tail = (into, share(o).size, o.type, ROOT, o.job.comm)
    if o.divides:
        return (o.name("MPI_Scatter", o.block), o.send, o.block, o.type, *tail)
    name, blocks = o.name("MPI_Scatterv"), shares(o.count, o.ranks)
    return (name, o.send, vector(name, blocks), vector(name, offsets(blocks)), o.type, *tail)


def alltoall(o: Operands) -> CallSpec:
    """MPI_Alltoall, or MPI_Alltoallv where the ranks do not divide the count."""
    if o.divides:
        name = o.name("MPI_Alltoall", o.block)
        return (name, o.source, o.block, o.type, o.receive, o.block, o.type, o.job.comm)
    name, blocks = o.name("MPI_Alltoallv"), shares(o.count, o.ranks, o.rank)
    layout = (vector(name, blocks), vector(name, offsets(blocks)), o.type)
    return (name, o.source, *layout, o.receive, *layout, o.job.comm)


def barrier(o: Operands) -> CallSpec:
    """MPI_Barrier."""
    return (o.name("MPI_Barrier"), o.job.comm)


def fill_sum(o: Operands) -> None:
    """This rank's part of a sum that is exact."""
    o.values[:] = check.contribution(o.kind, o.count, o.rank, o.ranks)


def fill_own(o: Operands) -> None:
    """Bytes that tell the rank."""
    o.send[:] = sent(o, o.rank)


def fill_root(o: Operands) -> None:
    """The root's bytes."""
    o.send[:] = sent(o, ROOT)


def sent(o: Operands, rank: int) -> NDArray[np.uint8]:
    """What the send buffer of ``rank`` holds of data that is only moved."""
    return check.pattern(o.send.size, rank)


def all_sent(o: Operands) -> NDArray[np.uint8]:
    """What every rank sends, in the ranks' order."""
    result = np.empty(o.ranks * o.send.size, "u1")
    for rank, block in enumerate(result.reshape(o.ranks, o.send.size)):
        block[:] = sent(o, rank)
    return result


def own_block(o: Operands) -> NDArray[np.uint8]:
    """This rank's place among what all ranks send."""
    return o.receive[o.rank * o.send.size :][: o.send.size]


def scattered(o: Operands) -> NDArray[Any] | None:
    """The root's bytes that this rank receives; None where the root keeps its block in place."""
    if o.mode.in_place and o.is_root:
        return None
    mine, each = share(o), o.kind.nbytes
    return check.pattern(mine.size * each, ROOT, mine.start * each)


def exchanged(o: Operands) -> NDArray[np.uint8]:
    """What an all-to-all brings: of every rank, in their order, the block that is for this one."""
    result, each, begin = np.empty(o.send.size, "u1"), o.kind.nbytes, 0
    for rank in range(o.ranks):
        blocks = shares(o.count, o.ranks, rank)
        nbytes, start = int(blocks[o.rank]) * each, int(offsets(blocks)[o.rank]) * each
        result[begin : begin + nbytes] = check.pattern(nbytes, rank, start)
        begin += nbytes
    return result
