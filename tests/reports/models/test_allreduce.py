"""Planted allreduces are told apart by the ranks left out; formulas agree with the schedules that they describe."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from collectives.schedules import ALGORITHMS, NEEDS_HOSTS
from collectives.simulate import Network, simulate
from reports.models import cost
from reports.models.allreduce import Cells, crossovers, explain, likeness
from reports.models.points import Points

A, B, C = 10e-6, 1e-9, 0.25e-9
SIZES = np.array([float(1 << k) for k in range(3, 25)])


def planted(algorithm: str, ranks: tuple[int, ...], noise: float = 0.02, seed: int = 0) -> Cells:
    """Six launches of an algorithm's own times."""
    rng = np.random.default_rng(seed)
    points = []
    for p in ranks:
        t = cost.columns(algorithm, [(p, 1)] * SIZES.size, SIZES) @ np.array([A, B, C, 0, 0])
        launches = t * (1 + noise * rng.standard_normal((6, SIZES.size)))
        points.append(Points(SIZES, np.median(launches, axis=0), noise * t, tuple(map(tuple, launches.T.tolist()))))
    return Cells(tuple((p, 1) for p in ranks), tuple(points))


@pytest.mark.parametrize("algorithm", cost.FLAT)
@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 8])
def test_formulas_are_what_schedules_take_on_a_network_of_their_terms(algorithm: str, ranks: int) -> None:
    """On counts that ranks divide; the binomial tree's edges carry whole buffers, others halve them."""
    nbytes = 4 * 840
    timing = simulate(ALGORITHMS["allreduce", algorithm](ranks, nbytes // 4), 4,
                      Network(A, 1 / B, reduce_bytes_per_s=1 / C))  # fmt: skip
    row = cost.columns(algorithm, [(ranks, 1)], np.array([float(nbytes)]))[0]
    assert float(row @ np.array([A, B, C, 0, 0])) == pytest.approx(timing.time_s, rel=0.02)


@pytest.mark.parametrize("algorithm", cost.LEVELS)
def test_formulas_of_two_levels_are_what_their_schedules_take(algorithm: str) -> None:
    ranks, per_host, nbytes = 8, 2, 4 * 840
    where = np.repeat(np.arange(4), per_host)
    network = Network(A, 1 / B, reduce_bytes_per_s=1 / C, host_of_rank=where, nics=1, local_latency_s=1e-6,
                      local_bytes_per_s=1e10)  # fmt: skip
    assert ("allreduce", algorithm) in NEEDS_HOSTS
    timing = simulate(ALGORITHMS["allreduce", algorithm](ranks, nbytes // 4, hosts=where.tolist()), 4, network)
    row = cost.columns(algorithm, [(ranks, per_host)], np.array([float(nbytes)]))[0]
    assert float(row @ np.array([A, B, C, 1e-6, 1e-10])) == pytest.approx(timing.time_s, rel=0.05)


@pytest.mark.parametrize("algorithm", cost.FLAT)
def test_the_planted_algorithm_is_found_by_the_ranks_left_out(algorithm: str) -> None:
    for found in explain(planted(algorithm, (2, 3, 4, 6, 8)), C, resamples=40):
        assert found.algorithm == algorithm and found.confidence > 0.9 and found.fits
        assert found.second is not None and found.second[1] > found.typical
        assert found.coefficients[2] == C


def test_parameters_are_recovered() -> None:
    small, _, large = explain(planted("ring", (2, 4, 8), noise=0.01), C, resamples=0)
    assert small.coefficients[0] == pytest.approx(A, rel=0.03)
    assert large.coefficients[1] == pytest.approx(B, rel=0.03)
    assert large.time_s(16, 1, 1e7) == pytest.approx(30 * A + 15 / 16 * 1e7 * (2 * B + C), rel=0.03)
    with pytest.raises(ValueError, match="33 ranks are more than 4 times the 8 measured"):
        large.time_s(33, 1, 1e7)


def test_the_cost_of_reducing_is_fitted_where_it_was_not_measured() -> None:
    large = explain(planted("recursive-doubling", (2, 3, 4, 8), noise=0.0), None, resamples=0)[-1]
    a, b, c = large.coefficients[:3]
    assert large.algorithm == "recursive-doubling" and (a, b + c) == pytest.approx((A, B + C), rel=1e-3)


def test_one_rank_count_tells_nothing_apart() -> None:
    assert explain(planted("ring", (4,)), C) == ()


def test_noise_without_a_law_is_not_called_a_fit() -> None:
    """At two ranks as slow as at eight: no formula predicts the one from the other."""
    ring = planted("ring", (2, 8))
    flat = Cells(ring.layouts, (ring.points[1], ring.points[1]))
    assert not any(found.fits for found in explain(flat, C, resamples=0))


def test_crossovers_are_where_planted_costs_cross() -> None:
    """lg p (a + n (b + c)) and 2 (p - 1) a + (p - 1)/p n (2 b + c) at 8 ranks."""
    fits = [(name, explain(planted(name, (2, 4, 8), noise=0.0), C, (name,), resamples=0))
            for name in ("recursive-doubling", "ring")]  # fmt: skip
    (first, small), (size, large) = crossovers(fits, 8, 1, 8, 1 << 24)
    assert (first, small, large) == (8, "recursive-doubling", "ring")
    exact = (2 * 7 - 3) * A / (3 * (B + C) - 7 / 8 * (2 * B + C))
    assert size == pytest.approx(exact, rel=0.07)


def _as(name: str) -> Callable[[int], cost.Features]:
    return cost.FLAT[name]


def test_likeness_names_the_schedule_that_takes_as_long() -> None:
    library = planted("rabenseifner", (4, 8), seed=1).points
    own = {name: planted(name, (4, 8), seed=2).points for name in cost.FLAT}
    (first, apart, cells), *others = likeness(library, own)
    assert (first, cells) == ("rabenseifner", 2 * SIZES.size) and apart < 0.03
    assert all(other[1] > 0.05 for other in others)


def test_features_of_odd_layouts() -> None:
    assert cost.features("ring", 4, per_host=4).row == (0, 0, 0.75, 6, 1.5)
    assert _as("binomial")(5).row == (6, 6, 3, 0, 0)
    assert cost.candidates([(4, 1)]) == tuple(cost.FLAT) and cost.candidates([(4, 2)]) == cost.ALGORITHMS
