"""What is trained on, and what loading it costs: data time is told apart, and a case says which data it had."""

from __future__ import annotations

import time

import pytest

from tests.training.data.planted import slow
from training.data import Data, Loader, parse

READ_S = 0.02


def test_the_default_is_synthetic_and_takes_no_time_of_a_step() -> None:
    """Synthetic and real data scale otherwise: nobody gets real data, and its loading, without asking for it."""
    assert Data() == parse("synthetic")
    assert Data().text == "synthetic"


@pytest.mark.parametrize("steps", [5])
def test_a_loader_that_sleeps_20_ms_is_told_apart_from_the_step(steps: int) -> None:
    """A data loader with 20 ms of sleep: all of it is in the data time, and none in what is timed beside it."""
    with Loader(slow(4 * steps, READ_S), 4, 0, 1, 0, augment=True) as loader:
        data_ns = beside_ns = 0
        for _ in range(steps):
            start = time.perf_counter_ns()
            loader.next()
            data_ns += loader.waited_ns
            beside_ns += time.perf_counter_ns() - start - loader.waited_ns
    assert data_ns >= steps * READ_S * 1e9
    assert beside_ns < data_ns / 2


def test_two_ranks_of_which_one_reads_slowly_each_tell_their_own_wait() -> None:
    """Only rank 0 is timed: the wait is each rank's own, so that the slow one can be named."""
    fast, late = slow(16, 0.0), slow(16, READ_S)
    waits = []
    for rank, source in enumerate((fast, late)):
        with Loader(source, 4, rank, 2, 0, augment=False) as loader:
            loader.next()  # the first of all also pays for what is made once
            loader.next()
            waits.append(loader.waited_ns)
    assert waits[1] >= READ_S * 1e9 and waits[1] > waits[0]
