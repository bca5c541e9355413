"""A DPU worker's memory: places for as many pieces as are under way, each holding its hosts' data and results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from collectives.offload.exchange import Blocks, Places
from collectives.offload.party import Crew
from collectives.offload.pieces import Piece, Plan, Task, merged, packed
from microbench import check
from microbench.buffers import allocate

Sides = tuple[Sequence[Blocks], Sequence[Blocks]]  # what hosts give and what they get, host by host


@dataclass(frozen=True)
class Parcel:
    """What one host gives or gets of a piece: its rank, and the blocks of its operand that are one region here."""

    rank: int
    blocks: Blocks
    address: int
    count: int


class Staging:
    """Slots for the pieces of this worker's lane; piece k lies in slot k modulo their number."""

    def __init__(self, crew: Crew, task: Task, plan: Plan, element_bytes: int) -> None:
        self.crew, self.task, self.plan, self.each = crew, task, plan, element_bytes
        self.pieces = plan.lanes[crew.worker]
        self.memory = allocate(plan.slots * plan.slot_bytes, crew.job.pages)

    def poison(self) -> None:
        """Spoil what the slots hold."""
        check.poison(self.memory)

    def places(self, index: int) -> Places:
        """Where piece ``index`` of the lane is."""
        piece, base = self.pieces[index], int(self.memory.ctypes.data)
        base += index % self.plan.slots * self.plan.slot_bytes
        found = {
            "allreduce": self._summed,
            "broadcast": self._one,
            "allgather": self._gathered,
            "alltoall": self._exchanged,
        }[self.task.operation](piece)
        inputs, outputs = (tuple(map(self._absolute, side, [base] * len(side))) for side in found)
        return Places(piece[1], inputs, outputs)

    def _absolute(self, blocks: Blocks, base: int) -> Blocks:
        return tuple((base + at * self.each, length) for at, length in blocks)

    def _summed(self, piece: Piece) -> Sides:
        """Each host's data; every result takes the first one's place."""
        rows: list[Blocks] = [((index * piece[1], piece[1]),) for index, _ in enumerate(self.crew.served)]
        return rows, rows[:1] * len(rows)

    def _one(self, piece: Piece) -> Sides:
        """The root's data and every other host's result are the same memory."""
        row, root = ((0, piece[1]),), self.task.root
        served = self.crew.served
        return [row if host == root else () for host in served], [() if host == root else row for host in served]

    def _gathered(self, piece: Piece) -> Sides:
        """One result, which has each host's data in it."""
        row = packed([piece[1]] * self.task.hosts)
        return [row[host : host + 1] for host in self.crew.served], [row] * len(self.crew.served)

    def _exchanged(self, piece: Piece) -> Sides:
        """A row of blocks from each host, then a row of blocks for each."""
        rows, start = [], 0
        for host in (*self.crew.served, *self.crew.served):
            rows.append(packed([length for _, length in self.task.sends(host, piece)], start))
            start = sum(rows[-1][-1])
        return rows[: len(self.crew.served)], rows[len(self.crew.served) :]

    def inputs(self, index: int) -> Iterator[Parcel]:
        """What hosts give of a piece, host by host; nothing of hosts that have nothing to give."""
        piece, places = self.pieces[index], self.places(index)
        for host, rank, blocks in zip(self.crew.served, self.crew.partners, places.inputs, strict=True):
            if blocks:
                yield self._parcel(rank, self.task.sends(host, piece), blocks)

    def outputs(self, index: int) -> Iterator[Parcel]:
        """What every host gets of a piece: at the root of a broadcast no elements."""
        piece, places = self.pieces[index], self.places(index)
        for host, rank, blocks in zip(self.crew.served, self.crew.partners, places.outputs, strict=True):
            yield self._parcel(rank, self.task.receives(host, piece), blocks)

    def _parcel(self, rank: int, remote: Blocks, here: Blocks) -> Parcel:
        count = sum(length for _, length in here)
        return Parcel(rank, merged(remote), here[0][0] if here else int(self.memory.ctypes.data), count)


def slots_free(plan: Plan, lane: int) -> range:
    """The pieces of a lane that have places before any is done."""
    return range(min(plan.slots, len(plan.lanes[lane])))
