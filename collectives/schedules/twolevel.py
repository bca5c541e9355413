"""Allreduce in two levels: within hosts, across hosts, within hosts.

``hosts`` names each rank's host, in any order (block or cyclic) and number. With q ranks on each of N hosts, latency
and seconds per byte a_i, b_i within and a_x, b_x across hosts (Karonis et al. 2000 for hierarchies; Bayatpour et al.
2017 for several leaders).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from collectives.schedule import INPUT, Int, Round, Schedule, bounds, messages
from collectives.schedules import phases
from collectives.schedules.allreduce import Phase, allreduce

ACROSS: dict[str, Phase] = {
    "ring": phases.ring_allreduce,
    "recursive-doubling": phases.doubling_allreduce,
    "rabenseifner": phases.rabenseifner_allreduce,
}


def leaders(ranks: int, count: int, hosts: Sequence[int], across: str = "rabenseifner") -> Schedule:
    """Reduce to each host's first rank, allreduce among those, broadcast from them.

    Costs a binomial reduction and a broadcast of n on q ranks, and an allreduce of n on N. ``across`` is one of
    ACROSS. ValueError for a wrong number of hosts or an unknown algorithm.
    """
    return allreduce(
        "two-level-leaders", ranks, count, partial(_leaders, _by_host(ranks, hosts), count, _across(across))
    )


def reduce_scatter_allgather(ranks: int, count: int, hosts: Sequence[int], across: str = "rabenseifner") -> Schedule:
    """Each host's ranks reduce a block each, allreduce it with their fellows on other hosts, and share the result.

    2(q - 1)(a_i + n/q b_i) + (q - 1)/q n c, and an allreduce of n/q on N in each of q columns at once. On hosts
    with more ranks than the smallest one has, the ranks beyond give and get, but own no block. Raises as ``leaders``.
    """
    make = partial(_columns, _by_host(ranks, hosts), count, _across(across))
    return allreduce("two-level-reduce-scatter", ranks, count, make)


def _across(name: str) -> Phase:
    if name not in ACROSS:
        raise ValueError(f"no allreduce across hosts by {name}: one of {', '.join(ACROSS)}")
    return ACROSS[name]


def _by_host(ranks: int, hosts: Sequence[int]) -> list[Int]:
    """The ranks of each host in rising order, hosts in the order of their first rank."""
    if len(hosts) != ranks:
        raise ValueError(f"{len(hosts)} hosts given for {ranks} ranks")
    of_rank = np.asarray(hosts)
    return [np.flatnonzero(of_rank == host) for host in dict.fromkeys(of_rank.tolist())]


def _same_size(by_host: list[Int]) -> list[Int]:
    """The hosts' ranks as arrays of shape (hosts of that size, size)."""
    return [
        np.stack([mine for mine in by_host if mine.size == size]) for size in sorted({mine.size for mine in by_host})
    ]


def _leaders(by_host: list[Int], count: int, across: Phase) -> Iterator[Round]:
    alike = _same_size(by_host)
    first = np.array([[mine[0] for mine in by_host]], "i8")
    yield phases.copy_in(np.concatenate(by_host), 0, count)
    yield from phases.side_by_side(phases.binomial_reduce(g, *_whole(g, count)) for g in alike)
    yield from across(first, *_whole(first, count))
    yield from phases.side_by_side(phases.binomial_broadcast(g, *_whole(g, count)) for g in alike)


def _whole(members: Int, count: int) -> tuple[Int, Int]:
    """Offset and count of the whole buffer, for each group."""
    return np.zeros(len(members), "i8"), np.full(len(members), count, "i8")


def _columns(by_host: list[Int], count: int, across: Phase) -> Iterator[Round]:
    alike = _same_size(by_host)
    owners = np.stack([mine[: alike[0].shape[1]] for mine in by_host], axis=1)  # (columns, hosts)
    cuts = bounds(count, len(owners))
    yield phases.copy_in(owners, cuts[:-1, None], np.diff(cuts)[:, None])
    yield from phases.side_by_side(_to_owners(g, cuts) for g in alike)
    yield from across(owners, cuts[:-1], np.diff(cuts))
    yield from phases.side_by_side(_from_owners(g, cuts) for g in alike)


def _to_owners(members: Int, cuts: Int) -> Iterator[Round]:
    """Pairwise: at distance d every rank hands its share of a block to the block's owner."""
    size, block = members.shape[1], np.arange(cuts.size - 1)
    for step in range(1, size):
        giver = members[:, (block - step) % size]
        yield messages(giver, members[:, block], cuts[:-1], np.diff(cuts), read_from=INPUT, combine=True)


def _from_owners(members: Int, cuts: Int) -> Iterator[Round]:
    size, block = members.shape[1], np.arange(cuts.size - 1)
    for step in range(1, size):
        yield messages(members[:, block], members[:, (block + step) % size], cuts[:-1], np.diff(cuts))
