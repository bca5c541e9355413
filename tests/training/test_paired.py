from __future__ import annotations

import pytest

from training import paired


@pytest.mark.parametrize(
    ("round_s", "budget_s", "most", "expected"),
    [
        (1.0, 21.9, 1000, (21, "time")),
        (1.0, 3.0, 1000, (8, "minimum")),
        (0.001, 60.0, 31, (31, "max_iterations")),
        (1.0, 1.0, 5, (5, "max_iterations")),
        (1.0, 1.0, 1, (1, "max_iterations")),
    ],
)
def test_budget_decides_how_many(round_s: float, budget_s: float, most: int, expected: tuple[int, str]) -> None:
    got = paired.budget(round_s, budget_s, most)
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
