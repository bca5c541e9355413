"""Statistics against known values, and against what they claim."""

from __future__ import annotations

import numpy as np
import pytest

from microbench.stats import (
    Interval,
    effective_n,
    geometric_mean,
    metric,
    order_ranks,
    quantile,
    samples_needed,
    tukey_counts,
)


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


def ar1(rng: np.random.Generator, n: int, r: float) -> np.ndarray:
    x = np.empty(n)
    x[0] = rng.normal()
    for i in range(1, n):
        x[i] = r * x[i - 1] + np.sqrt(1 - r * r) * rng.normal()
    return x


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


def test_effective_n_of_known_series() -> None:
    rng = np.random.default_rng(3)
    assert effective_n(rng.normal(size=4000)) > 3600
    assert effective_n(ar1(rng, 20000, 0.5)) == pytest.approx(20000 / 2.31, rel=0.15)  # 1 + 2 sum (2/pi) asin(r^k)
    assert effective_n(np.repeat(rng.normal(size=500), 4)) < 1000
    assert effective_n(np.ones(100)) == 100
    assert effective_n([1.0, 2.0, 3.0]) == 3


def test_a_series_of_two_halves_has_no_interval() -> None:
    halves = np.concatenate([np.full(100, 1.0), np.full(100, 2.0)]) + np.linspace(0, 1e-9, 200)
    m = metric(quantile(halves, series=True), "s")
    assert m.low is None
    assert m.note.startswith("n=200 (as ")


def test_no_samples_is_an_error() -> None:
    with pytest.raises(ValueError, match="no samples"):
        quantile([])


def test_geometric_mean_and_fences() -> None:
    assert geometric_mean([1, 4, 16]) == pytest.approx(4)
    assert tukey_counts([*range(100), 180, 1000]) == (2, 1)
