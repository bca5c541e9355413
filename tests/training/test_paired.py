from __future__ import annotations

import pytest

from microbench.stats import samples_needed
from training import paired


@pytest.mark.parametrize(
    ("round_s", "budget_s", "most", "expected"),
    [
        (1.0, 21.9, 1000, (13, "time")),  # 8 s go to steps alone
        (1.0, 15.9, 1000, (15, "time")),  # the fewest rounds would leave no time for so many
        (1.0, 3.0, 1000, (8, "minimum")),
        (0.001, 60.0, 31, (31, "max_iterations")),
        (1.0, 1.0, 5, (5, "max_iterations")),
        (1.0, 1.0, 1, (1, "max_iterations")),
    ],
)
def test_budget_decides_how_many(round_s: float, budget_s: float, most: int, expected: tuple[int, str]) -> None:
    got = paired.budget(round_s, budget_s, most, alone_s=round_s)
    assert (got.rounds, got.stop_reason) == expected


def test_every_round_has_every_kind_once_in_an_order_of_its_own() -> None:
    rounds = [tuple(paired.order(4, number, seed=7)) for number in range(40)]
    assert all(sorted(row) == [0, 1, 2, 3] for row in rounds)
    assert len(set(rounds)) > 10
    first = [sum(row[0] == kind for row in rounds) for kind in range(4)]
    assert min(first) > 0


def test_all_ranks_draw_the_same_order_and_another_seed_another() -> None:
    assert paired.order(5, 3, seed=1) == paired.order(5, 3, seed=1)
    assert [paired.order(5, n, seed=1) for n in range(9)] != [paired.order(5, n, seed=2) for n in range(9)]


@pytest.mark.parametrize(
    ("round_s", "budget_s", "most", "alone_s", "expected"),
    [
        (2.0, 24.0, 1000, 1.0, (8, 8)),
        (2.0, 23.9, 1000, 1.0, (11, 4)),
        (2.0, 24.0, 7, 1.0, (7, 8)),
        (2.0, 24.0, 6, 1.0, (6, 2)),  # so few rounds have no interval, with however many steps alone
        (2.0, 208.0, 1000, 1.0, (100, 40)),
    ],
)
def test_steps_alone_are_enough_for_an_interval_where_the_budget_has_time_for_them(
    round_s: float, budget_s: float, most: int, alone_s: float, expected: tuple[int, int]
) -> None:
    got = paired.budget(round_s, budget_s, most, alone_s)
    assert (got.rounds, got.alone) == expected
    assert samples_needed(level=0.975) == paired.FEWEST_RATED <= paired.LEAST_ALONE


def test_plan_that_would_not_end_in_time_has_fewer_rounds_or_none() -> None:
    plan = paired.Budget(20, "time", 8)
    assert paired.within(plan, 1.0, 1.0, 28.0) == plan
    assert paired.within(plan, 1.0, 1.0, 18.5) == paired.Budget(10, "deadline", 8)
    assert paired.within(plan, 1.0, 1.0, 10.0) == paired.Budget(8, "deadline", 2)
    assert paired.within(plan, 1.0, 1.0, 4.0) == paired.Budget(2, "deadline", 2)
    assert paired.within(plan, 1.0, 1.0, 2.9).rounds == paired.within(plan, 1.0, 1.0, -5.0).rounds == 0
