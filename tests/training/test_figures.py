"""Metrics of planted steps: their times are known, and so what must come out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from training import figures
from training.steps import PARTS

MS = 1_000_000
SCALE = figures.Scale(images=48, nbytes=1000, ranks=3)


def planted(ranks: int, rounds: int, exposed_ms: float = 30, slower: float = 1.0) -> dict[str, np.ndarray]:
    """Steps whose compute time drifts by far more than the exposed communication of ``m``."""
    drift = np.linspace(100, 900, rounds).round().astype(np.int64) * MS
    found = {}
    for mode, late, factor in (("noop", 0.0, 1.0), ("m", exposed_ms, slower)):
        base = np.stack([drift - rank * MS for rank in range(ranks)])
        parts = {part: base * 0 for part in PARTS}
        parts["forward"], parts["compute"] = base // 4, (base * factor).astype("i8") // 2
        parts["backward"] = base // 2 + int(late * MS)
        parts["step"] = base + int(late * MS)
        parts["cpu"] = base + (0 if mode == "noop" else 7000)
        found |= {f"{mode}.{part}": rows for part, rows in parts.items()}
    return found


def metrics(samples: dict[str, np.ndarray], **scale: Any) -> dict[str, Any]:
    whole = figures.Scale(**({"images": 48, "nbytes": 1000, "ranks": 3} | scale))
    return figures.metrics(samples, ["m"], [90 * MS] * 8, whole)


def test_difference_within_rounds_survives_drift() -> None:
    got = metrics(planted(ranks=3, rounds=9))
    exposed = got["m.exposed"]
    assert exposed.value == pytest.approx(0.030)
    assert (exposed.low, exposed.high) == (pytest.approx(0.030), pytest.approx(0.030))
    assert got["step_noop"].high > 2 * got["step_noop"].low


def test_step_lasts_as_long_as_on_the_slowest_rank() -> None:
    samples = planted(ranks=2, rounds=2)
    samples["m.step"] = np.array([[10, 50], [40, 20]]) * MS
    samples["noop.step"] = np.array([[9, 5], [1, 7]]) * MS
    got = metrics(samples)
    assert got["step"].value == pytest.approx(0.045)
    assert got["step_noop"].value == pytest.approx(0.008)
    assert got["exposed"].value == pytest.approx((0.031 + 0.043) / 2)


def test_rate_and_fraction_come_from_the_medians() -> None:
    got = metrics(planted(ranks=2, rounds=9), images=53)
    assert got["step"].value == pytest.approx(0.530)
    rate, fraction = got["images_per_s"], got["exposed_fraction"]
    assert (rate.value, rate.unit, rate.better, rate.kind) == (pytest.approx(100.0), "images/s", "higher", "derived")
    assert rate.low == pytest.approx(53 / got["step"].high)
    assert (fraction.value, fraction.unit, fraction.kind) == (pytest.approx(0.030 / 0.530), "1", "derived")


def test_dilation_is_what_compute_takes_longer_beside_communication() -> None:
    assert metrics(planted(3, 9))["m.dilation"].value == pytest.approx(0.0)
    slowed = metrics(planted(3, 9, slower=1.2))["m.dilation"]
    assert (slowed.value, slowed.unit) == (pytest.approx(0.2, rel=1e-6), "1")


def test_processor_time_is_told_per_byte_of_gradients() -> None:
    spent = metrics(planted(3, 9), nbytes=1000)["m.cpu_per_byte"]
    assert (spent.value, spent.unit) == (pytest.approx(7e-9), "s/byte")


def test_imbalance_is_the_longest_rank_over_the_mean_and_none_of_one_rank() -> None:
    samples = planted(2, 9)
    for part in ("data", "compute", "optimizer"):
        samples[f"m.{part}"] = samples[f"m.{part}"] * 0
    samples["m.forward"] = np.array([[30] * 9, [10] * 9]) * MS
    assert metrics(samples)["m.imbalance"].value == pytest.approx(0.5)
    alone = metrics(planted(1, 9))["m.imbalance"]
    assert (alone.value, alone.note) == (None, "n/a: one rank trains")


def test_efficiency_is_told_with_its_base_and_divides_by_ranks_where_scaling_is_strong() -> None:
    weak, strong = (metrics(planted(3, 9), strong=strong) for strong in (False, True))
    assert weak["step_alone"].value == pytest.approx(0.090)
    assert weak["efficiency"].value == pytest.approx(0.090 / 0.530)
    assert strong["efficiency"].value == pytest.approx(0.090 / 0.530 / 3)
    assert strong["efficiency"].high == pytest.approx(weak["efficiency"].high / 3)


def test_percentiles_need_their_samples() -> None:
    few, many = metrics(planted(1, 9)), metrics(planted(1, 400))
    assert (few["m.step_p90"].value, few["m.step_p90"].note) == (None, "n=9 < 36")
    assert few["m.step_p99"].value is None
    assert many["m.step_p90"].value == pytest.approx(0.85, rel=0.01)
    assert many["m.step_p99"].value == pytest.approx(0.922, rel=0.01)


def test_modes_are_told_by_name_and_the_first_without_it_too() -> None:
    samples = planted(2, 9)
    samples |= {name.replace("m.", "n."): rows + 5 * MS for name, rows in planted(2, 9).items() if name[0] == "m"}
    got = figures.metrics(samples, ["m", "n"], [], SCALE)
    assert {f"{mode}.{name}" for mode in "mn" for name in ("step", "exposed", "dilation", "cpu_per_byte")} <= set(got)
    assert got["step"] == got["m.step"] != got["n.step"]
    assert "step_alone" not in got
    assert "efficiency" not in got


def test_fraction_spans_the_ends_of_both_intervals() -> None:
    step = np.arange(101, 109, dtype=float)
    fraction = figures.exposed_fraction(step, step - np.array([-1, 2, 3, 4, 5, 6, 7, 8]))
    assert (fraction.low, fraction.high) == (pytest.approx(-1 / 101), pytest.approx(8 / 101))


def test_too_few_rounds_have_no_interval_and_say_so() -> None:
    got = metrics(planted(1, 6))
    assert got["exposed"].low is not None
    assert (got["exposed_fraction"].low, got["exposed_fraction"].note) == (None, "n=6 < 7")
    assert metrics(planted(1, 8))["exposed_fraction"].low is not None


def test_fraction_holds_the_truth_often_enough() -> None:
    random, held, trials = np.random.default_rng(5), 0, 400
    many = 1.3 + random.exponential(0.1, 10**6) + random.normal(0, 0.1, 10**6)
    truth = 0.3 / float(np.median(many))
    for _ in range(trials):
        noop = 1 + random.exponential(0.1, 20)
        step = noop + 0.3 + random.normal(0, 0.1, 20)
        fraction = figures.exposed_fraction(step, noop)
        assert fraction.low is not None
        assert fraction.high is not None
        held += fraction.low <= truth <= fraction.high
    assert held >= 0.95 * trials


def test_slow_loader_is_no_communication_but_a_user_waits_for_it() -> None:
    """Loading takes 100 to 400 ms, more beside steps by the exchange than beside those without: all of it is data."""
    samples = planted(ranks=2, rounds=9)
    random = np.random.default_rng(3)
    without = metrics(samples)
    samples["m.data"] = random.integers(200, 400, (2, 9)) * MS
    samples["noop.data"] = random.integers(100, 200, (2, 9)) * MS
    got = metrics(samples)
    for name in ("step", "step_noop", "exposed", "exposed_fraction", "efficiency", "m.imbalance", "m.dilation"):
        assert got[name] == without[name], name
    assert 0.2 < got["m.data"].value < 0.4
    whole_s = (samples["m.step"].max(axis=0) + samples["m.data"].max(axis=0)) * 1e-9
    assert got["images_per_s"].value == pytest.approx(48 / np.median(whole_s))
    assert got["images_per_s"].value < without["images_per_s"].value


def test_efficiency_has_an_interval_from_seven_steps_alone_on_and_says_what_is_missing_below() -> None:
    scale, step = figures.Scale(48, 1000, 3), np.linspace(0.5, 0.6, 40)
    enough = figures.efficiency(np.full(7, 0.45), step, scale, level=0.99)  # looks at rounds are none at steps alone
    few = figures.efficiency(np.full(2, 0.45), step, scale)
    assert enough.low is not None
    assert (few.low, few.n, few.note) == (None, 2, "n=2 < 7")
