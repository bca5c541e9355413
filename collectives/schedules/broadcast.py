"""Broadcast: the root's ``count`` elements to all ranks' OUTPUT; only the root has an INPUT, and sends from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from collectives.schedule import INPUT, Int, Round, Rounds, Schedule, bounds, join, messages, sizes
from collectives.schedules import phases


def binomial(ranks: int, count: int, root: int = 0) -> Schedule:
    """Along a binomial tree: ceil(lg p)(a + n b). ValueError for a root that is not a rank."""
    members = _from_root(ranks, root)
    return _schedule("binomial", members, count, count, partial(_binomial, members, count))


def scatter_allgather(ranks: int, count: int, root: int = 0) -> Schedule:
    """Blocks down a binomial tree, then round a ring: (ceil(lg p) + p - 1) a + 2(p - 1)/p n b (van de Geijn).

    Barnett et al. 1994; Thakur et al. 2005. The root's OUTPUT is filled by the ring as everyone's is.
    """
    members = _from_root(ranks, root)
    own = int(bounds(count, ranks)[1])
    return _schedule("scatter-allgather", members, count, own, partial(_scatter_allgather, members, count))


def _from_root(ranks: int, root: int) -> Int:
    if not 0 <= root < ranks:
        raise ValueError(f"root {root} is not one of {ranks} ranks")
    return np.roll(phases.flat(ranks), -root, axis=1)


def _schedule(algorithm: str, members: Int, count: int, copied: int, make: partial[Iterator[Round]]) -> Schedule:
    """The root's sends read INPUT, and it copies its first ``copied`` elements to OUTPUT beside its first sends."""
    root, ranks = int(members[0, 0]), members.size
    given = np.where(np.arange(ranks) == root, count, 0)
    rounds = Rounds(partial(_with_copy, root, copied, make))
    return Schedule("broadcast", algorithm, ranks, count, sizes(ranks, given, count), rounds)


def _with_copy(root: int, copied: int, make: partial[Iterator[Round]]) -> Iterator[Round]:
    rounds = _reading_input(root, make())
    copy = phases.copy_in(np.array([root]), 0, copied)
    yield join([next(rounds, messages([], [], [], [])), copy])
    yield from rounds


def _reading_input(root: int, rounds: Iterable[Round]) -> Iterator[Round]:
    for made in rounds:
        yield replace(made, read_from=np.where(made.source == root, INPUT, made.read_from))


def _binomial(members: Int, count: int) -> Iterator[Round]:
    return phases.binomial_broadcast(members, np.zeros(1, "i8"), np.full(1, count, "i8"))


def _scatter_allgather(members: Int, count: int) -> Iterator[Round]:
    ranks, cuts = members.size, bounds(count, members.size)
    for step in reversed(phases.steps(ranks)):
        to = np.arange(step, ranks, 2 * step)
        at, end = cuts[to], cuts[np.minimum(to + step, ranks)]
        yield messages(members[0, to - step], members[0, to], at, end - at)
    yield from phases.ring_allgather(members, cuts[None, :])
