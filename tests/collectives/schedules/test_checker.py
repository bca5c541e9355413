"""Planted faults: each is seen, and told with round, ranks and region."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from collectives.checker import check, check_regions, check_result
from collectives.processes import check_views
from collectives.schedule import INPUT, OUTPUT, SCRATCH, Schedule, ScheduleError, View, join, messages, sizes, tabulate
from collectives.schedules import ALGORITHMS
from tests.collectives.schedules.layouts import build

COPY = messages([0, 1], [0, 1], 0, 4, read_from=INPUT)
SWAP = messages([0, 1], [1, 0], 0, 4, combine=True)


def plan(*rounds, operation="allreduce", scratch=4, count=4, ranks=2, **shape):
    table = sizes(ranks, shape.get("given", count), shape.get("got", count), scratch)
    return Schedule(operation, "planted", ranks, count, table, rounds)


def edited(schedule, number, **columns):
    """The schedule with columns of one of its rounds replaced by functions of the old ones."""
    rounds = list(schedule.rounds)
    old = rounds[number]
    rounds[number] = replace(old, **{name: change(getattr(old, name).copy()) for name, change in columns.items()})
    return replace(schedule, rounds=rounds)


def put(index, value):
    def change(column):
        column[index] = value
        return column

    return change


def refused(schedule, text):
    with pytest.raises(ScheduleError) as caught:
        check(schedule)
    assert text in str(caught.value)


def test_what_is_right_passes():
    check(plan(COPY, SWAP))


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (
            {"write_at": put(1, 1)},
            "round 1: OUTPUT[0:4] of rank 1 combined into OUTPUT[1:5] of rank 0: OUTPUT of rank 0 has 4 elements",
        ),
        ({"read_at": put(0, -1)}, "round 1: OUTPUT[-1:3] of rank 0 combined into OUTPUT[0:4] of rank 1: OUTPUT of"),
        ({"write_to": put(0, INPUT)}, "combined into INPUT[0:4] of rank 1: writes to INPUT"),
        ({"read_from": put(0, 3)}, "round 1: buffer 3[0:4] of rank 0 combined into OUTPUT[0:4] of rank 1: there is no"),
        ({"target": put(1, 2)}, "of rank 2: there are 2 ranks"),
        ({"source": put(1, -1)}, "of rank -1 combined into OUTPUT[0:4] of rank 0: there are 2 ranks"),
        ({"count": put(0, 0)}, "carries nothing"),
    ],
)
def test_what_is_out_of_bounds(columns, text):
    refused(edited(plan(COPY, SWAP), 1, **columns), text)


def test_reading_what_was_never_written():
    whole = "OUTPUT[0:4] of rank 0 combined into OUTPUT[0:4] of rank 1"
    refused(plan(SWAP), f"round 0: {whole}: reads what was never written, at its element 0")
    part = messages([0, 1], [0, 1], 0, [4, 3], read_from=INPUT)
    refused(
        plan(part, SWAP),
        "OUTPUT[0:4] of rank 1 combined into OUTPUT[0:4] of rank 0: reads what was never written, at its element 3",
    )


def test_combining_into_what_was_never_written():
    refused(plan(messages([0, 1], [1, 0], 0, 4, read_from=INPUT, combine=True)), "combines into what was never written")


def test_combining_different_elements():
    shifted = messages([0, 1], [1, 0], 0, 3, write_at=1, combine=True)
    refused(
        plan(COPY, shifted), "OUTPUT[0:3] of rank 0 combined into OUTPUT[1:4] of rank 1: combines different elements"
    )


def test_adding_the_share_of_a_rank_twice():
    refused(
        plan(COPY, SWAP, SWAP), "round 2: OUTPUT[0:4] of rank 0 combined into OUTPUT[0:4] of rank 1: adds the share"
    )


def test_adding_twice_in_one_round():
    again = messages([0, 0, 1], [1, 1, 0], 0, 4, combine=True)
    refused(plan(COPY, again), "round 1: OUTPUT[0:4] of rank 0 combined into OUTPUT[0:4] of rank 1: adds the share")


def test_several_combines_into_one_region_are_allowed():
    rank = np.arange(3)
    copy = messages(rank, rank, 0, 4, read_from=INPUT)
    gather = messages([1, 2], 0, 0, 4, combine=True)
    spread = messages(0, [1, 2], 0, 4)
    check(plan(copy, gather, spread, ranks=3))


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (messages([0, 2], 1, [0, 3], [4, 1], read_from=INPUT), "overwrites a region that the same round overwrites"),
        (
            join([messages(0, 1, 2, 2, read_from=INPUT), messages(2, 1, 0, 3, read_from=INPUT, combine=True)]),
            "round 1: INPUT[2:4] of rank 0 to OUTPUT[2:4] of rank 1: overwrites a region that the same round combines"
            " into (round 1: INPUT[0:3] of rank 2 combined into OUTPUT[0:3] of rank 1)",
        ),
        (
            join([messages(1, 2, 1, 2), messages(0, 1, 2, 2, read_from=INPUT)]),
            "round 1: INPUT[2:4] of rank 0 to OUTPUT[2:4] of rank 1: overwrites a region that the same round reads"
            " (round 1: OUTPUT[1:3] of rank 1 to OUTPUT[1:3] of rank 2)",
        ),
        (messages(1, 1, 0, 3, write_at=1), "overwrites a region that the same round reads"),
        (
            join([messages(0, 1, 0, 4, combine=True), messages(1, 1, 3, 1, write_to=SCRATCH)]),
            "combines into a region that a local message reads",
        ),
    ],
)
def test_overlapping_regions_of_a_round(made, text):
    rank = np.arange(3)
    refused(plan(messages(rank, rank, 0, 4, read_from=INPUT), made, ranks=3), text)


def test_touching_regions_and_other_rounds_do_not_overlap():
    rank = np.arange(3)
    copy = messages(rank, rank, 0, 4, read_from=INPUT)
    schedule = plan(copy, messages([0, 2], 1, [0, 2], 2, read_from=INPUT), messages(0, 1, 0, 4), ranks=3)
    check_regions(schedule, tabulate(schedule.rounds))


def test_a_missing_share_is_told_at_the_end():
    one_way = messages(0, 1, 0, 4, combine=True)
    refused(plan(COPY, one_way), "OUTPUT[0] of rank 0 holds element 0 of rank 0, not element 0 of ranks 0, 1")


def test_a_part_that_was_left_out_is_told_at_the_end():
    refused(
        plan(COPY, messages([0, 1], [1, 0], 0, [4, 3], combine=True)), "OUTPUT[3] of rank 0 holds element 3 of rank 0"
    )


def test_nothing_where_something_is_due():
    refused(plan(operation="broadcast", given=[4, 0]), "OUTPUT[0] of rank 0 holds nothing, not element 0 of rank 0")


def test_blocks_in_the_wrong_place():
    swapped = messages([0, 1, 0, 1], [0, 1, 1, 0], 0, 2, read_from=INPUT, write_at=[2, 0, 2, 0])
    text = "OUTPUT[0] of rank 0 holds element 0 of rank 1, not element 0 of rank 0"
    refused(plan(swapped, operation="allgather", count=2, got=4), text)


def test_outputs_of_the_wrong_size():
    refused(plan(operation="allgather"), "8 elements of OUTPUT in all, where 16 are claimed")


def test_an_operation_without_a_claim():
    refused(plan(operation="gossip"), "what gossip claims is not known")


def test_a_barrier_that_lets_a_rank_go_early():
    rank = np.arange(4)
    once = messages(rank, (rank + 1) % 4, 0, 0, empty=True)
    text = "rank 0 may leave the barrier before ranks 1, 2 came"
    refused(plan(once, operation="barrier", count=0, ranks=4, scratch=0), text)


LEAN = sorted(set(ALGORITHMS) - {("broadcast", "scatter-allgather")})  # its ring brings inner ranks what they have


@pytest.mark.parametrize("key", LEAN, ids="-".join)
def test_any_message_left_out_is_noticed(key):
    schedule = build(key, 6, 13)
    rounds = list(schedule.rounds)
    for number, made in enumerate(rounds):
        for i in range(len(made)):
            fewer = [*rounds[:number], made.where(np.arange(len(made)) != i), *rounds[number + 1 :]]
            with pytest.raises(ScheduleError):
                check(replace(schedule, rounds=[r for r in fewer if len(r)]))


@pytest.mark.parametrize("key", sorted(k for k in ALGORITHMS if k[0] in ("allreduce", "reduce_scatter")), ids="-".join)
def test_overwriting_where_it_should_combine_is_noticed(key):
    schedule = build(key, 6, 13)
    for number, made in enumerate(schedule.rounds):
        for i in np.flatnonzero(made.combine):
            with pytest.raises(ScheduleError):
                check(edited(schedule, number, combine=put(i, False)))


def views(schedule):
    return [schedule.view(rank) for rank in range(schedule.ranks)]


def stuck(changed, text):
    with pytest.raises(ScheduleError) as caught:
        check_views(changed)
    assert text in str(caught.value)


def test_a_receive_that_nobody_answers_waits_for_ever():
    mine, other = views(plan(COPY, SWAP))
    stuck(
        [mine, replace(other, sends=other.sends.where(slice(0, 0)))],
        "round 1: rank 0 waits for ever to receive from rank 1 (4 elements)",
    )


def test_a_send_that_nobody_receives_waits_for_ever():
    mine, other = views(plan(COPY, SWAP))
    stuck(
        [mine, replace(other, receives=other.receives.where(slice(0, 0)))],
        "round 1: rank 0 waits for ever to send to rank 1",
    )


def test_two_that_send_before_they_receive_wait_for_ever():
    first, second = messages(0, 1, 0, 4), messages(1, 0, 0, 4)
    zero, one = (View.of(tabulate(rounds), rank) for rank, rounds in enumerate(([first, second], [second, first])))
    stuck([zero, one], "round 0: rank 0 waits for ever to send to rank 1")
    both = [View.of(tabulate([join([first, second])]), rank) for rank in range(2)]
    check_views(both)


def test_a_circle_of_waiting_ranks():
    rank = np.arange(3)
    made = messages(rank, (rank + 1) % 3, 0, 4)
    apart = [tabulate([made.where(made.source == r), made.where(made.target == r)]) for r in range(3)]
    stuck([View.of(table, r) for r, table in enumerate(apart)], "round 0: rank 0 waits for ever to send to rank 1")


def test_ends_that_count_differently():
    mine, other = views(plan(COPY, SWAP))
    short = replace(other.receives, messages=replace(other.receives.messages, count=np.array([3])))
    stuck([mine, replace(other, receives=short)], "rank 0 to rank 1: the two ends have different counts: ")


def test_ends_that_pair_messages_differently():
    made = messages([0, 0], 1, [0, 2], 2, read_from=INPUT)
    mine, other = views(plan(made))
    stuck([mine, replace(other, receives=other.receives.where([1, 0]))], "the two ends have different messages")


def test_the_results_need_no_views():
    schedule = plan(COPY, SWAP)
    check_result(schedule, tabulate(schedule.rounds))
    with pytest.raises(ScheduleError):
        check_result(schedule, tabulate([COPY]))


def test_reduce_scatter_and_alltoall_claims_know_uneven_blocks():
    right = build(("reduce_scatter", "pairwise"), 3, 7)
    refused(
        replace(right, count=8, sizes=sizes(3, 8, [3, 3, 2])),
        "OUTPUT[2] of rank 1 holds nothing, not element 5 of ranks 0, 1, 2",
    )
    assert right.sizes[OUTPUT].tolist() == [3, 2, 2]
