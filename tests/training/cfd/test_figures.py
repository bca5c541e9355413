"""What follows from planted times, and what is timed in which order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from microbench.case import Case
from training.cfd import figures, schedule
from training.cfd.options import Options

SIZE = figures.Size(cells=1000, own_cells=400, ranks=2)


def planted(rounds: int = 8) -> dict[str, Any]:
    """Steps of 10 ms, and 8 without messages, that drift together; one rank takes 15, its share alone 6."""
    drift = 1 + 0.1 * np.linspace(-1, 1, rounds)
    return {part: ms * 1e-3 * drift for part, ms in (("blocking", 10), ("silent", 8), ("alone", 6), ("one", 15))}


def test_derived_values_follow_from_the_medians() -> None:
    found = figures.metrics(planted(), SIZE)
    value = {name: metric.value for name, metric in found.items()}
    assert value["blocking.step"] == pytest.approx(10e-3)
    assert value["blocking.exposed"] == pytest.approx(2e-3)
    assert value["blocking.exposed_fraction"] == pytest.approx(0.2)
    assert value["blocking.cells_per_s"] == pytest.approx(1e5)
    assert value["blocking.cells_per_s_core"] == pytest.approx(5e4)
    assert value["blocking.speedup"] == pytest.approx(1.5)
    assert value["blocking.efficiency"] == pytest.approx(0.75)
    assert value["blocking.weak_efficiency"] == pytest.approx((500 / 10) / (400 / 6))
    assert value["one.cells_per_s_core"] == pytest.approx(1000 / 15e-3)
    assert {found[f"blocking.{name}"].unit for name in ("step", "exposed")} == {"s"}
    assert (found["blocking.exposed"].better, found["blocking.speedup"].better) == ("lower", "higher")


def test_drift_that_all_parts_share_does_not_widen_a_ratio() -> None:
    found = figures.metrics(planted(), SIZE)["blocking.speedup"]
    assert (found.low, found.high) == (pytest.approx(1.5), pytest.approx(1.5))
    step = figures.metrics(planted(), SIZE)["blocking.step"]
    assert step.low is not None
    assert step.low < 9.5e-3


def test_intervals_hold_noise_of_its_own() -> None:
    rng = np.random.default_rng(3)
    noisy = {part: times * rng.normal(1, 0.05, times.size) for part, times in planted(20).items()}
    found = figures.metrics(noisy, SIZE)["blocking.exposed_fraction"]
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.2 < found.high
    assert found.low < (found.value or 0) < found.high


def test_few_rounds_have_no_interval_and_say_so() -> None:
    found = figures.metrics(planted(3), SIZE)["blocking.speedup"]
    assert (found.low, found.value) == (None, pytest.approx(1.5))
    assert found.note == "no interval: 3 rounds < 4"


def test_a_rank_alone_has_its_rate_only() -> None:
    found = figures.metrics({"blocking": planted()["blocking"]}, figures.Size(1000, 1000, 1))
    assert list(found) == ["blocking.step", "blocking.cells_per_s", "blocking.cells_per_s_core"]


@pytest.mark.parametrize(
    ("scaling", "ranks", "parts"),
    [
        ("both", 2, ("blocking", "overlapped", "silent", "alone", "one")),
        ("strong", 2, ("blocking", "overlapped", "silent", "one")),
        ("weak", 4, ("blocking", "overlapped", "silent", "alone")),
        ("none", 2, ("blocking", "overlapped", "silent")),
        ("both", 1, ("blocking",)),
    ],
)
def test_parts_of_a_round(scaling: str, ranks: int, parts: tuple[str, ...]) -> None:
    options = Options.of({"scaling": scaling, "compare": ["blocking", "overlapped"]})
    assert schedule.parts(options, ranks) == parts


def test_every_round_has_an_order_of_its_own() -> None:
    names = schedule.parts(Options(), 2)
    orders = [schedule.order(names, 1, n) for n in range(20)]
    assert all(sorted(order) == sorted(names) for order in orders)
    assert len(set(orders)) > 10
    assert schedule.order(names, 1, 3) == orders[3]


def test_rounds_fit_the_budget_and_are_two_at_least() -> None:
    case = Case("cfd", "here", budget_s=2, min_iterations=4, max_iterations=30)
    assert schedule.rounds(case, 0.1, 1.0) == 10
    assert schedule.rounds(case, 0.1, 100.0) == 5  # a quarter of the budget is left in any case
    assert schedule.rounds(case, 1000.0, 0.0) == 2
    assert (schedule.stop_reason(case, 30), schedule.stop_reason(case, 10)) == ("max_iterations", "time")
    assert schedule.stop_reason(case, 2) == "too slow for the fewest iterations"


def test_estimates_grow_with_the_grid_the_parts_and_a_slower_fabric() -> None:
    def at_most(rate: float = 1e9, **options: Any) -> float:
        case = Case("cfd", "here", ranks=2, budget_s=0.1, min_iterations=6)
        return schedule.at_most_s(case, Options.of(options), rate)

    usual = at_most()
    assert usual < at_most(grid="96x96x96")
    assert usual < at_most(rate=1e8)
    assert usual < at_most(steps=8)
    assert at_most(scaling="none") < usual
    assert at_most(compare=["blocking"]) < usual
    assert at_most(grid="3x3x8") == pytest.approx(at_most(grid="3x3x9"), rel=0.5)
