"""Reduce-scatter: rank r gets block r, alone, of the sum over all ranks; the blocks are as even as can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from collectives.schedule import INPUT, SCRATCH, Round, Rounds, Schedule, bounds, join, messages, sizes
from collectives.schedules import phases


def _schedule(
    algorithm: str, ranks: int, count: int, make: Callable[[], Iterator[Round]], scratch: int = 0
) -> Schedule:
    own = np.diff(bounds(count, ranks))
    return Schedule("reduce_scatter", algorithm, ranks, count, sizes(ranks, count, own, scratch), Rounds(make))


def pairwise(ranks: int, count: int) -> Schedule:
    """At distance d every rank hands its share of block r + d to rank r + d: (p - 1)(a + n/p (b + c)).

    Thakur, Rabenseifner and Gropp 2005.
    """
    return _schedule("pairwise", ranks, count, partial(_pairwise, ranks, count))


def _pairwise(ranks: int, count: int) -> Iterator[Round]:
    rank, cuts = np.arange(ranks), bounds(count, ranks)
    for step in range(ranks):
        to = (rank + step) % ranks
        yield messages(rank, to, cuts[to], cuts[to + 1] - cuts[to], read_from=INPUT, write_at=0, combine=step > 0)


def recursive_halving(ranks: int, count: int) -> Schedule:
    """Half of what is left, exchanged at distances p/2, p/4, ...: lg p a + (p - 1)/p n (b + c).

    Thakur, Rabenseifner and Gropp 2005. Ranks beyond a power of two fold in, with their block in the hands of the
    neighbour who stands in for them, and get it at the end. SCRATCH holds the partial sums.
    """
    return _schedule("recursive-halving", ranks, count, partial(_recursive_halving, ranks, count), count)


def _recursive_halving(ranks: int, count: int) -> Iterator[Round]:
    rank, cuts = np.arange(ranks), bounds(count, ranks)
    out, stand_ins, within = phases.folded(phases.flat(ranks))
    yield messages(rank, rank, 0, count, read_from=INPUT, write_to=SCRATCH)
    yield messages(out, stand_ins, 0, count, read_from=SCRATCH, write_to=SCRATCH, combine=True)
    shared = np.concatenate([cuts[: 2 * out.size : 2], cuts[2 * out.size :]])
    yield from phases.halving(within, shared[None, :], SCRATCH)
    owners, holders = np.concatenate([within, out], axis=1), np.concatenate([within, stand_ins], axis=1)
    size = cuts[owners + 1] - cuts[owners]
    yield join([messages(holders, owners, cuts[owners], size, read_from=SCRATCH, write_at=0)])
