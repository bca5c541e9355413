"""Looks, their level against Pocock's constants, and a stopping rule whose coverage holds."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from numpy.typing import NDArray

from microbench.stats import LEVEL, Interval, Rule, look_level, looks, quantile, relative_half_width


def test_looks_grow_by_half_and_end_with_the_last() -> None:
    assert looks(30, 300) == (30, 45, 68, 102, 153, 230, 300)
    assert looks(30, 230) == (30, 45, 68, 102, 153, 230)
    assert looks(30, 31) == (30, 31)
    assert looks(30, 30) == (30,)
    assert looks(30, 12) == (12,)
    assert looks(10, 50, ratio=2) == (10, 20, 40, 50)


@pytest.mark.parametrize(("first", "last", "ratio"), [(0, 10, 1.5), (30, 0, 1.5), (30, 100, 1.0)])
def test_looks_that_would_not_end(first: int, last: int, ratio: float) -> None:
    with pytest.raises(ValueError, match="no looks"):
        looks(first, last, ratio)


def boundary(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)


@pytest.mark.parametrize(("k", "c"), [(2, 2.178), (3, 2.289), (4, 2.361), (5, 2.413), (10, 2.555)])
def test_pococks_constants(k: int, c: float) -> None:
    assert boundary(look_level(tuple(range(1, k + 1)))) == pytest.approx(c, abs=6e-4)


def test_pococks_constant_at_another_level() -> None:
    assert boundary(look_level((1, 2, 3, 4, 5), 0.99)) == pytest.approx(2.986, abs=6e-4)


def test_the_level_of_a_look() -> None:
    assert look_level((100,)) == LEVEL
    two = look_level((30, 45))
    assert LEVEL < two < look_level((30, 45, 68)) < 1 - (1 - LEVEL) / 3  # Bonferroni is an upper bound
    assert look_level((1, 10**9)) == pytest.approx(math.sqrt(LEVEL), abs=1e-5)  # independent looks
    assert LEVEL < look_level((10_000, 10_001)) < look_level((100, 110))  # nearly the same look twice


@pytest.mark.parametrize("counts", [(), (0, 1), (30, 30), (45, 30)])
def test_looks_have_to_increase(counts: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="do not increase"):
        look_level(counts)


def test_all_looks_of_a_random_walk_hold_together() -> None:
    counts = looks(30, 1000)
    steps = np.diff([0, *counts])
    rng = np.random.default_rng(8)
    walks = np.cumsum(rng.normal(size=(20_000, len(counts))) * np.sqrt(steps), axis=1)
    farthest = np.abs(walks / np.sqrt(counts)).max(axis=1)
    assert np.mean(farthest <= boundary(look_level(counts))) == pytest.approx(LEVEL, abs=0.005)
    assert np.mean(farthest <= boundary(LEVEL)) < 0.85


def test_relative_half_width() -> None:
    assert relative_half_width(Interval(-10.0, -11.0, -9.0, 50)) == pytest.approx(0.1)
    assert relative_half_width(Interval(10.0, None, None, 3)) is None
    assert relative_half_width(Interval(0.0, -1.0, 1.0, 50)) is None


def test_a_rule_looks_from_thirty_or_its_fewest_to_the_most() -> None:
    rule = Rule.plan(0.01, 6, 100)
    assert rule.looks == (30, 45, 68, 100)
    assert rule.level == look_level(rule.looks)
    assert Rule.plan(0.01, 72, 200).looks == (72, 108, 162, 200)
    assert Rule.plan(0.01, 6, 10) == Rule(0.01, 6, (10,), LEVEL)


def test_enough_is_a_narrow_interval_of_enough_samples() -> None:
    rule = Rule.plan(0.05, 6, 100)
    rng = np.random.default_rng(5)
    narrow, wide = np.exp(0.01 * rng.normal(size=45)), np.exp(rng.normal(size=45))
    assert rule.enough(narrow)
    assert not rule.enough(wide)
    assert not replace(rule, fewest=46).enough(narrow)
    assert not rule.enough(narrow[:5])  # no interval
    assert rule.verdict(narrow) == quantile(narrow, level=rule.level, series=True)
    assert rule.verdict(narrow, 0.75).value == pytest.approx(float(np.quantile(narrow, 0.75)))


def coverage(rule: Rule, draw: Callable[[np.random.Generator], NDArray[np.float64]], truth: float) -> float:
    rng = np.random.default_rng(21)
    held, runs = 0, 400
    for _ in range(runs):
        x = draw(rng)
        n = next((n for n in rule.looks[:-1] if rule.enough(x[:n])), rule.looks[-1])
        seen = rule.verdict(x[:n])
        assert seen.low is not None
        assert seen.high is not None
        held += seen.low <= truth <= seen.high
    return held / runs


def test_stopping_at_the_first_narrow_interval_costs_coverage_unless_the_looks_are_corrected_for() -> None:
    rule = Rule.plan(0.01, 6, 700)

    def fast_or_slow(rng: np.random.Generator) -> NDArray[np.float64]:
        level = np.where(rng.random(700) < 0.47, 1.0, 1.2)
        return level * np.exp(0.01 * rng.normal(size=700))

    # The median lies in the slow mode: the quantile (0.5 - 0.47) / 0.53 of it. Intervals in one mode are narrow.
    truth = 1.2 * math.exp(0.01 * NormalDist().inv_cdf(0.03 / 0.53))
    assert coverage(rule, fast_or_slow, truth) >= 0.94
    assert coverage(replace(rule, level=LEVEL), fast_or_slow, truth) < 0.92
