"""Planted warm-ups, and steady samples of all kinds that must not be taken for one."""

from __future__ import annotations

import numpy as np
import pytest

from microbench.stats import steady_from
from tests.microbench.stats.series import ar1

N = 100
SAMPLE = np.arange(N)


def noise(seed: int, sigma: float = 0.02) -> np.ndarray:
    return np.exp(sigma * np.random.default_rng(seed).normal(size=N))


def test_too_few_samples_tell_nothing() -> None:
    assert steady_from(np.ones(39)) is None
    assert steady_from(np.ones(40)) == 0
    assert steady_from([]) is None


@pytest.mark.parametrize("seed", range(5))
def test_a_slow_first_call_is_warm_up(seed: int) -> None:
    assert steady_from(noise(seed) * np.where(SAMPLE == 0, 20, 1)) in (1, 2)


@pytest.mark.parametrize("slow", [5, 10, 20, 30])
@pytest.mark.parametrize("factor", [1.2, 2.0, 10.0])
def test_a_step_is_found_where_it_is(slow: int, factor: float) -> None:
    assert steady_from(noise(1) * np.where(slow > SAMPLE, factor, 1)) == slow


def test_a_decay_is_over_when_little_is_left_of_it() -> None:
    times = noise(2) * (1 + 3 * np.exp(-SAMPLE / 8))
    found = steady_from(times)
    assert found is not None
    assert 20 <= found <= 45
    assert np.median(times[found:]) == pytest.approx(1, rel=0.02)


def test_a_decay_without_noise_ends_too() -> None:
    assert steady_from(1 + 3 * np.exp(-SAMPLE / 8)) is not None


def test_what_keeps_changing_is_not_steady() -> None:
    assert steady_from(noise(3) * (1 + 0.01 * SAMPLE)) is None
    assert steady_from(noise(3)[:50] * np.where(SAMPLE[:50] < 30, 2, 1)) is None  # steady for one window only


@pytest.mark.parametrize("some", [0.8, 1.2])
def test_a_change_of_some_samples_is_warm_up_though_the_median_stays(some: float) -> None:
    found = steady_from(noise(7, 0.005) * np.where((SAMPLE < 24) & (SAMPLE % 5 < 2), some, 1))
    assert found is not None
    assert 10 <= found <= 24


def test_a_change_of_the_median_is_warm_up_though_the_outer_quartiles_stay() -> None:
    fast, slow = 1.0, 1.06
    few = np.tile([fast, slow, fast, fast, slow, fast, fast, fast, slow, fast], 2)
    times = np.concatenate([few, 2.065 - few])
    assert np.quantile(times[:20], [0.25, 0.75]) == pytest.approx(np.quantile(times[20:], [0.25, 0.75]), rel=0.01)
    assert steady_from(times) is None


STEADY = {
    "constant": lambda rng: np.ones(N),
    "a coarse clock": lambda rng: 1000 + 20.0 * (rng.random(N) < 0.1),
    "lognormal": lambda rng: rng.lognormal(0, 0.3, N),
    "two modes": lambda rng: np.where(rng.random(N) < 0.5, 1, 2) * rng.lognormal(0, 0.02, N),
    "dependent": lambda rng: np.exp(0.1 * ar1(rng, N, 0.5)),
}


@pytest.mark.parametrize("kind", STEADY)
def test_steady_samples_are_hardly_taken_for_warm_up(kind: str) -> None:
    rng = np.random.default_rng(6)
    found = [steady_from(STEADY[kind](rng)) for _ in range(60)]
    assert None not in found
    assert np.median([w for w in found if w is not None]) == 0
    assert np.quantile([w for w in found if w is not None], 0.8) <= 4


@pytest.mark.parametrize("at", [3, 15, 25, 39])
def test_one_long_sample_is_no_warm_up(at: int) -> None:
    assert steady_from(noise(4) * np.where(at == SAMPLE, 50, 1)) == 0
