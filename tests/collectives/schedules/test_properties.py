"""Every algorithm computes what it claims: on 1 to 33 ranks, with odd counts, on hosts of all kinds."""

from __future__ import annotations

import pytest

from collectives.checker import check
from collectives.schedule import INPUT, OUTPUT
from collectives.schedules import ALGORITHMS, NEEDS_HOSTS
from collectives.schedules.twolevel import ACROSS
from tests.collectives.schedules.layouts import LAYOUTS, build

RANKS = range(1, 34)


def counts(ranks: int) -> set[int]:
    return {0, 1, 7, ranks - 1, ranks + 1, 64, 101}


@pytest.mark.parametrize("key", ALGORITHMS, ids="-".join)
def test_it_computes_what_it_claims(key):
    for ranks in RANKS:
        for count in {0} if key[0] == "barrier" else counts(ranks):
            schedule = build(key, ranks, count)
            assert (schedule.operation, schedule.algorithm) == key
            check(schedule)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("key", sorted(NEEDS_HOSTS), ids="-".join)
def test_two_levels_on_hosts_of_all_kinds(key, layout):
    for ranks in RANKS:
        for i, count in enumerate((1, ranks + 1, 64)):
            across = list(ACROSS)[(ranks + i) % len(ACROSS)]
            check(build(key, ranks, count, hosts=LAYOUTS[layout](ranks), across=across))


@pytest.mark.parametrize("across", ACROSS)
@pytest.mark.parametrize("key", sorted(NEEDS_HOSTS), ids="-".join)
def test_two_levels_with_any_algorithm_across(key, across):
    for hosts in ([5, 1, 5, 1, 2, 2, 5, 9, 9, 1, 0], [0, 1] * 4, [3, 3, 3, 8, 8]):
        check(build(key, len(hosts), 41, hosts=hosts, across=across))


@pytest.mark.parametrize("trees", [1, 2])
@pytest.mark.parametrize("chunk", [1, 3, 1000])
def test_trees_with_any_chunk(trees, chunk):
    for ranks in (*range(1, 18), 31, 32, 33):
        check(build(("allreduce", "pipelined-tree"), ranks, 13, chunk=chunk, trees=trees))


@pytest.mark.parametrize("name", ["binomial", "scatter-allgather"])
def test_broadcast_from_any_root(name):
    for ranks in (1, 2, 3, 5, 8, 13):
        for root in range(ranks):
            schedule = build(("broadcast", name), ranks, 11, root=root)
            assert schedule.sizes[INPUT].tolist() == [11 * (rank == root) for rank in range(ranks)]
            check(schedule)


@pytest.mark.parametrize("key", ALGORITHMS, ids="-".join)
def test_the_most_ranks_that_can_be_checked(key):
    check(build(key, 64, 130))
    with pytest.raises(ValueError, match="65 ranks cannot be checked"):
        check(build(key, 65, 1))


def test_alltoall_gives_every_rank_its_block_of_all():
    assert build(("alltoall", "bruck"), 3, 7).sizes[OUTPUT].tolist() == [9, 6, 6]
    assert build(("reduce_scatter", "pairwise"), 3, 7).sizes[OUTPUT].tolist() == [3, 2, 2]
    assert build(("allgather", "ring"), 3, 7).sizes[OUTPUT].tolist() == [21, 21, 21]


@pytest.mark.parametrize(
    ("key", "options", "what"),
    [
        (("allreduce", "ring"), {"ranks": 0}, "0 ranks"),
        (("allreduce", "ring"), {"count": -1}, "-1 elements"),
        (("alltoall", "pairwise"), {"ranks": 0}, "0 blocks"),
        (("broadcast", "binomial"), {"root": 4}, "root 4 is not one of 4 ranks"),
        (("allreduce", "pipelined-tree"), {"chunk": 0}, "chunks of 0 elements"),
        (("allreduce", "pipelined-tree"), {"trees": 3}, "3 trees"),
        (("allreduce", "two-level-leaders"), {"hosts": [0, 1]}, "2 hosts given for 4 ranks"),
        (("allreduce", "two-level-leaders"), {"across": "magic"}, "no allreduce across hosts by magic"),
    ],
)
def test_what_cannot_be_is_refused(key, options, what):
    with pytest.raises(ValueError, match=what):
        build(key, **{"ranks": 4, "count": 8} | options)


def test_a_barrier_has_no_count():
    with pytest.raises(ValueError, match="3 elements given"):
        ALGORITHMS["barrier", "dissemination"](4, 3)
