"""Shows, without MPI, that a schedule computes what its operation claims, on up to 64 ranks.

Every element of every buffer is a symbol: which element of an INPUT it is, and the set of ranks that contributed,
as bits. Rounds are executed for all ranks at once; then the ranks' views apart from each other
(:mod:`collectives.processes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collectives.processes import check_views
from collectives.schedule import (
    BUFFERS,
    INPUT,
    OUTPUT,
    Flags,
    Int,
    Schedule,
    ScheduleError,
    Table,
    View,
    bounds,
    tabulate,
)

MAX_RANKS = 64
Bits = NDArray[np.uint64]
Symbols = tuple[Int, Bits]


def check(schedule: Schedule) -> None:
    """All checks. Raises ScheduleError at the first fault; ValueError for more than 64 ranks."""
    if schedule.ranks > MAX_RANKS:
        raise ValueError(f"sets of ranks have {MAX_RANKS} bits: {schedule.ranks} ranks cannot be checked")
    table = tabulate(schedule.rounds)
    check_regions(schedule, table)
    check_result(schedule, table)
    check_views(View.of(table, rank) for rank in range(schedule.ranks))


def _region(buffer: int, at: int, count: int) -> str:
    name = BUFFERS[buffer] if 0 <= buffer < len(BUFFERS) else f"buffer {buffer}"
    return f"{name}[{at}:{at + count}]"


def describe(table: Table, i: int) -> str:
    """Message ``i`` in words: round, ranks, regions."""
    m = table.messages
    read = _region(int(m.read_from[i]), int(m.read_at[i]), int(m.count[i]))
    written = _region(int(m.write_to[i]), int(m.write_at[i]), int(m.count[i]))
    how = "combined into" if m.combine[i] else "to"
    return f"round {table.number[i]}: {read} of rank {m.source[i]} {how} {written} of rank {m.target[i]}"


def _refuse(table: Table, wrong: Flags, what: str) -> None:
    """Raise for the first message that is ``wrong``, if any."""
    if wrong.any():
        raise ScheduleError(f"{describe(table, int(np.argmax(wrong)))}: {what}")


# Regions


def check_regions(schedule: Schedule, table: Table) -> None:
    """Ranks, buffers, offsets and overlaps of every message; raises ScheduleError."""
    _check_bounds(schedule, table)
    m, total = table.messages, int(schedule.sizes.sum())
    base = table.number * total
    read_at = base + _flat(schedule, m.read_from, m.source, m.read_at)
    write_at = base + _flat(schedule, m.write_to, m.target, m.write_at)
    plain, folded, local = np.flatnonzero(~m.combine), np.flatnonzero(m.combine), np.flatnonzero(m.local)
    every = np.arange(len(table))
    reads, writes = _Spans(every, read_at, m.count), _Spans(every, write_at, m.count)
    overwritten, combined = writes.take(plain), writes.take(folded)
    _refuse_overlap(table, overwritten, overwritten, "overwrites a region that the same round overwrites")
    _refuse_overlap(table, overwritten, combined, "overwrites a region that the same round combines into")
    _refuse_overlap(table, overwritten, reads, "overwrites a region that the same round reads")
    _refuse_overlap(table, combined, reads.take(local), "combines into a region that a local message reads")


def _check_bounds(schedule: Schedule, table: Table) -> None:
    m, ranks, sizes = table.messages, schedule.ranks, schedule.sizes
    for rank in (m.source, m.target):
        _refuse(table, (rank < 0) | (rank >= ranks), f"there are {ranks} ranks")
    for buffer in (m.read_from, m.write_to):
        _refuse(table, (buffer < 0) | (buffer >= len(BUFFERS)), "there is no such buffer")
    _refuse(table, m.write_to == INPUT, "writes to INPUT")
    least = 0 if schedule.operation == "barrier" else 1
    _refuse(table, m.count < least, "carries nothing")
    for buffer, rank, at in ((m.read_from, m.source, m.read_at), (m.write_to, m.target, m.write_at)):
        outside = (at < 0) | (at + m.count > sizes[buffer, rank])
        if outside.any():
            i = int(np.argmax(outside))
            size = sizes[buffer[i], rank[i]]
            _refuse(table, outside, f"{BUFFERS[buffer[i]]} of rank {rank[i]} has {size} elements")


def _flat(schedule: Schedule, buffer: Int, rank: Int, at: Int) -> Int:
    """Where an element is when the buffers of all ranks lie end to end."""
    starts = np.cumsum(schedule.sizes) - schedule.sizes.reshape(-1)
    return np.asarray(starts[buffer * schedule.ranks + rank] + at)


@dataclass(frozen=True)
class _Spans:
    """Regions on one line, and the message that each belongs to."""

    message: Int
    at: Int
    count: Int

    def take(self, chosen: Int) -> _Spans:
        return _Spans(self.message[chosen], self.at[chosen], self.count[chosen])


def _overlapping(spans: _Spans, others: _Spans) -> Int:
    """How many of ``others`` each of ``spans`` overlaps, itself included; regions of no elements overlap none."""
    real = others.count > 0
    starts, ends = np.sort(others.at[real]), np.sort((others.at + others.count)[real])
    begun = np.searchsorted(starts, spans.at + spans.count, "left")
    over = np.searchsorted(ends, spans.at, "right")
    return np.where(spans.count > 0, begun - over, 0)


def _refuse_overlap(table: Table, spans: _Spans, others: _Spans, what: str) -> None:
    wrong = np.flatnonzero(_overlapping(spans, others) > int(spans is others))
    if not wrong.size:
        return
    at, count, mine = spans.at[wrong[0]], spans.count[wrong[0]], spans.message[wrong[0]]
    meets = (others.at < at + count) & (others.at + others.count > at) & (others.count > 0)
    meets &= (others.message != mine) | (spans is not others)
    other = int(others.message[np.argmax(meets)])
    raise ScheduleError(f"{describe(table, int(mine))}: {what} ({describe(table, other)})")


# Results


def check_result(schedule: Schedule, table: Table) -> None:
    """Execute symbolically and compare every OUTPUT with the claim; regions must have been checked. ScheduleError."""
    if schedule.operation == "barrier":
        _check_barrier(schedule, table)
        return
    state = _Memory(schedule)
    for part in _by_round(table):
        state.step(part)
    state.compare(_claim(schedule))


def _by_round(table: Table) -> Iterator[Table]:
    ends = np.flatnonzero(np.diff(table.number, append=-1)) + 1
    first = 0
    for end in ends.tolist():
        yield table.where(slice(first, end))
        first = end


def _check_barrier(schedule: Schedule, table: Table) -> None:
    came = np.uint64(1) << np.arange(schedule.ranks, dtype="u8")
    everyone = np.bitwise_or.reduce(came)
    for part in _by_round(table):
        np.bitwise_or.at(came, part.messages.target, came[part.messages.source])
    if (came != everyone).any():
        rank = int(np.argmax(came != everyone))
        raise ScheduleError(f"rank {rank} may leave the barrier before {_ranks(int(everyone & ~came[rank]))} came")


def _ranks(mask: int) -> str:
    found = [str(rank) for rank in range(MAX_RANKS) if mask >> rank & 1]
    return f"rank {found[0]}" if len(found) == 1 else f"ranks {', '.join(found) or 'none'}"


def _claim(schedule: Schedule) -> Symbols:
    """What OUTPUT of all ranks, end to end, must hold; ScheduleError for an operation without a claim."""
    ranks, count = schedule.ranks, schedule.count
    one = np.uint64(1) << np.arange(ranks, dtype="u8")
    everyone = np.bitwise_or.reduce(one)
    index = np.arange(count)
    if schedule.operation == "allreduce":
        return np.tile(index, ranks), np.full(ranks * count, everyone)
    if schedule.operation == "broadcast":
        root = int(np.argmax(schedule.sizes[INPUT]))
        return np.tile(index, ranks), np.full(ranks * count, one[root])
    if schedule.operation == "allgather":
        return np.tile(index, ranks * ranks), np.tile(np.repeat(one, count), ranks)
    if schedule.operation == "reduce_scatter":
        return index, np.full(count, everyone)
    if schedule.operation == "alltoall":
        blocks = np.split(index, bounds(count, ranks)[1:-1])
        masks = [np.repeat(one, block.size) for block in blocks]
        return np.concatenate([np.tile(block, ranks) for block in blocks]), np.concatenate(masks)
    raise ScheduleError(f"what {schedule.operation} claims is not known")


class _Memory:
    """The symbols of every element of every buffer, end to end; no contributor means never written."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        total, given = int(schedule.sizes.sum()), schedule.sizes[INPUT]
        self.index, self.mask = np.full(total, -1), np.zeros(total, "u8")
        ranks = np.repeat(np.arange(schedule.ranks), given)
        starts = np.repeat(np.cumsum(given) - given, given)
        self.index[: ranks.size] = np.arange(ranks.size) - starts
        self.mask[: ranks.size] = np.uint64(1) << ranks.astype("u8")

    def step(self, part: Table) -> None:
        """One round: all reads, then all writes."""
        m = part.messages
        read = _elements(_flat(self.schedule, m.read_from, m.source, m.read_at), m.count)
        write = _elements(_flat(self.schedule, m.write_to, m.target, m.write_at), m.count)
        owner = np.repeat(np.arange(len(m)), m.count)
        index, mask = self.index[read], self.mask[read]
        self._refuse(part, owner, mask == 0, "reads what was never written")
        combine = m.combine[owner]
        plain = write[~combine]
        self.index[plain], self.mask[plain] = index[~combine], mask[~combine]
        for layer in _layers(m.combine, write, owner):
            self._combine(part, owner[layer], write[layer], (index[layer], mask[layer]))

    def _combine(self, part: Table, owner: Int, write: Int, arriving: Symbols) -> None:
        index, mask = arriving
        there = self.mask[write]
        self._refuse(part, owner, there == 0, "combines into what was never written")
        self._refuse(part, owner, self.index[write] != index, "combines different elements")
        self._refuse(part, owner, (there & mask) != 0, "adds the share of a rank twice")
        self.mask[write] = there | mask

    @staticmethod
    def _refuse(part: Table, owner: Int, wrong: Flags, what: str) -> None:
        if wrong.any():
            first = int(np.argmax(wrong))
            i = int(owner[first])
            element = first - int(np.searchsorted(owner, i))
            raise ScheduleError(f"{describe(part, i)}: {what}, at its element {element}")

    def compare(self, claim: Symbols) -> None:
        """Raise ScheduleError where OUTPUT is not what ``claim`` tells."""
        sizes = self.schedule.sizes
        first, last = int(sizes[INPUT].sum()), int(sizes[: OUTPUT + 1].sum())
        if claim[0].size != last - first:
            raise ScheduleError(f"{last - first} elements of OUTPUT in all, where {claim[0].size} are claimed")
        index, mask = self.index[first:last], self.mask[first:last]
        wrong = (index != claim[0]) | (mask != claim[1])
        if wrong.any():
            i = int(np.argmax(wrong))
            ends = np.cumsum(sizes[OUTPUT])
            rank = int(np.searchsorted(ends, i, "right"))
            has, should = (f"element {a[i]} of {_ranks(int(b[i]))}" for a, b in ((index, mask), claim))
            raise ScheduleError(
                f"at the end: OUTPUT[{i - ends[rank] + sizes[OUTPUT, rank]}] of rank {rank}"
                f" holds {has if mask[i] else 'nothing'}, not {should}"
            )


def _elements(at: Int, count: Int) -> Int:
    """Every element of regions, one after the other."""
    ends = np.cumsum(count)
    return np.arange(int(ends[-1]) if ends.size else 0) + np.repeat(at - ends + count, count)


def _layers(combine: Flags, write: Int, owner: Int) -> Iterable[Flags]:
    """The elements that combine, in groups that meet no element twice: all, or message by message."""
    which = combine[owner]
    if np.unique(write[which]).size == int(which.sum()):
        return [which] if which.any() else []
    return (owner == i for i in np.flatnonzero(combine))
