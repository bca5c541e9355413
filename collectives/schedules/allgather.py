"""Allgather: every rank gets the ``count`` elements of all ranks, in rank order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from collectives.schedule import INPUT, SCRATCH, Round, Rounds, Schedule, join, messages, sizes
from collectives.schedules.phases import steps


def _schedule(
    algorithm: str, ranks: int, count: int, make: Callable[[], Iterator[Round]], scratch: int = 0
) -> Schedule:
    return Schedule("allgather", algorithm, ranks, count, sizes(ranks, count, ranks * count, scratch), Rounds(make))


def ring(ranks: int, count: int) -> Schedule:
    """Every rank passes on what it got last: (p - 1)(a + n b), n bytes given by each (Thakur et al. 2005)."""
    return _schedule("ring", ranks, count, partial(_ring, ranks, count))


def _ring(ranks: int, count: int) -> Iterator[Round]:
    rank = np.arange(ranks)
    following = (rank + 1) % ranks
    own = messages(rank, rank, 0, count, read_from=INPUT, write_at=rank * count)
    if ranks == 1:
        yield own
        return
    yield join([messages(rank, following, 0, count, read_from=INPUT, write_at=rank * count), own])
    for step in range(1, ranks - 1):
        yield messages(rank, following, (rank - step) % ranks * count, count)


def bruck(ranks: int, count: int) -> Schedule:
    """All that is known goes to the rank 1, 2, 4, ... before: ceil(lg p) a + (p - 1) n b (Bruck et al. 1997).

    SCRATCH holds the blocks from the rank's own on; the last round puts them in order.
    """
    return _schedule("bruck", ranks, count, partial(_bruck, ranks, count), ranks * count)


def _bruck(ranks: int, count: int) -> Iterator[Round]:
    rank = np.arange(ranks)
    yield messages(rank, rank, 0, count, read_from=INPUT, write_to=SCRATCH)
    for step in steps(ranks):
        known = min(step, ranks - step) * count
        before = (rank - step) % ranks
        yield messages(rank, before, 0, known, read_from=SCRATCH, write_to=SCRATCH, write_at=step * count)
    yield join(
        [
            messages(rank, rank, 0, (ranks - rank) * count, read_from=SCRATCH, write_at=rank * count),
            messages(rank, rank, (ranks - rank) * count, rank * count, read_from=SCRATCH, write_at=0),
        ]
    )
