"""Metrics, their notes, and counts of what lies far out."""

from __future__ import annotations

import numpy as np
import pytest

from microbench.stats import geometric_mean, metric, quantile, tukey_counts


def test_a_percentile_without_interval_is_not_printed() -> None:
    m = metric(quantile(np.arange(200.0), 0.99), "s", q=0.99)
    assert m.value is None
    assert m.note == "n=200 < 368"


def test_a_median_without_interval_says_why() -> None:
    m = metric(quantile([1.0, 2.0, 3.0]), "s")
    assert (m.value, m.low, m.note) == (2.0, None, "n=3 < 6")


def test_a_series_of_two_halves_has_no_interval() -> None:
    halves = np.concatenate([np.full(100, 1.0), np.full(100, 2.0)]) + np.linspace(0, 1e-9, 200)
    m = metric(quantile(halves, series=True), "s")
    assert m.low is None
    assert m.note.startswith("n=200 (as ")


def test_means_of_batches_have_a_median_but_no_tail() -> None:
    x = np.arange(1000.0)
    tail = metric(quantile(x, 0.99), "s", q=0.99, batched=8)
    assert (tail.value, tail.low, tail.high, tail.n) == (None, None, None, 1000)
    assert tail.note == "batched 8: a mean has no tail"
    assert metric(quantile(x), "s", batched=8) == metric(quantile(x), "s")
    assert metric(quantile(x, 0.99), "s", q=0.99, batched=1).value is not None


def test_geometric_mean_and_fences() -> None:
    assert geometric_mean([1, 4, 16]) == pytest.approx(4)
    assert tukey_counts([*range(100), 180, 1000]) == (2, 1)
