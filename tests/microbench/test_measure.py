"""How many iterations a case gets: pure arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from microbench.case import Case
from microbench.measure import iterations, rate_metric, time_metrics

CASE = Case("x", "shm", budget_s=1.0, min_iterations=10, max_iterations=1000)


@pytest.mark.parametrize(
    ("each_s", "planned"),
    [(1e-9, 1000), (1e-3, 1000), (2e-3, 500), (0.5, 10), (1.5, 10), (4.0, 5), (100.0, 2), (1e6, 2)],
)
def test_iterations_fit_the_budget(each_s: float, planned: int) -> None:
    assert iterations(CASE, each_s * 1e9) == planned


def test_units_are_exact_on_a_fake_clock() -> None:
    window_ns = np.full(400, 1e6)  # 1 MiB in 1 ms
    rate = rate_metric(1 << 20, window_ns, "")
    assert rate.value == pytest.approx(1048.576e6, rel=1e-12)
    assert (rate.unit, rate.better, rate.n) == ("bytes/s", "higher", 400)
    times = time_metrics(window_ns)
    assert times["time"].value == pytest.approx(1e-3)
    assert times["time_p99"].value == pytest.approx(1e-3)


def test_no_payload_no_rate() -> None:
    rate = rate_metric(0, np.ones(10), "0 B carry no bandwidth")
    assert (rate.value, rate.note) == (None, "0 B carry no bandwidth")
