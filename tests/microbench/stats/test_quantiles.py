"""Quantiles and their intervals against known values, and against what they claim."""

from __future__ import annotations

import numpy as np
import pytest

from microbench.stats import Interval, binomial_pmf, order_ranks, quantile, samples_needed
from tests.microbench.stats.series import ar1


def test_quantiles_are_linear() -> None:
    x = np.arange(1, 101)
    assert quantile(x).value == 50.5
    assert quantile(x, 0.95).value == pytest.approx(95.05)


@pytest.mark.parametrize(("q", "n"), [(0.5, 6), (0.75, 13), (0.9, 36), (0.95, 72), (0.99, 368), (0.999, 3688)])
def test_smallest_n_with_an_interval(q: float, n: int) -> None:
    assert samples_needed(q) == n
    assert order_ranks(n - 1, q) is None
    assert order_ranks(n, q) is not None


def test_known_ranks_of_the_median() -> None:
    assert order_ranks(6) == (1, 6)
    assert order_ranks(10) == (2, 9)
    assert order_ranks(100) == (40, 61)


def test_binomial_probabilities() -> None:
    assert binomial_pmf(4, 0.5) == pytest.approx(np.array([1, 4, 6, 4, 1]) / 16)
    assert binomial_pmf(3, 0.1) == pytest.approx([0.729, 0.243, 0.027, 0.001])
    assert binomial_pmf(100_000, 0.3).sum() == pytest.approx(1)


def test_the_interval_holds_the_median_often_enough() -> None:
    rng = np.random.default_rng(7)
    truth = np.log(2)
    held = 0
    for _ in range(2000):
        i = quantile(rng.exponential(size=25))
        assert i.low is not None
        assert i.high is not None
        held += i.low <= truth <= i.high
    assert 0.95 <= held / 2000 <= 0.99


def test_a_rate_turns_the_interval_round() -> None:
    rate = Interval(2.0, 1.0, 4.0, 9).map(8.0, -1)
    assert rate == Interval(4.0, 2.0, 8.0, 9)


@pytest.mark.parametrize(("r", "n"), [(0.0, 100), (0.5, 200), (0.5, 1000), (0.8, 1000)])
def test_the_interval_of_a_series_holds_its_median_often_enough(r: float, n: int) -> None:
    rng = np.random.default_rng(11)
    held = {True: 0, False: 0}
    for _ in range(400):
        x = np.exp(ar1(rng, n, r))
        for series in held:
            i = quantile(x, series=series)
            assert i.low is not None
            assert i.high is not None
            held[series] += i.low <= 1.0 <= i.high
    assert held[True] / 400 >= 0.92
    if r >= 0.5:
        assert held[False] < held[True]  # what taking neighbours for independent costs


def test_no_samples_is_an_error() -> None:
    with pytest.raises(ValueError, match="no samples"):
        quantile([])
