"""Rounds, views, and how lazily they are made."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from collectives.schedule import INPUT, OUTPUT, Schedule, View, bounds, join, messages, sizes, tabulate
from collectives.schedules import ALGORITHMS, allreduce, alltoall, barrier
from tests.collectives.schedules.layouts import build


def rows(made):
    return list(
        zip(made.source.tolist(), made.target.tolist(), made.read_at.tolist(), made.count.tolist(), strict=True)
    )


def test_blocks_are_as_even_as_can_be_the_first_longer():
    assert bounds(7, 3).tolist() == [0, 3, 5, 7]
    assert bounds(2, 4).tolist() == [0, 1, 2, 2, 2]
    assert bounds(0, 2).tolist() == [0, 0, 0]


def test_messages_broadcasts_and_leaves_out_what_is_empty():
    made = messages([[0], [1]], 2, [4, 9], [[1, 0], [2, 3]])
    assert rows(made) == [(0, 2, 4, 1), (1, 2, 4, 2), (1, 2, 9, 3)]
    assert len(messages([0, 1], [1, 0], 0, 0, empty=True)) == 2


def test_joining_keeps_the_order():
    a, b = messages(0, 1, 0, 1), messages([2, 3], [3, 2], 5, 2)
    assert rows(join([a, b])) == rows(a) + rows(b)
    assert len(join([])) == 0


@pytest.mark.parametrize("key", ALGORITHMS, ids="-".join)
def test_rounds_can_be_made_again(key):
    schedule = build(key, 6, 25)
    first, second = tabulate(schedule.rounds), tabulate(schedule.rounds)
    assert len(first) > 0
    assert (first.number == second.number).all()
    assert rows(first.messages) == rows(second.messages)


@pytest.mark.parametrize("key", ALGORITHMS, ids="-".join)
def test_views_have_every_message_at_both_ends_in_one_order(key):
    schedule = build(key, 11, 40)
    table = tabulate(schedule.rounds)
    views = [schedule.view(rank) for rank in range(11)]
    local = sum(len(view.local) for view in views)
    assert sum(len(view.sends) for view in views) == sum(len(view.receives) for view in views) == len(table) - local
    for a in range(11):
        for b in range(11):
            if a != b:
                sent, received = views[a].sends, views[b].receives
                out = sent.where(sent.messages.target == b).messages
                assert rows(out) == rows(received.where(received.messages.source == a).messages)


def test_a_view_has_the_parts_of_its_rounds_numbered_among_those_it_takes_part_in():
    schedule = allreduce.binomial(4, 6)
    parts = list(schedule.view(3))
    assert [(len(p.receives), len(p.sends), len(p.local)) for p in parts] == [(0, 0, 1), (0, 1, 0), (1, 0, 0)]
    assert parts[1].sends.target.tolist() == [2]
    assert parts[1].sends.combine.all()
    whole = list(View.of(tabulate(schedule.rounds), 3))
    assert [rows(p.sends) for p in parts] == [rows(p.sends) for p in whole]


def test_both_ends_number_a_round_alike():
    schedule = build(("allreduce", "two-level-leaders"), 13, 9)
    for rank in range(13):
        seen = [part.number for part in schedule.view(rank)]
        assert seen == [part.number for part in View.of(tabulate(schedule.rounds), rank)]


def test_a_ring_reads_its_input_and_needs_neither_copy_nor_scratch():
    schedule = allreduce.ring(4, 8)
    part = next(iter(schedule.view(1)))
    assert (part.sends.read_from.tolist(), part.receives.write_to.tolist()) == ([INPUT], [OUTPUT])
    assert not part.receives.combine.any()
    local = schedule.view(1).local.messages
    assert local.combine.all()
    assert local.count.sum() == 6  # 3 of 4 blocks of 2
    assert schedule.sizes[2].sum() == 0


def test_bruck_sends_one_message_a_round():
    for ranks in (2, 5, 8, 12):
        view = alltoall.bruck(ranks, 5 * ranks + 1).view(1)
        assert len(view.sends) == (ranks - 1).bit_length()
        assert len(set(view.sends.number.tolist())) == len(view.sends)


@pytest.mark.parametrize("ranks", range(2, 34))
def test_an_inner_rank_of_one_tree_is_a_leaf_of_the_other(ranks):
    up = join(made.where(made.combine) for made in build(("allreduce", "pipelined-tree"), ranks, 2, chunk=1).rounds)
    inner = [set(up.target[up.read_at == tree].tolist()) for tree in (0, 1)]
    assert inner[0] & inner[1] <= ({0} if ranks % 2 else set())  # with an odd number one rank is left over
    assert np.bincount(up.target).max() <= 2


def test_a_barrier_keeps_its_empty_messages():
    assert rows(join(barrier.dissemination(3).rounds)) == [
        *((0, 1, 0, 0), (1, 2, 0, 0), (2, 0, 0, 0)),
        *((0, 2, 0, 0), (1, 0, 0, 0), (2, 1, 0, 0)),
    ]


def test_a_large_ring_is_never_held_whole():
    schedule = allreduce.ring(256, 1 << 20)
    tracemalloc.start()
    total = sum(int(made.count.sum()) for made in schedule.rounds)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == 255 * (1 << 20) * 3  # reduced, added, and gathered
    assert peak < 1 << 20  # all rounds would be 12 MB
    assert len(tabulate(schedule.rounds)) * 57 > 10 << 20


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="rank 4 is not one of 4"):
        allreduce.ring(4, 1).view(4)
    with pytest.raises(ValueError, match="sizes must be 3 x 2"):
        Schedule("allreduce", "x", 2, 1, np.ones((3, 3), "i8"), [])
    assert sizes(2, 1, [2, 3]).tolist() == [[1, 1], [2, 3], [0, 0]]
