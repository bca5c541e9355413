"""What a case does about its deadline where images are waited for. Pure."""

from __future__ import annotations

import time

import pytest

from training import loading
from training.setup import Setup

SETUP = Setup.of({"model": "resnet20", "batch": 4, "image_px": 32, "data": "folder:/d", "exchanges": ["gloo", "mpi"]})
FIRST, WATCHED, ONCE, ROUND, ALONE = 2, 2, 2, 3, 2  # what a case cannot do without: see training.pace.least_steps


def test_time_without_a_limit_has_no_end_and_a_part_of_what_is_left_is_kept() -> None:
    assert loading.left_s(0) is None
    left = loading.left_s(time.monotonic_ns() + 100 * 10**9)
    assert left == pytest.approx(80, abs=2)
    assert loading.left_s(1) == 0.0


def test_loader_is_too_slow_where_the_fewest_steps_wait_for_longer_than_is_left() -> None:
    steps = FIRST + WATCHED + ONCE + ROUND + ALONE
    assert loading.too_slow(SETUP, 2.0, 2.0 * steps) == ""
    told = loading.too_slow(SETUP, 2.0, 2.0 * steps - 1)
    assert told == (
        f"resnet20 32px batch 4, gloo/mpi, folder: a step waits 2 s for its images, so that the {steps} steps that it"
        f" takes at least wait {2 * steps} s; {2 * steps - 1} s are left of the case's time: a smaller batch or smaller"
        " images take less, deadline_s in a plan gives more"
    )


def test_round_that_does_not_fit_says_what_it_waits_for() -> None:
    assert "takes 20 s, 9 s of it waiting for images, and does not fit into the 15 s" in loading.no_round(
        SETUP, 20, 3, 15
    )
    assert "takes 20 s and does not fit" in loading.no_round(SETUP, 20, 0, 15)
