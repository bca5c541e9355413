"""The vortex as it should be: its flow balanced, its box periodic, and carried along by the mean flow."""

from __future__ import annotations

import numpy as np
import pytest

from training.cfd import gas


def test_a_vortex_is_isentropic() -> None:
    layer = gas.vortex((40, 30, 1))
    assert gas.pressure(layer) / layer[0] ** gas.GAMMA == pytest.approx(np.ones((40, 30)), rel=1e-12)


def test_pressure_balances_the_swirl() -> None:
    """At rest with the mean flow, dp/dr = rho v**2 / r: checked on a line through the centre."""
    n = 400
    layer, h = gas.vortex((n, n, 1)), gas.spacing((n, n, 1))
    p, r = gas.pressure(layer)[:, n // 2], (np.arange(n) + 0.5) * h - gas.SIDE / 2
    off = h / 2  # of the line from the centre
    swirl = np.hypot(layer[1] / layer[0] - gas.MEAN[0], layer[2] / layer[0] - gas.MEAN[1])[:, n // 2]
    radius = np.hypot(r, off)
    expected = layer[0][:, n // 2] * swirl**2 / radius * (r / radius)
    assert np.abs(np.gradient(p, h) - expected)[5:-5].max() < 2e-3


def test_it_moves_with_the_mean_flow_around_a_periodic_box() -> None:
    cells = (20, 20, 1)
    h = gas.spacing(cells)
    later = 4 * h / gas.MEAN[0]  # 4 cells in x and as many in y
    moved = np.roll(gas.vortex(cells), (4, round(4 * gas.MEAN[1] / gas.MEAN[0])), axis=(1, 2))
    assert np.abs(gas.vortex(cells, later) - moved).max() < 1e-12
    whole = gas.SIDE / gas.MEAN[1] * 2
    assert np.abs(gas.vortex(cells, whole) - gas.vortex(cells)).max() < 1e-12


def test_the_fastest_wave_is_that_of_the_gas() -> None:
    still = np.array([1.0, 0, 0, 0, 1 / (gas.GAMMA - 1)])[:, None]
    assert gas.fastest(still) == pytest.approx(3 * np.sqrt(gas.GAMMA))
    moving = np.array([2.0, 2.0, -4.0, 0, 2 / (gas.GAMMA - 1) + 5])[:, None]  # rho 2, velocity (1, -2, 0), p 2
    assert gas.fastest(moving) == pytest.approx(3 + 3 * np.sqrt(gas.GAMMA))
