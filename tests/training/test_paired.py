from __future__ import annotations

import numpy as np
import pytest

from training import paired

MS = 1_000_000


def planted(ranks: int, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Steps whose compute time drifts by far more than the 30 ms of exposed communication."""
    drift = np.linspace(100, 900, pairs).round().astype(np.int64) * MS
    noop = np.stack([drift - rank * MS for rank in range(ranks)])
    return noop + 30 * MS, noop


def test_difference_of_pairs_survives_drift() -> None:
    step, noop = planted(ranks=3, pairs=9)
    got = paired.metrics(step, noop, images=48)
    exposed = got["exposed"]
    assert exposed.value == pytest.approx(0.030)
    assert (exposed.low, exposed.high) == (pytest.approx(0.030), pytest.approx(0.030))
    assert got["step_noop"].high > 2 * got["step_noop"].low  # type: ignore[operator]


def test_step_lasts_as_long_as_on_the_slowest_rank() -> None:
    step = np.array([[10, 50], [40, 20]]) * MS
    noop = np.array([[9, 5], [1, 7]]) * MS
    got = paired.metrics(step, noop, images=4)
    assert got["step"].value == pytest.approx(0.045)
    assert got["step_noop"].value == pytest.approx(0.008)
    assert got["exposed"].value == pytest.approx((0.031 + 0.043) / 2)


def test_rate_and_fraction_come_from_the_medians() -> None:
    step, noop = planted(ranks=2, pairs=9)
    got = paired.metrics(step, noop, images=53)
    assert got["step"].value == pytest.approx(0.530)
    rate, fraction = got["images_per_s"], got["exposed_fraction"]
    assert (rate.value, rate.unit, rate.better, rate.kind) == (
        pytest.approx(100.0),
        "images/s",
        "higher",
        "derived",
    )
    assert rate.low == pytest.approx(53 / got["step"].high)  # type: ignore[operator]
    assert (fraction.value, fraction.unit, fraction.kind) == (pytest.approx(0.030 / 0.530), "1", "derived")


def test_fraction_spans_the_ends_of_both_intervals() -> None:
    step = np.arange(101, 109, dtype=float)
    fraction = paired.exposed_fraction(step, step - np.array([-1, 2, 3, 4, 5, 6, 7, 8]))
    assert (fraction.low, fraction.high) == (pytest.approx(-1 / 101), pytest.approx(8 / 101))


def test_too_few_pairs_have_no_interval_and_say_so() -> None:
    got = paired.metrics(*planted(ranks=1, pairs=6), images=1)
    assert got["exposed"].low is not None
    assert (got["exposed_fraction"].low, got["exposed_fraction"].note) == (None, "n=6 < 7")
    assert paired.metrics(*planted(ranks=1, pairs=paired.MIN_PAIRS), images=1)["exposed_fraction"].low is not None


def test_fraction_holds_the_truth_often_enough() -> None:
    random, held, trials = np.random.default_rng(5), 0, 400
    many = 1.3 + random.exponential(0.1, 10**6) + random.normal(0, 0.1, 10**6)
    truth = 0.3 / float(np.median(many))
    for _ in range(trials):
        noop = 1 + random.exponential(0.1, 20)
        step = noop + 0.3 + random.normal(0, 0.1, 20)
        fraction = paired.exposed_fraction(step, noop)
        assert fraction.low is not None
        assert fraction.high is not None
        held += fraction.low <= truth <= fraction.high
    assert held >= 0.95 * trials


@pytest.mark.parametrize(
    ("pair_s", "budget_s", "most", "expected"),
    [
        (1.0, 21.9, 1000, (20, "time")),
        (1.0, 3.0, 1000, (8, "minimum")),
        (0.001, 60.0, 31, (30, "max_iterations")),
        (1.0, 1.0, 5, (4, "max_iterations")),
        (1.0, 1.0, 1, (2, "max_iterations")),
    ],
)
def test_budget_decides_how_many(pair_s: float, budget_s: float, most: int, expected: tuple[int, str]) -> None:
    got = paired.budget(pair_s, budget_s, most)
    assert (got.pairs, got.stop_reason) == expected


def test_order_alternates_and_ends_with_an_exchange() -> None:
    order = [exchange for pair in range(4) for exchange in paired.exchanges(pair)]
    assert order == [True, False, False, True, True, False, False, True]
