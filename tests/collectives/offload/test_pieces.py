"""How operations are cut, what a piece is of each host's operands, and in which order a worker does them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from collectives.offload.pieces import OPERATIONS, Task, merged, packed, pieces, pipeline, planned
from collectives.operands import offsets, shares
from fabrics.errors import CannotRun


@pytest.mark.parametrize("count", [0, 1, 2, 3, 10, 1001])
@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("chunk", [None, 1, 4, 5000])
def test_pieces_cover_all_in_turn(count: int, workers: int, chunk: int | None) -> None:
    lanes = pieces(count, workers, chunk)
    assert len(lanes) == workers
    dealt = sorted(piece for lane in lanes for piece in lane)
    assert [index for start, length in dealt for index in range(start, start + length)] == list(range(count))
    assert all(length <= (chunk or count) for _, length in dealt)
    assert max(map(len, lanes)) - min(map(len, lanes)) <= 1
    if count >= workers:
        assert all(lanes)
        assert chunk is not None or all(len(lane) == 1 for lane in lanes)
    for number, piece in enumerate(dealt):
        assert piece in lanes[number % workers]


def test_blocks_that_touch_are_one() -> None:
    assert merged([(0, 3), (3, 2), (7, 0), (8, 1), (9, 4)]) == ((0, 5), (8, 5))
    assert merged([]) == merged([(4, 0)]) == ()
    assert merged([(5, 2), (3, 2)]) == ((5, 2), (3, 2))  # order counts
    assert packed([2, 0, 3], 10) == ((10, 2), (12, 0), (12, 3))


@pytest.mark.parametrize(("operation", "hosts", "count"), list(product(OPERATIONS, [2, 3, 5], [1, 2, 7, 30])))
def test_pieces_fill_every_operand_exactly_once(operation: str, hosts: int, count: int) -> None:
    task = Task(operation, count, hosts, root=1)
    for host in range(hosts):
        given, filled = np.zeros(count, int), np.zeros(task.received, int)
        for lane in pieces(task.span, 2, 3):
            for piece in lane:
                for start, length in task.sends(host, piece):
                    given[start : start + length] += 1
                for start, length in task.receives(host, piece):
                    filled[start : start + length] += 1
        is_root = host == task.root
        assert given.tolist() == [int(operation != "broadcast" or is_root)] * count
        assert filled.tolist() == [int(operation != "broadcast" or not is_root)] * task.received


def test_blocks_of_an_alltoall_are_where_the_librarys_are() -> None:
    task, whole = Task("alltoall", 11, 3), (0, 4)
    for host in range(3):
        sizes = shares(11, 3, host)
        assert task.sends(host, whole) == tuple(zip(offsets(sizes).tolist(), sizes.tolist(), strict=True))
    for a, b in product(range(3), repeat=2):
        assert task.sends(a, (2, 2))[b][1] == task.receives(b, (2, 2))[a][1]


def test_without_a_bound_every_piece_has_a_place() -> None:
    plan = planned(Task("allreduce", 1000, 2), 1, 1, 4, 400, None)
    assert (len(plan.lanes[0]), plan.slots, plan.slot_bytes, plan.longest) == (10, 10, 400, 100)
    assert plan.used == (0,)


def test_little_memory_means_fewer_places_then_smaller_pieces() -> None:
    task = Task("allreduce", 1000, 4)
    fewer = planned(task, 1, 2, 4, 400, 3000)  # 800 B a piece of two hosts
    assert (fewer.longest, fewer.slots) == (100, 3)
    smaller = planned(task, 1, 2, 4, 400, 1000)  # at most 62 elements, so 17 pieces
    assert (smaller.longest, smaller.slots) == (59, 2)
    assert smaller.slots * smaller.slot_bytes <= 1000
    whole = planned(task, 1, 2, 4, None, 1000)  # no chunk was asked for: the memory asks
    assert (whole.longest, whole.slots) == (59, 2)
    least = planned(task, 1, 2, 4, None, 8)
    assert (least.longest, least.slots, len(least.lanes[0])) == (1, 1, 1000)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_memory_bounds_hold_for_all_workers_together(operation: str) -> None:
    task = Task(operation, 997, 4)
    for workers, chunk, memory in product([1, 2, 3], [None, 64, 1000], [1 << 10, 5000, 1 << 16]):
        plan = planned(task, workers, 2, 8, chunk, memory)
        assert 0 < plan.slots * plan.slot_bytes * workers <= memory


def test_memory_that_holds_nothing_is_refused_with_what_is_needed() -> None:
    with pytest.raises(CannotRun, match=r"15 B of a DPU's memory are too few to stage an allreduce: it takes 16 B"):
        planned(Task("allreduce", 10, 4), 2, 2, 4, None, 15)
    assert planned(Task("allreduce", 0, 4), 2, 2, 4, None, 15).used == ()


@pytest.mark.parametrize("number", [0, 1, 2, 3, 7, 20])
@pytest.mark.parametrize("slots", [1, 2, 3, 20])
def test_a_worker_does_every_piece_in_order_within_its_places(number: int, slots: int) -> None:
    steps = list(pipeline(number, slots))
    for kind in ("take", "give", "free"):
        assert [piece for step, piece in steps if step == kind] == list(range(number))
    at = {step: place for place, step in enumerate(steps)}
    for piece in range(number):
        assert at["take", piece] < at["give", piece] < at["free", piece]
        if piece >= slots:
            assert at["free", piece - slots] < at["take", piece]
        if piece + 1 < number and slots > 1:  # the next collective starts before this one is awaited
            assert at["take", piece + 1] < at["give", piece]
