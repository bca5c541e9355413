"""The bootstrap against drawing resamples one by one, and against what must follow from its two levels."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from microbench.stats import two_level, two_level_ratio
from microbench.stats.bootstrap import _resampled_medians


def launches(seed: int, count: int, n: int, between: float, within: float) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [np.exp(between * rng.normal() + within * rng.normal(size=n)) for _ in range(count)]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_medians_of_resamples_are_distributed_as_all_resamples_are(n: int) -> None:
    x = np.array([1.0, 2.0, 4.0, 8.0, 16.0])[:n]
    every = np.array([np.median(draw) for draw in product(x, repeat=n)])
    got = _resampled_medians(x, 50_000, np.random.default_rng(n))
    assert set(got) <= set(every)
    for value in set(every):
        assert np.mean(got == value) == pytest.approx(np.mean(every == value), abs=0.01)


def test_it_agrees_with_drawing_launches_and_samples() -> None:
    given = launches(1, 8, 9, 0.05, 0.1)
    rng = np.random.default_rng(2)
    drawn = []
    for _ in range(3000):
        which = rng.integers(len(given), size=len(given))
        drawn.append(np.median([np.median(rng.choice(given[i], given[i].size)) for i in which]))
    got = two_level(given, resamples=20_000)
    assert [got.low, got.high] == pytest.approx(np.quantile(drawn, [0.025, 0.975]), rel=0.01)


def test_the_value_is_the_median_of_launch_medians_whatever_their_lengths() -> None:
    got = two_level([[1.0, 2.0, 3.0], [10.0], np.full(100, 4.0)])
    assert (got.value, got.n, got.effective_n) == (4.0, 104, 3)
    assert got.low is not None
    assert got.high is not None
    assert got.low <= 4.0 <= got.high


def test_both_levels_widen_the_interval() -> None:
    def width(between: float, within: float) -> float:
        got = two_level(launches(3, 10, 25, between, within))
        assert got.low is not None
        assert got.high is not None
        return got.high - got.low

    assert width(0.0, 0.0) == 0
    assert 0 < width(0.0, 0.1) < width(0.1, 0.1)


def test_one_launch_has_no_interval() -> None:
    assert two_level([[1.0, 2.0, 3.0]]).low is None
    assert two_level_ratio([[2.0]] * 3, [[1.0]]).high is None


def test_a_seed_gives_the_same_interval_again() -> None:
    given = launches(4, 12, 11, 0.1, 0.1)
    assert two_level(given) == two_level(given)
    assert two_level(given, seed=1) != two_level(given)


def test_a_higher_level_is_wider() -> None:
    given = launches(5, 10, 10, 0.1, 0.1)
    usual, high = two_level(given), two_level(given, level=0.99)
    assert usual.low is not None
    assert usual.high is not None
    assert high.low is not None
    assert high.high is not None
    assert high.low < usual.low < usual.high < high.high


def test_a_ratio_of_medians() -> None:
    old = launches(6, 12, 15, 0.02, 0.02)
    got = two_level_ratio([1.5 * launch for launch in launches(7, 10, 15, 0.02, 0.02)], old)
    assert got.low is not None
    assert got.high is not None
    assert 1.4 < got.low < 1.5 < got.high < 1.6
    assert got.value == pytest.approx(1.5, rel=0.05)
    assert (got.n, got.effective_n) == (330, 10)


def test_what_has_no_median_or_no_ratio_is_an_error() -> None:
    for given in ([], [[1.0], []]):
        with pytest.raises(ValueError, match="no samples"):
            two_level(given)
    with pytest.raises(ValueError, match="positive"):
        two_level_ratio([[1.0, 2.0]] * 2, [[0.0, 1.0]] * 2)
