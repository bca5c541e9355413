"""Exact ranks against enumeration and published tables; verdicts on planted launches."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import combinations, product

import numpy as np
import pytest

from microbench.record import Better
from microbench.stats import Verdict, a12, decide, hodges_lehmann, mann_whitney_p, null_counts
from microbench.stats.compare import _lower_tail, _normal, _rank

OLD = [1.000, 1.002, 0.998, 1.001, 0.999, 1.003]


@pytest.mark.parametrize(("n", "m"), [(3, 4), (4, 3), (1, 5), (6, 6)])
def test_null_counts_are_those_of_all_orders(n: int, m: int) -> None:
    counted = Counter(sum(ranks) - n * (n - 1) // 2 for ranks in combinations(range(n + m), n))
    assert null_counts(n, m).tolist() == [counted[u] for u in range(n * m + 1)]


@pytest.mark.parametrize(("n", "m"), [(20, 20), (1, 400), (400, 1), (10, 40)])
def test_null_counts_of_the_largest_sizes_add_up(n: int, m: int) -> None:
    counts = null_counts(n, m)
    assert int(counts.sum()) == math.comb(n + m, n)
    assert np.array_equal(counts, counts[::-1])
    assert counts.min() >= 1


@pytest.mark.parametrize(
    ("n", "m", "critical"), [(4, 4, 0), (5, 5, 2), (6, 6, 5), (8, 8, 13), (10, 10, 23), (6, 10, 11), (20, 20, 127)]
)
def test_critical_values_of_the_published_two_sided_five_per_cent_table(n: int, m: int, critical: int) -> None:
    assert _rank(n, m, 0.95) - 1 == critical


def test_one_per_cent_needs_five_launches_and_five_per_cent_four() -> None:
    assert (_rank(5, 5, 0.99), _rank(4, 4, 0.99), _rank(4, 4, 0.95), _rank(3, 3, 0.95)) == (1, 0, 1, 0)
    assert _rank(3, 3, 0.9) == 1  # 2 / C(6, 3) is 10 % exactly


def test_the_normal_approximation_meets_the_exact_one() -> None:
    assert math.floor(_normal(20, 20).inv_cdf(0.025) + 0.5) == _rank(20, 20, 0.95)
    assert _normal(20, 20).cdf(127.5) == pytest.approx(_lower_tail(127, 20, 20), rel=0.02)
    assert _rank(21, 21, 0.95) - 1 == 142  # the exact critical value


def test_hodges_lehmann_by_hand() -> None:
    shift = hodges_lehmann([11, 12, 13, 14, 15, 16], [1, 2, 3, 4, 5, 6])
    assert (shift.value, shift.low, shift.high, shift.n) == (10.0, 7.0, 13.0, 12)  # the 6th of 36 from either end
    assert hodges_lehmann([1.0, 5.0], [0.0]).value == 3.0


def test_too_few_values_have_no_interval() -> None:
    three = hodges_lehmann([4, 5, 6], [1, 2, 3])
    assert (three.value, three.low, three.high) == (3.0, None, None)


@pytest.mark.parametrize("shape", [np.random.Generator.normal, np.random.Generator.standard_cauchy])
def test_the_interval_holds_the_shift_often_enough(shape: Callable[..., np.ndarray]) -> None:
    rng = np.random.default_rng(12)
    held = 0
    for _ in range(3000):
        shift = hodges_lehmann(shape(rng, size=6) + 0.7, shape(rng, size=6))
        assert shift.low is not None
        assert shift.high is not None
        held += shift.low <= 0.7 <= shift.high
    assert held / 3000 == pytest.approx(1 - 2 * 19 / 924, abs=0.012)  # exactly 0.959


def test_a12() -> None:
    assert a12([4, 5, 6], [1, 2, 3]) == 1.0
    assert a12([1, 2, 3], [4, 5, 6]) == 0.0
    assert a12([1, 2], [1, 2]) == 0.5
    assert a12([1, 2, 3], [2]) == 0.5
    assert a12([2, 3], [1, 2]) == pytest.approx(7 / 8)


def test_mann_whitney_p_of_known_orders() -> None:
    assert mann_whitney_p([4, 5, 6], [1, 2, 3]) == pytest.approx(2 / 20)
    assert mann_whitney_p([1, 2, 3], [4, 5, 6]) == pytest.approx(2 / 20)
    assert mann_whitney_p([1, 3, 5], [2, 4, 6]) == pytest.approx(0.7)  # U = 3: 2 (1 + 1 + 2 + 3) / 20
    assert mann_whitney_p(range(100, 130), range(30)) < 1e-9  # 900 pairs: normal
    assert mann_whitney_p([1.0] * 5, [1.0] * 5) == 1.0


def test_ties_are_conservative() -> None:
    tied = mann_whitney_p([2, 2, 3], [1, 2, 2])
    for nudges in product((-0.1, 0.1), repeat=4):
        a, b, c, d = np.array(nudges) * np.array([1, 1.1, 1.2, 1.3])
        assert mann_whitney_p([2 + a, 2 + b, 3], [1, 2 + c, 2 + d]) <= tied


@pytest.mark.parametrize(
    ("factor", "better", "verdict"),
    [
        (1.05, "lower", "regressed"), (1.05, "higher", "improved"),
        (0.95, "lower", "improved"), (0.95, "higher", "regressed"),
        (1.0005, "lower", "equivalent"), (1.0005, "higher", "equivalent"),
        (1.010, "lower", "inconclusive"), (0.990, "higher", "inconclusive"),
    ],
)  # fmt: skip
def test_verdicts_on_planted_ratios(factor: float, better: Better, verdict: Verdict) -> None:
    found = decide([factor * x for x in OLD], OLD, better, margin=0.01)
    assert found.verdict == verdict
    assert found.ratio.value == pytest.approx(factor)
    assert found.ratio.low is not None
    assert found.ratio.high is not None
    assert found.ratio.low <= factor <= found.ratio.high


def test_reasons_name_interval_and_margin() -> None:
    slower = decide([1.05 * x for x in OLD], OLD, "lower", 0.01)
    assert slower.reason == "99.5 % interval 1.046 to 1.054 beyond 1 +- 0.01"
    assert decide(OLD, OLD, "lower", 0.01).reason == "95 % interval 0.997 to 1.003 within 1 +- 0.01"
    reason = decide([1.01 * x for x in OLD], OLD, "lower", 0.01).reason
    assert reason == "99.5 % interval 1.006 to 1.014 not beyond, 95 % interval 1.007 to 1.013 not within 1 +- 0.01"


def test_a_difference_within_the_margin_is_none_however_significant() -> None:
    new = [1.02 * x for x in OLD]
    assert mann_whitney_p(new, OLD) < 0.01
    assert decide(new, OLD, "lower", 0.03).verdict == "equivalent"
    assert decide(new, OLD, "lower", 0.01).verdict == "regressed"


def test_a_difference_needs_the_stricter_level() -> None:
    noisy = [1.05, 1.06, 1.07, 1.055, 1.065, 1.0105]
    found = decide(noisy, OLD, "lower", 0.01)
    assert found.ratio.low is not None
    assert found.ratio.low > 1.01
    assert found.verdict == "inconclusive"
    assert decide(noisy, OLD, "lower", 0.01, different_level=0.95).verdict == "regressed"


def test_a_level_out_of_reach_is_inconclusive() -> None:
    found = decide([2 * x for x in OLD], OLD, "lower", 0.01, different_level=0.999)
    assert found.verdict == "inconclusive"
    assert found.reason.startswith("no 99.9 % interval")


@pytest.mark.parametrize(
    ("new", "old", "better", "reason"),
    [
        ([2.0, 2.0], OLD, "lower", "2 launches < 6"),
        (OLD, [1.0], "lower", "1 launch < 6"),
        ([], OLD, "lower", "0 launches < 6"),
        ([*OLD[:5], 0.0], OLD, "lower", "values that are not positive have no ratio"),
        ([-x for x in OLD], OLD, "lower", "values that are not positive have no ratio"),
        ([*OLD[:5], math.nan], OLD, "lower", "values that are not positive have no ratio"),
        ([2 * x for x in OLD], OLD, "none", "neither more nor less is better"),
    ],
)
def test_what_cannot_be_decided_says_why(new: list[float], old: list[float], better: Better, reason: str) -> None:
    found = decide(new, old, better, margin=0.01)
    assert (found.verdict, found.reason) == ("inconclusive", reason)


def test_few_launches_still_have_a_ratio() -> None:
    found = decide([2.0, 2.0], [1.0, 1.0, 1.0], "lower", 0.01)
    assert (found.ratio.value, found.ratio.low, found.a12) == (pytest.approx(2.0), None, 1.0)
    assert math.isnan(decide([], OLD, "lower", 0.01).ratio.value)
    assert math.isnan(decide([-1.0] * 6, OLD, "lower", 0.01).ratio.value)


def test_the_same_twice_is_hardly_ever_different_and_five_per_cent_hardly_ever_missed() -> None:
    rng = np.random.default_rng(13)
    verdicts: dict[float, Counter[str]] = {1.0: Counter(), 1.05: Counter()}
    for factor, seen in verdicts.items():
        for _ in range(400):
            new, old = (f * rng.lognormal(0, 0.01, 6) for f in (factor, 1.0))
            seen[decide(new.tolist(), old.tolist(), "lower", 0.01).verdict] += 1
    assert verdicts[1.0]["regressed"] + verdicts[1.0]["improved"] <= 4
    assert verdicts[1.05]["regressed"] >= 380


def test_nothing_to_compare_is_an_error() -> None:
    for f in (hodges_lehmann, a12, mann_whitney_p):
        with pytest.raises(ValueError, match="no values"):
            f([], [1.0])
