"""Planted times in, known figures out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from collectives.overlap import figures

Samples = dict[str, NDArray[np.int64]]
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


def constant(rounds: int = 6, block: int = 2, **changed: float) -> Samples:
    times = {**PLANTED, **{name.replace("_", "."): value for name, value in changed.items()}}
    return {name: np.full((rounds, block), int(value), "i8") for name, value in times.items()}


def noisy(rounds: int, seed: int, drift: float = 0.0) -> Samples:
    rng = np.random.default_rng(seed)
    level = 1 + drift * rng.standard_normal((rounds, 1))  # a round's drift meets all steps alike
    return {
        name: (value * level * (1 + 0.02 * rng.standard_normal((rounds, 2)))).astype("i8")
        for name, value in PLANTED.items()
    }


def values(samples: Samples, noise_ns: float = 400.0, **more: Any) -> dict[str, Any]:
    return {name: m.value for name, m in figures.metrics(samples, noise_ns, **more).items()}


def test_overlap_is_saved_time_over_the_shorter_of_both() -> None:
    found = values(constant())
    assert found["host.overlap"] == pytest.approx((8 + 10 - 16) / 8)
    assert found["probes16.overlap"] == pytest.approx((8 + 10 - 14) / 8)
    assert found["staged.overlap"] == pytest.approx((12 + 10 - 10.5) / 10)


def test_perfect_overlap_is_one_and_none_is_zero() -> None:
    assert values(constant(host_overall=10 * MS))["host.overlap"] == pytest.approx(1.0)
    assert values(constant(host_overall=18 * MS))["host.overlap"] == pytest.approx(0.0)


def test_overlap_is_neither_clipped_below_zero_nor_above_one() -> None:
    assert values(constant(host_overall=24 * MS))["host.overlap"] == pytest.approx(-0.75)
    assert values(constant(staged_overall=9 * MS))["staged.overlap"] == pytest.approx(1.3)


def test_exposed_time_and_dilation() -> None:
    found = values(constant())
    assert found["staged.exposed"] == pytest.approx(0.5e-3)
    assert found["host.dilation"] == pytest.approx(0.1)
    assert found["staged.dilation"] == pytest.approx(0.0)
    assert "probes16.dilation" not in found


def test_net_gain_is_against_the_fastest_host_mode() -> None:
    found = values(constant())
    assert found["staged.net_gain"] == pytest.approx(1 - 10.5 / 14)
    assert figures.best_host(figures.medians(constant())) == "probes16"


def test_blocking_is_a_host_mode_too() -> None:
    samples = constant(host_overall=30 * MS, probes16_overall=25 * MS)
    assert figures.best_host(figures.medians(samples)) == "blocking"
    assert values(samples)["blocking.overall"] == pytest.approx(18e-3)
    assert values(samples)["staged.net_gain"] == pytest.approx(1 - 10.5 / 18)


def test_an_offload_that_overlaps_well_can_still_lose() -> None:
    found = values(constant(staged_pure=60 * MS, staged_overall=61 * MS))
    assert found["staged.overlap"] == pytest.approx(0.9)
    assert found["staged.net_gain"] == pytest.approx(1 - 61 / 14)


def test_a_time_below_the_timer_has_no_overlap_but_a_reason() -> None:
    found = figures.metrics(constant(host_pure=300), 400.0)
    for name in ("host.overlap", "probes16.overlap"):
        assert found[name].value is None
        assert "host.pure 300 ns" in found[name].note
    assert found["staged.overlap"].value is not None
    assert found["host.exposed"].value == pytest.approx(6e-3)


def test_no_compute_gives_no_quotients_and_no_warnings() -> None:
    found = figures.metrics(constant(compute=0, host_work=0, staged_work=0), 400.0)
    assert found["staged.overlap"].value is None
    assert found["host.dilation"].value is None
    assert found["host.exposed"].value == pytest.approx(16e-3)


def test_measured_intervals_are_order_statistics_and_derived_ones_hold_their_value() -> None:
    found = figures.metrics(noisy(6, seed=3), 400.0)
    assert found["compute"].kind == "measured"
    assert found["staged.overlap"].kind == "derived"
    for m in found.values():
        assert m.low < m.value < m.high
        assert m.n == 12


def test_the_bootstrap_is_seeded() -> None:
    assert figures.metrics(noisy(6, 3), 400.0, seed=5) == figures.metrics(noisy(6, 3), 400.0, seed=5)


def test_drift_that_meets_all_steps_alike_cancels_in_ratios() -> None:
    calm, drifting = (figures.metrics(noisy(10, 7, drift), 400.0)["staged.net_gain"] for drift in (0.0, 0.2))
    assert drifting.high - drifting.low < 3 * (calm.high - calm.low)


def test_intervals_of_net_gain_cover_the_truth_about_as_often_as_they_say() -> None:
    truth, covered = 1 - 10.5 / 14, 0
    for seed in range(120):
        m = figures.metrics(noisy(6, seed), 400.0)["staged.net_gain"]
        covered += m.low <= truth <= m.high
    assert covered >= 0.9 * 120


def test_too_few_rounds_give_values_without_intervals_and_say_so() -> None:
    m = figures.metrics(constant(rounds=3), 400.0)["staged.net_gain"]
    assert m.value is not None
    assert m.low is None
    assert "3 rounds" in m.note


def test_availability_is_what_the_collective_leaves_to_the_host() -> None:
    found = values(constant())
    assert found["host.availability"] == pytest.approx(1 - (16 - 10) / 8)
    assert found["staged.availability"] == pytest.approx(1 - 0.5 / 12)
    assert values(constant(staged_overall=9 * MS))["staged.availability"] == pytest.approx(1 + 1 / 12)


def test_the_processors_time_of_an_operation_is_what_the_compute_alone_does_not_take() -> None:
    clocks = {"compute.processor": 10 * MS, "host.processor": 16 * MS, "staged.processor": 10.4 * MS}
    samples = constant() | {name: np.full((6, 2), int(ns), "i8") for name, ns in clocks.items()}
    found = values(samples, outstanding=2)
    assert found["host.cpu"] == pytest.approx(3e-3)
    assert found["staged.cpu"] == pytest.approx(0.2e-3)
    assert not {"host.processor", "compute.processor", "host.work"} & set(found)


def test_a_mode_with_a_pure_time_of_its_own_is_judged_by_that() -> None:
    samples = constant(thread_pure=30 * MS, thread_overall=38 * MS)
    found = values(samples)
    assert found["thread.overlap"] == pytest.approx((30 + 10 - 38) / 10)
    assert found["probes16.pure"] == found["host.pure"] == pytest.approx(8e-3)


def test_the_best_host_mode_may_be_any_of_those_measured() -> None:
    samples = constant(gloo_pure=9 * MS, gloo_overall=11 * MS)
    assert figures.best_host(figures.medians(samples)) == "gloo"
    assert values(samples)["staged.net_gain"] == pytest.approx(1 - 10.5 / 11)
    alone = {name: times for name, times in constant().items() if not name.endswith(".overall") or "staged" in name}
    assert figures.best_host(figures.medians(alone)) == "blocking"


def test_every_offload_is_judged_by_the_same_host_mode() -> None:
    samples = constant(window_pure=9 * MS, window_overall=10 * MS, rma_pure=9 * MS, rma_overall=28 * MS)
    found = values(samples)
    assert found["window.net_gain"] == pytest.approx(1 - 10 / 14)
    assert found["rma.net_gain"] == pytest.approx(-1.0)
    assert "host.net_gain" not in found


def test_an_offload_that_was_not_used_has_its_times_but_no_gain() -> None:
    found = figures.metrics(constant(), 400.0, idle={"staged": figures.NOT_USED})
    assert found["staged.net_gain"].value is None
    assert found["staged.net_gain"].note == "n/a: host (offload not used)"
    assert found["staged.overall"].value == pytest.approx(10.5e-3)
    assert found["staged.overlap"].value is not None


def test_nothing_offloaded_has_no_gain() -> None:
    found = figures.metrics(constant(), 400.0, idle={"staged": figures.NOTHING})["staged.net_gain"]
    assert (found.value, found.note) == (None, "n/a: nothing was offloaded")


@pytest.mark.parametrize("step", ["staged.pure", "host.pure"])
def test_a_gain_takes_pure_times_that_the_timer_can_tell(step: str) -> None:
    found = figures.metrics(constant(**{step: 300}), 400.0)["staged.net_gain"]
    assert (found.value, found.note) == (None, f"n/a: {step} 300 ns < timer noise 400 ns")


def test_a_quotient_of_noise_has_no_value_but_a_reason() -> None:
    samples = noisy(6, 3) | {"compute": np.full((6, 2), 4000, "i8")}
    found = figures.metrics(samples, 400.0)
    assert (found["host.overlap"].value, found["host.overlap"].note) == (
        None, "n/a: noise of the times > compute 0.004 ms",
    )  # fmt: skip
    assert found["host.dilation"].value is None
    assert found["host.availability"].value is not None, "pure is long enough"
    assert found["host.exposed"].value is not None


def test_without_an_interval_a_small_part_tells_nothing() -> None:
    found = figures.metrics(constant(rounds=3, compute=40_000), 400.0)
    assert found["host.overlap"].note == "n/a: compute 0.04 ms is little beside 8 ms"
    assert figures.metrics(constant(rounds=3), 400.0)["host.overlap"].value is not None


def test_a_call_that_blocks_is_told_from_one_that_starts() -> None:
    samples = constant(host_post=0.1 * MS, probes16_post=0.1 * MS, probes16_test_longest=5 * MS, staged_post=6 * MS)
    t = {name.replace("test.longest", "test_longest"): times for name, times in samples.items()}
    assert figures.blocking_calls(figures.medians(t), 400.0) == {"probes16": ["test"], "staged": ["post"]}


def test_calls_below_the_timer_are_not_said_to_block() -> None:
    t = {"compute": 80.0, "host.pure": 110.0, "host.overall": 200.0, "host.post": 90.0}
    assert figures.blocking_calls(t, 400.0) == {}


def test_metrics_come_by_mode_in_the_usual_order() -> None:
    names = list(
        figures.metrics(constant(window_pure=9 * MS, window_overall=10 * MS, rma_overall=1, rma_pure=1), 400.0)
    )
    modes = list(dict.fromkeys(name.partition(".")[0] for name in names))
    assert modes == ["compute", "blocking", "host", "probes16", "staged", "window", "rma"]
    assert names[2:5] == ["host.pure", "host.overall", "host.overlap"]
