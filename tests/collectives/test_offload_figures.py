"""Planted times in, known figures out."""

from __future__ import annotations

import numpy as np
import pytest

from collectives.offload import figures
from collectives.offload.bench import check_tally, crowding, disturbance, placement
from microbench.case import Invalid

MS = 1_000_000
PLANTED = {
    "compute": 10 * MS,
    "host.pure": 8 * MS,
    "host.overall": 16 * MS,
    "host.work": 11 * MS,
    "probes16.overall": 14 * MS,
    "staged.pure": 12 * MS,
    "staged.overall": 10.5 * MS,
    "staged.work": 10 * MS,
}


def constant(rounds=6, block=2, **changed):
    times = {**PLANTED, **{name.replace("_", "."): value for name, value in changed.items()}}
    return {name: np.full((rounds, block), int(value), "i8") for name, value in times.items()}


def noisy(rounds, seed, drift=0.0):
    rng = np.random.default_rng(seed)
    level = 1 + drift * rng.standard_normal((rounds, 1))  # a round's drift meets all steps alike
    return {
        name: (value * level * (1 + 0.02 * rng.standard_normal((rounds, 2)))).astype("i8")
        for name, value in PLANTED.items()
    }


def values(samples, noise_ns=400.0):
    return {name: m.value for name, m in figures.metrics(samples, noise_ns).items()}


def test_overlap_is_saved_time_over_the_shorter_of_both():
    found = values(constant())
    assert found["host.overlap"] == pytest.approx((8 + 10 - 16) / 8)
    assert found["probes16.overlap"] == pytest.approx((8 + 10 - 14) / 8)
    assert found["staged.overlap"] == pytest.approx((12 + 10 - 10.5) / 10)


def test_perfect_overlap_is_one_and_none_is_zero():
    assert values(constant(host_overall=10 * MS))["host.overlap"] == pytest.approx(1.0)
    assert values(constant(host_overall=18 * MS))["host.overlap"] == pytest.approx(0.0)


def test_overlap_is_neither_clipped_below_zero_nor_above_one():
    assert values(constant(host_overall=24 * MS))["host.overlap"] == pytest.approx(-0.75)
    assert values(constant(staged_overall=9 * MS))["staged.overlap"] == pytest.approx(1.3)


def test_exposed_time_and_dilation():
    found = values(constant())
    assert found["staged.exposed"] == pytest.approx(0.5e-3)
    assert found["host.dilation"] == pytest.approx(0.1)
    assert found["staged.dilation"] == pytest.approx(0.0)
    assert "probes16.dilation" not in found


def test_net_gain_is_against_the_fastest_host_mode():
    found = values(constant())
    assert found["staged.net_gain"] == pytest.approx(1 - 10.5 / 14)
    assert figures.best_host(figures.medians(constant())) == "probes16"


def test_blocking_is_a_host_mode_too():
    samples = constant(host_overall=30 * MS, probes16_overall=25 * MS)
    assert figures.best_host(figures.medians(samples)) == "blocking"
    assert values(samples)["blocking.overall"] == pytest.approx(18e-3)
    assert values(samples)["staged.net_gain"] == pytest.approx(1 - 10.5 / 18)


def test_an_offload_that_overlaps_well_can_still_lose():
    found = values(constant(staged_pure=60 * MS, staged_overall=61 * MS))
    assert found["staged.overlap"] == pytest.approx(0.9)
    assert found["staged.net_gain"] == pytest.approx(1 - 61 / 14)


def test_a_time_below_the_timer_has_no_overlap_but_a_reason():
    found = figures.metrics(constant(host_pure=300), 400.0)
    for name in ("host.overlap", "probes16.overlap"):
        assert found[name].value is None
        assert "host.pure 300 ns" in found[name].note
    assert found["staged.overlap"].value is not None
    assert found["host.exposed"].value == pytest.approx(6e-3)


def test_no_compute_gives_no_quotients_and_no_warnings():
    found = figures.metrics(constant(compute=0, host_work=0, staged_work=0), 400.0)
    assert found["staged.overlap"].value is None
    assert found["host.dilation"].value is None
    assert found["host.exposed"].value == pytest.approx(16e-3)


def test_measured_intervals_are_order_statistics_and_derived_ones_hold_their_value():
    found = figures.metrics(noisy(6, seed=3), 400.0)
    assert found["compute"].kind == "measured"
    assert found["staged.overlap"].kind == "derived"
    for m in found.values():
        assert m.low < m.value < m.high
        assert m.n == 12


def test_the_bootstrap_is_seeded():
    assert figures.metrics(noisy(6, 3), 400.0, seed=5) == figures.metrics(noisy(6, 3), 400.0, seed=5)


def test_drift_that_meets_all_steps_alike_cancels_in_ratios():
    calm, drifting = (figures.metrics(noisy(10, 7, drift), 400.0)["staged.net_gain"] for drift in (0.0, 0.2))
    assert drifting.high - drifting.low < 3 * (calm.high - calm.low)


def test_intervals_of_net_gain_cover_the_truth_about_as_often_as_they_say():
    truth, covered = 1 - 10.5 / 14, 0
    for seed in range(120):
        m = figures.metrics(noisy(6, seed), 400.0)["staged.net_gain"]
        covered += m.low <= truth <= m.high
    assert covered >= 0.9 * 120


def test_too_few_rounds_give_values_without_intervals_and_say_so():
    m = figures.metrics(constant(rounds=3), 400.0)["staged.net_gain"]
    assert m.value is not None
    assert m.low is None
    assert "3 rounds" in m.note


def test_a_dpu_that_did_less_than_asked_is_found():
    check_tally([46, 46], 46)
    with pytest.raises(Invalid, match=r"offload not used: 46 .* did 46, 45"):
        check_tally([46, 45], 46)
    with pytest.raises(Invalid, match="offload not used"):
        check_tally([0, 0], 46)


def test_split_means_that_the_reported_host_has_its_cores_alone():
    hosts = ("h0", "h1", "d0", "d1")
    assert placement(hosts, ((0,), (1,), (1,), (1,)), True) == "split h0:0 h1:1 d0:1 d1:1"
    assert placement(hosts, ((0,), (0,), (0,), (0,)), True).startswith("shared ")
    assert placement(hosts, ((0,), (0,), (0,), (0,)), False).startswith("split ")  # real hosts, cores of their own


def test_a_crowded_core_is_flagged_with_the_ranks_on_it():
    assert crowding(("h0", "h1", "d0", "d1"), ((0,), (1,), (0, 1), (1,)), True) == [
        "rank 0 shares its cores with ranks 2: compute and communication compete"
    ]


def test_compute_that_slowed_down_since_its_calibration_is_flagged():
    assert disturbance(10.2 * MS, 10 * MS) == []
    assert "1.50 times" in disturbance(15 * MS, 10 * MS)[0]
    assert disturbance(0, 0) == []
