"""Rates, ratios and their intervals from planted blocks."""

from __future__ import annotations

import numpy as np
import pytest

from training.characterize.rates import FEWEST_BLOCKS, Rows, metrics, per_rank, rate, ratio, role_series

RANKS = {"host": (0, 1), "dpu": (2, 3)}


def planted(host_s: float, dpu_s: float, blocks: int = 8, noise: float = 0.02, seed: int = 3) -> Rows:
    """Two hosts and two DPUs that take so long for a unit, within ``noise``."""
    rng = np.random.default_rng(seed)
    base = np.array([host_s, host_s, dpu_s, dpu_s])[:, None]
    return Rows("images/s", base * rng.uniform(1 - noise, 1 + noise, (4, blocks)), {})


def test_a_planted_rate_and_ratio_are_found_within_their_intervals() -> None:
    found = metrics({"forward": planted(0.01, 0.04)}, RANKS)
    for name, true in (("host.forward", 100), ("dpu.forward", 25), ("ratio.forward", 0.25)):
        metric = found[name]
        assert metric.value == pytest.approx(true, rel=0.03)
        assert metric.low is not None
        assert metric.high is not None
        assert metric.low <= metric.value <= metric.high
    assert (found["host.forward"].unit, found["ratio.forward"].unit) == ("images/s", "1")
    assert (found["host.forward"].kind, found["ratio.forward"].kind) == ("measured", "derived")
    assert {metric.better for metric in found.values()} == {"higher"}


def test_a_slow_phase_of_the_machine_cancels_in_the_ratio() -> None:
    rows = planted(0.01, 0.04, noise=0.001)
    slow = np.array([1, 1, 3, 1, 3, 3, 1, 3.0])
    steady = ratio(np.median(rows.seconds[2:] * slow, axis=0), np.median(rows.seconds[:2] * slow, axis=0))
    assert steady.value == pytest.approx(0.25, rel=0.01)
    assert steady.low == pytest.approx(0.25, rel=0.02)
    assert steady.high == pytest.approx(0.25, rel=0.02)


def test_a_role_is_the_median_of_its_ranks_in_each_block() -> None:
    rows = Rows("1/s", np.array([[1.0, 2], [3, 4], [9, 5]]), {})
    assert role_series(rows, (0, 1, 2)).tolist() == [3, 4]
    assert per_rank({"work": rows})["work"] == [pytest.approx(1 / 1.5), pytest.approx(1 / 3.5), pytest.approx(1 / 7)]


def test_the_bootstrap_covers_the_true_ratio_mostly() -> None:
    hits = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        dpu, host = rng.lognormal(np.log(4), 0.1, 8), rng.lognormal(0, 0.1, 8)
        got = ratio(dpu, host, seed)
        hits += got.low <= 0.25 <= got.high
    assert hits > 170


def test_what_a_rank_could_not_measure_has_no_value_and_says_why() -> None:
    rows = Rows("flop/s", np.full((4, 6), np.nan), {2: "n/a: no torch here"})
    found = metrics({"conv": rows}, RANKS)
    assert [found[f"{role}.conv"].value for role in ("dpu", "ratio")] == [None, None]
    assert {found[f"{role}.conv"].note for role in ("dpu", "ratio")} == {"n/a: no torch here"}
    assert per_rank({"conv": rows})["conv"][2] is None


def test_few_blocks_have_a_ratio_without_interval() -> None:
    few = ratio(np.ones(FEWEST_BLOCKS - 1), np.ones(FEWEST_BLOCKS - 1))
    assert (few.value, few.low) == (1.0, None)
    assert few.note == "no interval: 3 blocks < 4"
    assert rate(np.full(6, 0.5), "1/s").low == 2.0
    assert rate(np.full(5, 0.5), "1/s").note == "n=5 < 6"
