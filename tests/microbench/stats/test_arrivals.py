"""Who was last: planted starts, exact tails and a published example of false discoveries."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from numpy.typing import NDArray

from microbench.stats import benjamini_hochberg, binomial_upper_p, last_arrivals, persistent


def test_the_last_of_each_iteration_counts_and_ties_count_for_nobody() -> None:
    starts = [[1, 9, 5, 7], [2, 8, 5, 7], [3, 1, 4, 1]]
    assert last_arrivals(starts).tolist() == [1, 0, 1]  # a tie in the third and in the fourth
    assert last_arrivals(np.zeros((3, 0))).tolist() == [0, 0, 0]


@pytest.mark.parametrize(("n", "p"), [(5, Fraction(1, 2)), (40, Fraction(1, 3)), (200, Fraction(1, 10))])
def test_upper_tails_are_exact(n: int, p: Fraction) -> None:
    for count in range(0, n + 1, max(1, n // 7)):
        tail = sum(comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(count, n + 1))
        assert binomial_upper_p(count, n, float(p)) == pytest.approx(float(tail), rel=1e-9)


def test_upper_tails_at_the_ends() -> None:
    assert binomial_upper_p(0, 10, 0.3) == 1.0
    assert binomial_upper_p(11, 10, 0.3) == 0.0
    assert binomial_upper_p(10, 10, 1.0) == 1.0
    assert binomial_upper_p(1, 10, 0.0) == 0.0


def test_false_discoveries_as_published() -> None:
    # Section 3.1 of Benjamini and Hochberg 1995.
    p_values = (0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
                0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000)  # fmt: skip
    assert benjamini_hochberg(p_values, 0.05) == (True,) * 4 + (False,) * 11
    assert benjamini_hochberg(p_values[::-1], 0.05) == (False,) * 11 + (True,) * 4


def test_a_larger_p_value_that_passes_takes_the_smaller_ones_with_it() -> None:
    assert benjamini_hochberg((0.039, 0.03, 0.9), 0.06) == (True, True, False)  # 0.03 alone is above 0.02
    assert benjamini_hochberg((), 0.05) == ()
    assert benjamini_hochberg((0.5, 0.6), 0.05) == (False, False)


def sticky(rng: np.random.Generator, ranks: int, iterations: int, stay: int) -> NDArray[np.float64]:
    """Starts of ranks of which one by chance is last for ``stay`` iterations on end."""
    starts = rng.random((ranks, iterations))
    who = np.repeat(rng.integers(ranks, size=iterations // stay), stay)
    starts[who, np.arange(iterations)] += 1.0
    return starts


@pytest.mark.parametrize("stay", [1, 10])
def test_a_planted_straggler_is_the_persistent_one(stay: int) -> None:
    starts = sticky(np.random.default_rng(9), 8, 500, stay)
    assert persistent(starts) == ()
    starts[5] += np.where(np.arange(500) % 3, 2.0, 0.0)
    assert persistent(starts) == (5,)


@pytest.mark.parametrize("stay", [1, 10])
def test_chance_is_hardly_ever_called_persistent(stay: int) -> None:
    rng = np.random.default_rng(10)
    false = sum(bool(persistent(sticky(rng, 8, 300, stay))) for _ in range(300))
    assert false <= 9  # 1 % of 300, and its spread


def test_nobody_is_persistent_without_others_or_without_iterations() -> None:
    assert persistent(np.arange(50)[None, :]) == ()
    assert persistent(np.zeros((3, 0))) == ()
    assert persistent(np.zeros((3, 10))) == ()
    starts = np.zeros((5, 72))
    starts[np.random.default_rng(11).permutation([0] * 30 + [1] * 10 + [2] * 10 + [3] * 10 + [4] * 12), range(72)] = 1
    assert persistent(starts) == (0,)
