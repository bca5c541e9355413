"""A collective as data: rounds of messages over all ranks at once.

An algorithm is a pure function ``(ranks, count, ...) -> Schedule``. Three readers share what it returns: the native
reader lowers one rank's :class:`View` to MPI calls, :mod:`collectives.checker` executes it symbolically for all
ranks, :mod:`collectives.simulate` times it. Offsets and counts are in elements. Nothing here needs MPI.

Within a round every read comes before every write, so that a rank may send a region and combine what arrives into
it. A region that is overwritten is touched by no other message of the round, and one that is combined into is read
by no local message: what a round computes does not depend on the order in which its messages are carried out, save
for the rounding of several combines into one region. Those happen in the order of the arrays, local ones last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

Int = NDArray[np.int64]
Flags = NDArray[np.bool_]

INPUT, OUTPUT, SCRATCH = 0, 1, 2
BUFFERS = ("INPUT", "OUTPUT", "SCRATCH")


class ScheduleError(Exception):
    """A schedule is wrong: in which round, between which ranks, at which region, and how."""


@dataclass(frozen=True, eq=False)
class Round:
    """Messages that may all be under way together; every array has one entry per message.

    ``source`` reads ``count`` elements at ``read_at`` of its buffer ``read_from``; ``target`` writes them at
    ``write_at`` of its buffer ``write_to``, reducing them into what is there where ``combine`` is set. A message of
    a rank to itself is a local copy or reduction. Messages between one pair of ranks match in the arrays' order.
    """

    source: Int
    target: Int
    read_from: Int
    read_at: Int
    write_to: Int
    write_at: Int
    count: Int
    combine: Flags

    def __len__(self) -> int:
        return self.source.size

    @property
    def local(self) -> Flags:
        """Which messages a rank sends to itself."""
        return np.equal(self.source, self.target)

    def where(self, chosen: Flags | Int | slice) -> Round:
        """The chosen messages, in their order."""
        return Round(*(getattr(self, f.name)[chosen] for f in fields(self)))


def messages(
    source: ArrayLike,
    target: ArrayLike,
    at: ArrayLike,
    count: ArrayLike,
    *,
    read_from: ArrayLike = OUTPUT,
    write_to: ArrayLike = OUTPUT,
    write_at: ArrayLike | None = None,
    combine: bool = False,
    empty: bool = False,
) -> Round:
    """A round of these messages, all arguments broadcast to one shape and flattened.

    ``at`` is the offset at the source, and at the target too unless ``write_at`` is given. Messages of no elements
    are left out unless ``empty``.
    """
    columns = (source, target, read_from, at, write_to, at if write_at is None else write_at, count)
    arrays = [np.asarray(column, "i8") for column in columns]
    flat = np.empty((len(arrays), *np.broadcast_shapes(*(array.shape for array in arrays))), "i8")
    for i, array in enumerate(arrays):
        flat[i, ...] = array
    rows = list(flat.reshape(len(arrays), -1))
    made = Round(*(*rows, np.full(rows[0].size, combine)))
    return made if empty or (made.count > 0).all() else made.where(made.count > 0)


def join(rounds: Iterable[Round]) -> Round:
    """The messages of several rounds in one, in order."""
    parts = list(rounds)
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return messages([], [], [], [])
    return Round(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Round)))


@dataclass(frozen=True)
class Rounds:
    """Rounds made anew at every iteration by ``make``, and never all held; rounds without messages are left out."""

    make: Callable[[], Iterable[Round]]

    def __iter__(self) -> Iterator[Round]:
        return (made for made in self.make() if len(made))


@dataclass(frozen=True, eq=False)
class Table:
    """Messages of many rounds: ``number`` is the round (from 0) of each, never falling."""

    number: Int
    messages: Round

    def __len__(self) -> int:
        return len(self.messages)

    def where(self, chosen: Flags | Int | slice) -> Table:
        """The chosen messages, in their order."""
        return Table(self.number[chosen], self.messages.where(chosen))

    def of_round(self, number: int) -> Round:
        """The messages of one round."""
        first, last = np.searchsorted(self.number, [number, number + 1])
        return self.messages.where(slice(int(first), int(last)))


def tabulate(rounds: Iterable[Round]) -> Table:
    """All messages of ``rounds`` in one table: for schedules that fit into memory."""
    parts = list(rounds)
    return Table(np.repeat(np.arange(len(parts)), [len(part) for part in parts]), join(parts))


@dataclass(frozen=True, eq=False)
class Part:
    """What one rank does in one round; where ``receives.combine`` is set, what arrives is reduced into its region.

    A reader may carry it out as: post all receives (those that combine into memory of its own), post all sends,
    wait for all, reduce what was received, then the local messages.
    """

    number: int
    receives: Round
    sends: Round
    local: Round


@dataclass(frozen=True, eq=False)
class View:
    """One rank's messages, in the order of its peers' views: the k-th send to a peer is its k-th receive."""

    rank: int
    receives: Table
    sends: Table
    local: Table

    @classmethod
    def of(cls, table: Table, rank: int) -> View:
        """The part that ``rank`` has in ``table``."""
        to_me, from_me = table.messages.target == rank, table.messages.source == rank
        chosen = (to_me & ~from_me, from_me & ~to_me, to_me & from_me)
        return cls(rank, *(table.where(np.flatnonzero(which)) for which in chosen))

    def __iter__(self) -> Iterator[Part]:
        """Its parts, of the rounds in which it has one."""
        tables = (self.receives, self.sends, self.local)
        for number in np.unique(np.concatenate([table.number for table in tables])).tolist():
            yield Part(number, *(table.of_round(number) for table in tables))


@dataclass(frozen=True, eq=False)
class Schedule:
    """A collective operation on ``ranks`` ranks, ``count`` elements in one rank's send buffer.

    ``sizes`` has the elements of each buffer (rows INPUT, OUTPUT, SCRATCH) of each rank (columns). ``rounds`` may be
    iterated again and again. Raises ValueError where the numbers make no sense.
    """

    operation: str
    algorithm: str
    ranks: int
    count: int
    sizes: Int
    rounds: Iterable[Round]

    def __post_init__(self) -> None:
        if self.ranks < 1 or self.count < 0:
            raise ValueError(f"{self.operation} of {self.count} elements on {self.ranks} ranks cannot be")
        if self.sizes.shape != (len(BUFFERS), self.ranks):
            raise ValueError(f"sizes must be {len(BUFFERS)} x {self.ranks}: {self.sizes.shape}")

    def view(self, rank: int) -> View:
        """What ``rank`` does; holds only its own messages. ValueError for a rank that is not there."""
        if not 0 <= rank < self.ranks:
            raise ValueError(f"rank {rank} is not one of {self.ranks}")
        mine = (made.where((made.source == rank) | (made.target == rank)) for made in self.rounds)
        return View.of(tabulate(mine), rank)


def bounds(count: int, parts: int) -> Int:
    """Where the blocks of ``count`` elements begin, and the end: ``parts + 1`` offsets, blocks as even as can be.

    The first blocks are the longer ones. ValueError for no parts, or for fewer than no elements.
    """
    if parts < 1 or count < 0:
        raise ValueError(f"{count} elements cannot be cut into {parts} blocks")
    at = np.arange(parts + 1, dtype="i8")
    return at * (count // parts) + np.minimum(at, count % parts)


def sizes(ranks: int, given: ArrayLike, got: ArrayLike, scratch: ArrayLike = 0) -> Int:
    """``Schedule.sizes``: elements of INPUT, OUTPUT and SCRATCH, for all ranks alike or one entry per rank."""
    table = np.zeros((len(BUFFERS), max(0, ranks)), "i8")
    for row, size in zip(table, (given, got, scratch), strict=True):
        row[:] = size
    return table
