"""How many blocks, and how long: pure."""

from __future__ import annotations

import pytest

from training.characterize.pace import FEWEST_BLOCKS, FREE_S, HELD_S, USUAL_BLOCKS, at_most_s, pace


def test_a_brief_budget_has_the_fewest_and_shortest_blocks() -> None:
    got = pace(0.5, 15, [False, True, False, True])
    assert (got.blocks, got.free_s, got.held_s) == (FEWEST_BLOCKS, FREE_S, HELD_S)
    assert (got.block_s(held=False), got.block_s(held=True)) == (FREE_S, HELD_S)


def test_a_longer_budget_has_more_and_longer_blocks_up_to_a_limit() -> None:
    more = pace(20, 15, [False] * 4)
    assert more.blocks == USUAL_BLOCKS
    assert more.free_s == pytest.approx(20 / (9 * 15 * 4))
    assert pace(1e6, 15, [False]).free_s == pytest.approx(5 * FREE_S)


def test_blocks_suffice_for_an_interval_of_a_median() -> None:
    assert FEWEST_BLOCKS == 6


def test_an_estimate_grows_with_what_is_done() -> None:
    assert at_most_s(1, 15, 4, True) > at_most_s(1, 15, 4, False) > at_most_s(1, 2, 4, False)
    assert at_most_s(1, 15, 8, True) > at_most_s(1, 15, 4, True)
    assert at_most_s(1, 15, 8, False) == at_most_s(1, 15, 4, False)  # machines of their own
    assert at_most_s(600, 15, 4, True) > 100
