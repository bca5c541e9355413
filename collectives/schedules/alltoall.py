"""All-to-all: block j of a rank's ``count`` elements goes to rank j, which keeps what it gets in rank order.

Blocks are as even as can be, so rank r receives ``ranks`` blocks of the size of block r.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from collectives.schedule import INPUT, SCRATCH, Round, Rounds, Schedule, bounds, messages, sizes
from collectives.schedules.phases import steps


def _schedule(
    algorithm: str, ranks: int, count: int, make: Callable[[], Iterator[Round]], scratch: int = 0
) -> Schedule:
    got = ranks * np.diff(bounds(count, ranks))
    return Schedule("alltoall", algorithm, ranks, count, sizes(ranks, count, got, scratch), Rounds(make))


def pairwise(ranks: int, count: int) -> Schedule:
    """At distance d = 1, 2, ... rank r sends to r + d and receives from r - d: (p - 1)(a + n/p b) (Thakur 2005)."""
    return _schedule("pairwise", ranks, count, partial(_pairwise, ranks, count))


def _pairwise(ranks: int, count: int) -> Iterator[Round]:
    rank, cuts = np.arange(ranks), bounds(count, ranks)
    for step in range(ranks):
        to = (rank + step) % ranks
        size = cuts[to + 1] - cuts[to]
        yield messages(rank, to, cuts[to], size, read_from=INPUT, write_at=rank * size)


def bruck(ranks: int, count: int) -> Schedule:
    """Blocks with bit k of their distance set travel 2^k ranks together: lg p a + lg p n/2 b (Bruck et al. 1997).

    Blocks stay where they arrive; only what leaves is packed, so that a message is one region. SCRATCH holds a
    message to send and the messages of all rounds.
    """
    plan = _Bruck(ranks, count)
    return _schedule("bruck", ranks, count, plan.rounds, plan.scratch)


class _Bruck:
    """Where the block that has still to go, or came, ``slot`` ranks is at each rank, and how large it is.

    At rank r slot i starts as the block for rank r + i. When the bits below 2^k have been travelled, it holds a
    block that has come i mod 2^k ranks, for rank r + i - i mod 2^k.
    """

    def __init__(self, ranks: int, count: int) -> None:
        self.ranks, self.cuts = ranks, bounds(count, ranks)
        self.size = np.diff(self.cuts)
        longest = int(self.size[0])
        slot = np.arange(ranks)
        self.moving = [np.flatnonzero(slot & step) for step in steps(ranks)]
        room = [moving.size * longest for moving in self.moving]
        self.arrivals = max(room, default=0) + np.cumsum([0, *room])  # SCRATCH begins with the message to send
        self.scratch = int(self.arrivals[-1])

    def rounds(self) -> Iterator[Round]:
        rank, slot = np.arange(self.ranks)[:, None], np.arange(self.ranks)[None, :]
        start = (rank + slot) % self.ranks
        buffer, at = np.full(start.shape, INPUT), self.cuts[start]
        for step, moving, arrival in zip(steps(self.ranks), self.moving, self.arrivals.tolist(), strict=False):
            size = self.size[(rank + moving - moving % step) % self.ranks]
            packed = np.cumsum(size, axis=1) - size
            yield messages(
                rank, rank, at[:, moving], size, read_from=buffer[:, moving], write_to=SCRATCH, write_at=packed
            )
            target = (rank + step) % self.ranks
            total = size.sum(axis=1, keepdims=True)
            yield messages(rank, target, 0, total, read_from=SCRATCH, write_to=SCRATCH, write_at=arrival)
            buffer[:, moving] = SCRATCH
            at[:, moving] = arrival + np.roll(packed, step, axis=0)
        origin = (rank - slot) % self.ranks
        yield messages(rank, rank, at, self.size[rank], read_from=buffer, write_at=origin * self.size[rank])
