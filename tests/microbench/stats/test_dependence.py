"""Autocorrelation, effective n and block medians of series whose dependence is known."""

from __future__ import annotations

import numpy as np
import pytest

from microbench.stats import autocorrelation, block_medians, effective_n
from tests.microbench.stats.series import ar1


def test_autocorrelation_by_hand() -> None:
    assert autocorrelation([1.0, 2.0, 3.0, 4.0]) == pytest.approx(0.25)  # (3/4 - 1/4 + 3/4) / 5
    assert autocorrelation([1.0, 2.0, 3.0, 4.0], lag=2) == pytest.approx(-0.3)
    assert autocorrelation([1.0, -1.0] * 50) == pytest.approx(-0.99)
    assert autocorrelation(np.ones(9)) == 0.0
    assert autocorrelation([1.0, 2.0], lag=2) == 0.0
    assert autocorrelation([1.0, 2.0], lag=5) == 0.0


def test_autocorrelation_of_a_known_process() -> None:
    x = ar1(np.random.default_rng(4), 20_000, 0.5)
    assert [autocorrelation(x, lag) for lag in (1, 2, 3)] == pytest.approx([0.5, 0.25, 0.125], abs=0.03)


def test_effective_n_of_a_long_series_that_flips_is_quick_and_small() -> None:
    """Ten states of 10,000 samples each, as of a machine whose cores move apart: lag by lag it would take minutes."""
    series = np.repeat(np.tile([1.0, 2.0], 5), 10_000) + np.random.default_rng(3).normal(0, 0.1, 100_000)
    assert effective_n(series) < 100


def test_effective_n_agrees_with_sums_lag_by_lag() -> None:
    x = ar1(np.random.default_rng(11), 3000, 0.8)
    above = (x > np.median(x)).astype(float)
    total = 0.0
    for lag in range(1, 750):
        if (r := autocorrelation(above, lag)) <= 1.96 / np.sqrt(3000):
            break
        total += r
    assert effective_n(x) == round(3000 / (1 + 2 * total))


def test_effective_n_of_known_series() -> None:
    rng = np.random.default_rng(3)
    assert effective_n(rng.normal(size=4000)) > 3600
    assert effective_n(ar1(rng, 20000, 0.5)) == pytest.approx(20000 / 2.31, rel=0.15)  # 1 + 2 sum (2/pi) asin(r^k)
    assert effective_n(np.repeat(rng.normal(size=500), 4)) < 1000
    assert effective_n(np.ones(100)) == 100
    assert effective_n([1.0, 2.0, 3.0]) == 3


def test_independent_samples_are_their_own_blocks() -> None:
    x = np.random.default_rng(5).normal(size=500)
    assert np.array_equal(block_medians(x), x)


def test_blocks_grow_until_they_are_independent() -> None:
    x = ar1(np.random.default_rng(2), 4000, 0.8)
    blocks = block_medians(x)
    assert 20 <= blocks.size <= 1000
    assert abs(autocorrelation(blocks)) <= 1.96 / np.sqrt(blocks.size)
    length = 4000 // blocks.size
    assert np.log2(length) == int(np.log2(length))
    assert blocks[0] == np.median(x[:length])


def test_samples_that_swing_are_paired() -> None:
    swing = np.tile([1.0, -1.0], 200) + 0.01 * np.random.default_rng(3).normal(size=400)
    blocks = block_medians(swing)
    assert blocks.size == 200
    assert np.abs(blocks).max() < 0.1


def test_blocks_stop_growing_at_twenty_and_lose_no_sample() -> None:
    x = np.arange(107.0)  # a trend never ends
    blocks = block_medians(x)
    assert blocks.size == 26  # of 4; of 8 there would be 13
    assert blocks[:2] == pytest.approx([1.5, 5.5])
    assert blocks[-1] == np.median(x[100:])  # 7 samples: 4, and the 3 that are over
    assert np.array_equal(block_medians(np.arange(39.0)), np.arange(39.0))
