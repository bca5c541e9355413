"""Allreduce: every rank gets the sum over all ranks of ``count`` elements.

With p ranks, n bytes, latency a, b seconds per byte and c seconds per byte reduced (Thakur, Rabenseifner and Gropp,
"Optimization of collective communication operations in MPICH", 2005). Recursive doubling and Rabenseifner's
algorithm fold the ranks beyond a power of two, for 2 a + 2 n b + n c more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from collectives.schedule import INPUT, Int, Round, Rounds, Schedule, bounds, sizes
from collectives.schedules import phases

Phase = Callable[[Int, Int, Int], Iterator[Round]]


def allreduce(algorithm: str, ranks: int, count: int, make: Callable[[], Iterator[Round]]) -> Schedule:
    """The schedule of an allreduce whose rounds ``make`` makes, without scratch."""
    return Schedule("allreduce", algorithm, ranks, count, sizes(ranks, count, count), Rounds(make))


def ring(ranks: int, count: int) -> Schedule:
    """Reduce-scatter and allgather round a ring: 2(p - 1) a + 2(p - 1)/p n b + (p - 1)/p n c.

    Patarasuk and Yuan 2009. INPUT is never copied: what arrives in OUTPUT gets the rank's share added from INPUT.
    """
    return allreduce("ring", ranks, count, partial(_ring, ranks, count))


def recursive_doubling(ranks: int, count: int) -> Schedule:
    """All that is known, exchanged at distances 1, 2, 4, ...: lg p (a + n b + n c)."""
    return allreduce("recursive-doubling", ranks, count, partial(_copied, ranks, count, phases.doubling_allreduce))


def rabenseifner(ranks: int, count: int) -> Schedule:
    """Recursive halving, then doubling: 2 lg p a + 2(p - 1)/p n b + (p - 1)/p n c (Rabenseifner 2004)."""
    return allreduce("rabenseifner", ranks, count, partial(_copied, ranks, count, phases.rabenseifner_allreduce))


def binomial(ranks: int, count: int) -> Schedule:
    """A binomial reduction to rank 0 and a broadcast from it: 2 lg p (a + n b) + lg p n c."""
    return allreduce("binomial", ranks, count, partial(_copied, ranks, count, _binomial))


def _ring(ranks: int, count: int) -> Iterator[Round]:
    members, cuts = phases.flat(ranks), bounds(count, ranks)[None, :]
    if ranks == 1:
        yield phases.copy_in(members, 0, count)
    yield from phases.ring_reduce_scatter(members, cuts, own=INPUT)
    yield from phases.ring_allgather(members, cuts, ahead=1)


def _copied(ranks: int, count: int, phase: Phase) -> Iterator[Round]:
    members, at = phases.flat(ranks), bounds(count, 1)
    yield phases.copy_in(members, 0, count)
    yield from phase(members, at[:1], at[1:])


def _binomial(members: Int, at: Int, count: Int) -> Iterator[Round]:
    yield from phases.binomial_reduce(members, at, count)
    yield from phases.binomial_broadcast(members, at, count)
