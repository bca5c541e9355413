"""Known algorithms of collective operations, as schedules."""

from __future__ import annotations

from collections.abc import Callable

from collectives.schedule import Schedule
from collectives.schedules import allgather, allreduce, alltoall, barrier, broadcast, reduce_scatter, tree, twolevel

Algorithm = Callable[..., Schedule]
"""``(ranks, count)``, and by name what its docstring tells: ``hosts``, ``across``, ``chunk``, ``trees``, ``root``."""

ALGORITHMS: dict[tuple[str, str], Algorithm] = {
    ("allreduce", "ring"): allreduce.ring,
    ("allreduce", "recursive-doubling"): allreduce.recursive_doubling,
    ("allreduce", "rabenseifner"): allreduce.rabenseifner,
    ("allreduce", "binomial"): allreduce.binomial,
    ("allreduce", "two-level-leaders"): twolevel.leaders,
    ("allreduce", "two-level-reduce-scatter"): twolevel.reduce_scatter_allgather,
    ("allreduce", "pipelined-tree"): tree.pipelined_tree,
    ("alltoall", "pairwise"): alltoall.pairwise,
    ("alltoall", "bruck"): alltoall.bruck,
    ("allgather", "ring"): allgather.ring,
    ("allgather", "bruck"): allgather.bruck,
    ("broadcast", "binomial"): broadcast.binomial,
    ("broadcast", "scatter-allgather"): broadcast.scatter_allgather,
    ("reduce_scatter", "pairwise"): reduce_scatter.pairwise,
    ("reduce_scatter", "recursive-halving"): reduce_scatter.recursive_halving,
    ("barrier", "dissemination"): barrier.dissemination,
}
"""By operation and algorithm name, as a record's ``benchmark`` and ``algorithm`` give them."""

NEEDS_HOSTS = frozenset({("allreduce", "two-level-leaders"), ("allreduce", "two-level-reduce-scatter")})
"""Those that must be told each rank's host: ``hosts=[0, 0, 1, 1]``."""
