"""Rows and figures of predictions: what is met, what is missed, and what could not be predicted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reports.chapters import simulated
from reports.models.predicted import predictions
from tests.figures import prediction_rows
from tests.figures.table import Row
from tests.reports import test_costs, test_prediction
from tests.reports.models.planted import Fabric


def judged(errors: list[float | None], wanted: int = 2) -> list[Row]:
    rows: list[dict[str, Any]] = [
        {"case": f"net{k}", "fabric": "eth", "by": "gloo", "error": e} for k, e in enumerate(errors)
    ]
    return prediction_rows.step_figures(rows, wanted, 0.15, 0.25, 0.10)


def test_planted_parameters_are_judged_by_the_worst_draw() -> None:
    planted = Fabric()
    rows = [prediction_rows.parameters(planted, prediction_rows.recovered(planted, seed)) for seed in (0, 1)]
    assert all(row["ok"] for row in prediction_rows.planted_figures(rows, 0.03))
    rows[1]["gap_s"] = -0.031
    missed = [row["figure"] for row in prediction_rows.planted_figures(rows, 0.03) if not row["ok"]]
    assert missed == ["planted gap_s: worst relative error"]


def test_steps_are_judged_by_the_median_and_the_worst() -> None:
    middle, worst = judged([0.01, -0.30, 0.12])
    assert (middle["got"], middle["ok"], worst["got"], worst["ok"]) == (0.12, True, 0.30, False)
    assert worst["why"] == "net1 on eth by gloo"


def test_what_could_not_be_predicted_is_missed() -> None:
    for row in judged([0.01, None]):
        assert (row["ok"], row["why"]) == (False, "1 of 2 could be predicted")
    assert [row["got"] for row in judged([])] == [None, None]


def test_rows_of_steps_tell_error_and_dilation(tmp_path: Path) -> None:
    slow, fast = prediction_rows.steps(predictions(test_prediction.run(tmp_path, error=0.25)))
    assert (slow["fabric"], slow["by"], slow["case"]) == ("eth2g5", "gloo", "net")
    assert slow["error"] == pytest.approx(-0.2, abs=0.002) and slow["dilation"] == 0.1
    assert fast["predicted dilation"] > 0


def test_the_simulator_is_judged_by_its_worst_error(tmp_path: Path) -> None:
    rows = prediction_rows.simulated(simulated.of_fabric(test_costs.run(tmp_path, slower=1.3), "eth10g"))
    ring, missing = prediction_rows.simulator_figures(rows, ("ring",), (4, 5), 0.20)
    assert (ring["got"], ring["ok"]) == (pytest.approx(1 - 1 / 1.3, abs=0.005), False)
    assert (missing["got"], missing["ok"], missing["n"]) == (None, False, 0)
