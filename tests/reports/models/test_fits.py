"""Planted parameters are found again; what is no line is called so."""

from __future__ import annotations

import numpy as np
import pytest

from reports.models import hockney, loggp
from reports.models.hockney import around
from reports.models.least_squares import line, nonnegative
from reports.models.points import Points
from tests.reports.models.planted import SIZES, Fabric

PLANTED = Fabric()


def exact(sizes: list[int], times: list[float]) -> Points:
    return Points(np.array(sizes, "f8"), np.array(times), np.zeros(len(sizes)))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_planted_fabric_is_recovered_within_3_percent(seed: int) -> None:
    first = loggp.fit(PLANTED.probes(SIZES, seed), resamples=20)
    assert first.edge is not None
    sharper = tuple(sorted({*SIZES, *around(first.edge, 12)}))
    found = loggp.fit(PLANTED.probes(sharper, seed + 100))
    assert found.edge is not None and len(found.trips.segments) == 2
    got = {"latency_s": found.latency_s, "send_s": found.send_s, "receive_s": found.receive_s,
           "gap_s": found.gap_s, "s_per_byte": found.s_per_byte, "edge": found.edge}  # fmt: skip
    for name, interval in got.items():
        assert interval.value == pytest.approx(getattr(PLANTED, name), rel=0.03), name
        assert interval.low is not None and interval.high is not None, name
        assert interval.low <= interval.value <= interval.high, name
    assert found.edge.low <= PLANTED.edge <= found.edge.high
    assert found.fits and found.verdict == "fits"


def test_intervals_hold_the_planted_values_about_as_often_as_they_say() -> None:
    """Of launches drawn again: a percentile bootstrap of 6 is narrower than 95 %, never by half."""
    held = []
    for seed in range(20):
        found = loggp.fit(PLANTED.probes(SIZES[:48], seed), resamples=100)
        for name in ("send_s", "receive_s", "gap_s"):
            interval = getattr(found, name)
            held.append(interval.low <= getattr(PLANTED, name) <= interval.high)
    assert np.mean(held) > 0.75


def test_extra_sizes_lie_within_the_edge() -> None:
    found = hockney.fit(PLANTED.probes(SIZES).half, resamples=20).edges[0]
    extra = around(found, 6)
    assert found.low < min(extra) and max(extra) < found.high and all(m % 4 == 0 for m in extra)
    assert len(extra) == 6


def test_an_edge_may_make_messages_faster() -> None:
    sizes = [1 << k for k in range(4, 24)]
    times = [5e-6 + m * 2e-9 if m < 1 << 16 else 2e-6 + m * 0.5e-9 for m in sizes]
    found = hockney.fit(exact(sizes, times), resamples=0)
    assert [s.first_bytes for s in found.segments] == [16, 1 << 16]
    assert found.segments[1].s_per_byte.value == pytest.approx(0.5e-9)
    assert found.segments[0].half_bytes == pytest.approx(2500)
    assert found.time_s([16, 1 << 20]) == pytest.approx([times[0], times[16]])
    assert found.segment(1 << 15) is found.segments[0] and found.segment(1) is found.segments[0]


def test_what_is_no_line_does_not_fit() -> None:
    sizes = [1 << k for k in range(12)]
    found = hockney.fit(exact(sizes, [1e-6 * (1 + 0.5 * (k % 2)) for k in range(12)]), resamples=0)
    assert not found.fits and found.verdict.startswith("does not fit: off by ")


def test_noise_alone_makes_no_edges() -> None:
    calm = Fabric(edge=1 << 40)
    assert [len(hockney.fit(calm.probes(SIZES, seed).half, resamples=0).segments) for seed in range(5)] == [1] * 5


def test_costs_are_never_negative() -> None:
    """Times that fall with the size have no rate: the best that is allowed is their mean."""
    x, y, w = np.arange(4.0), np.array([[4.0, 3, 2, 1], [1, 3, 5, 7], [-1, 1, 3, 5]]), np.ones(4)
    a, b = line(x, y, w)
    assert a == pytest.approx([2.5, 1, 0]) and b == pytest.approx([0, 2, 22 / 14])
    features = np.stack([np.ones(4), x], axis=1)
    coefficients, error = nonnegative(features, y, w)
    assert coefficients == pytest.approx(np.stack([a, b], axis=1))
    assert error[:2] == pytest.approx([5, 0])


def test_too_few_sizes_are_told() -> None:
    with pytest.raises(ValueError, match="3 sizes: a line takes 4"):
        hockney.fit(exact([1, 2, 3], [1.0, 2, 3]))
    with pytest.raises(ValueError, match="must rise"):
        exact([1, 1], [1.0, 1])


def test_a_segment_that_fits_is_trusted_where_another_does_not() -> None:
    sizes = [1 << k for k in range(4, 24)]
    times = [5e-6 * (1 + 0.5 * (k % 2)) if m < 1 << 12 else 50e-6 + m * 1e-9 for k, m in enumerate(sizes)]
    found = hockney.fit(exact(sizes, times), resamples=0)
    assert not found.fits and found.verdict.startswith("does not fit")
    assert found.trusted(1 << 15, 1 << 20) and not found.trusted(64, 1 << 20)
