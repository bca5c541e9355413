"""How an operation is cut into pieces, and what a piece is of each host's operands: pure arithmetic, in elements.

What is cut is the *span* of an operation: the vector of an allreduce, a broadcast, or one host's part of an
allgather; of an all-to-all the largest block, so that a piece is a slice of every block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from collectives.offload.layout import shared_out
from collectives.operands import offsets, shares
from fabrics.errors import CannotRun

OPERATIONS = ("allreduce", "alltoall", "broadcast", "allgather")

MOST_PIECES = 1024  # each is a collective with messages of its own: many more take minutes, and hide nothing

Block = tuple[int, int]
"""Where elements begin, and how many there are."""
Piece = tuple[int, int]
"""A block of the span."""


def pieces(count: int, workers: int, chunk_elements: int | None = None) -> tuple[tuple[Piece, ...], ...]:
    """``count`` elements in pieces of ``chunk_elements`` at most, dealt in turn to ``workers`` lanes.

    Pieces differ by one element at most, and every lane gets as many where there are elements enough; without
    ``chunk_elements`` each lane has one piece.
    """
    wanted = 1 if chunk_elements is None else -(-count // chunk_elements)
    number = min(count, -(-wanted // workers) * workers)
    cut = shared_out(count, number) if number else []
    return tuple(tuple(cut[lane::workers]) for lane in range(workers))


def merged(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """The same elements in as few blocks as can be, in the same order."""
    found: list[Block] = []
    for start, length in blocks:
        if found and found[-1][0] + found[-1][1] == start:
            found[-1] = (found[-1][0], found[-1][1] + length)
        elif length:
            found.append((start, length))
    return tuple(found)


def packed(lengths: Sequence[int], start: int = 0) -> tuple[Block, ...]:
    """Blocks of these lengths one after the other."""
    return tuple((start + sum(lengths[:index]), length) for index, length in enumerate(lengths))


@dataclass(frozen=True)
class Task:
    """An operation over ``hosts`` hosts on ``count`` elements: those of one host's send buffer."""

    operation: str
    count: int
    hosts: int
    root: int = 0

    @property
    def span(self) -> int:
        """How many elements are cut into pieces."""
        return -(-self.count // self.hosts) if self.operation == "alltoall" else self.count

    @property
    def rows(self) -> int:
        """Elements of a host's send buffer for each one of the span."""
        return self.hosts if self.operation == "alltoall" else 1

    @property
    def received(self) -> int:
        """Elements of a host's receive buffer."""
        return self.count * self.hosts if self.operation == "allgather" else self.count

    def _slices(self, host: int, piece: Piece) -> tuple[Block, ...]:
        """A piece of every block of an all-to-all; block d of host s is as large as block s of host d."""
        sizes = shares(self.count, self.hosts, host)
        start, length = piece
        return tuple(
            (int(at) + start, max(0, min(length, int(size) - start)))
            for at, size in zip(offsets(sizes), sizes, strict=True)
        )

    def sends(self, host: int, piece: Piece) -> tuple[Block, ...]:
        """What of a host's send buffer belongs to a piece; nothing of a broadcast but at its root."""
        if self.operation == "alltoall":
            return self._slices(host, piece)
        return (piece,) if self.operation != "broadcast" or host == self.root else ()

    def receives(self, host: int, piece: Piece) -> tuple[Block, ...]:
        """What of a host's receive buffer a piece fills; nothing at the root of a broadcast."""
        start, length = piece
        if self.operation == "alltoall":
            return self._slices(host, piece)
        if self.operation == "allgather":
            return tuple((other * self.count + start, length) for other in range(self.hosts))
        return (piece,) if self.operation != "broadcast" or host != self.root else ()

    def staged(self, served: int) -> int:
        """Elements that a DPU of ``served`` hosts needs in its memory for each one of a piece.

        An allreduce's result takes the place of the first host's data, an allgather's has every host's data in it.
        """
        return {
            "allreduce": served,
            "broadcast": 1,
            "allgather": self.hosts,
            "alltoall": 2 * served * self.hosts,
        }[self.operation]


@dataclass(frozen=True)
class Plan:
    """The pieces of every lane, and how many of them a worker stages at a time, each in ``slot_bytes``."""

    lanes: tuple[tuple[Piece, ...], ...]
    slots: int
    slot_bytes: int

    @property
    def longest(self) -> int:
        """Elements of the span in the longest piece."""
        return max((length for lane in self.lanes for _, length in lane), default=0)

    @property
    def used(self) -> tuple[int, ...]:
        """The lanes that have pieces."""
        return tuple(lane for lane, dealt in enumerate(self.lanes) if dealt)

    @property
    def order(self) -> tuple[tuple[int, Piece], ...]:
        """Every piece and its lane, as they were cut."""
        dealt = [(piece, lane) for lane, row in enumerate(self.lanes) for piece in row]
        return tuple((lane, piece) for piece, lane in sorted(dealt))


def planned(
    task: Task, workers: int, served: int, element_bytes: int, chunk_bytes: int | None, memory_bytes: int | None
) -> Plan:
    """The plan of a task on DPUs that serve up to ``served`` hosts each.

    ``chunk_bytes`` of a host's send buffer are a piece at most, or the whole of it is one of each lane;
    ``memory_bytes`` of a DPU bound what it stages: pieces are then fewer at a time, or smaller. Raises CannotRun where
    the memory does not hold one element, and where there are more pieces than :data:`MOST_PIECES`.
    """
    each = task.staged(served) * element_bytes
    chunk = None if chunk_bytes is None else max(1, chunk_bytes // (task.rows * element_bytes))
    lanes = pieces(task.span, workers, chunk)
    whole = Plan(lanes, 0, 0)
    _few(whole, task, element_bytes, f"pieces of {chunk_bytes} B")
    if memory_bytes is None:
        return Plan(lanes, max(map(len, lanes)), whole.longest * each)
    room = memory_bytes // workers // each
    if not room and task.span:
        raise CannotRun(
            f"{memory_bytes} B of a DPU's memory are too few to stage an {task.operation}: it takes {each * workers} B"
            " for one element of each worker"
        )
    if whole.longest * len(lanes[0]) > room and 2 * whole.longest > room:
        whole = Plan(pieces(task.span, workers, max(1, room // 2)), 0, 0)
        _few(whole, task, element_bytes, f"{memory_bytes} B of a DPU's memory")
    fitting = room // max(1, whole.longest)
    return Plan(whole.lanes, min(max(map(len, whole.lanes)), fitting), whole.longest * each)


def _few(plan: Plan, task: Task, element_bytes: int, by: str) -> None:
    """Raise CannotRun for more pieces than anybody waits for."""
    number = sum(map(len, plan.lanes))
    if number > MOST_PIECES:
        raise CannotRun(
            f"{by} cut an {task.operation} of {task.count * element_bytes} B into {number} pieces: {MOST_PIECES} at"
            " most, so give larger ones, or more memory"
        )


def pipeline(number: int, slots: int) -> Iterator[tuple[str, int]]:
    """The order in which a worker does ``number`` pieces with ``slots`` places for them.

    ``take``: wait for a piece's data and start its collective. ``give``: wait for the collective and start to hand
    out its result. ``free``: wait until that is done; the place is then the next piece's.
    """
    given = freed = 0
    for piece in range(number):
        while freed <= piece - slots:
            if given <= freed:
                yield "give", given
                given += 1
            yield "free", freed
            freed += 1
        yield "take", piece
        if piece and given < piece:  # two collectives are under way by now
            yield "give", given
            given += 1
        if freed < given - 1:  # a result has been on its way for as long as a piece takes
            yield "free", freed
            freed += 1
    yield from (("give", piece) for piece in range(given, number))
    yield from (("free", piece) for piece in range(freed, number))
