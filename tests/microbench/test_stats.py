"""Statistics against known values, and against what they claim."""

from __future__ import annotations

import numpy as np
import pytest

from microbench.stats import Interval, geometric_mean, metric, order_ranks, quantile, samples_needed, tukey_counts


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


def test_a_percentile_without_interval_is_not_printed() -> None:
    m = metric(quantile(np.arange(200.0), 0.99), "s", q=0.99)
    assert m.value is None
    assert m.note == "n=200 < 368"


def test_a_median_without_interval_says_why() -> None:
    m = metric(quantile([1.0, 2.0, 3.0]), "s")
    assert (m.value, m.low, m.note) == (2.0, None, "n=3 < 6")


def test_a_rate_turns_the_interval_round() -> None:
    rate = Interval(2.0, 1.0, 4.0, 9).map(8.0, -1)
    assert rate == Interval(4.0, 2.0, 8.0, 9)


def test_no_samples_is_an_error() -> None:
    with pytest.raises(ValueError, match="no samples"):
        quantile([])


def test_geometric_mean_and_fences() -> None:
    assert geometric_mean([1, 4, 16]) == pytest.approx(4)
    assert tukey_counts([*range(100), 180, 1000]) == (2, 1)
