"""The solver against the exact solution, against its scheme written out plainly, and against what must not change."""

from __future__ import annotations

import numpy as np
import pytest

from training.cfd import blocks, gas, solver
from training.cfd.gas import Field
from training.cfd.solver import Solver


def alone(box: tuple[int, int, int], cfl: float = 0.6) -> Solver:
    return Solver(box, blocks.block(box, (1, 1), 0), cfl)


def error(n: int, until: float = 0.5) -> float:
    """The mean error of the density after the flow has carried the vortex for a while."""
    flow = alone((n, n, 2))
    while flow.time < until:
        flow.step()
    return float(np.abs(flow.own[0, :, :, 0] - gas.vortex((n, n, 2), flow.time)[0]).mean())


def test_the_vortex_converges_at_second_order() -> None:
    coarse, middle, fine = (error(n) for n in (12, 24, 48))
    assert 1.8 < np.log2(coarse / middle) < 3
    assert 1.8 < np.log2(middle / fine) < 3
    assert fine < 1e-3


def test_what_is_conserved_stays_to_rounding() -> None:
    flow = alone((12, 10, 6))
    disturb(flow)
    before = np.array(flow.totals())
    for _ in range(20):
        flow.step()
    scale = np.abs(flow.own).sum(axis=(1, 2, 3))
    assert (np.abs(np.array(flow.totals()) - before) <= 1e-14 * scale).all()
    assert np.abs(flow.own[0, :, :, 0] - gas.vortex((12, 10, 6))[0]).max() > 1e-3  # and yet it moves


def test_a_uniform_flow_stays_as_it_is_and_has_no_residual() -> None:
    flow = alone((6, 6, 6))
    flow.state[:] = flow.own[:, :1, :1, :1].copy()
    flow._stage[:] = flow.state
    kept = flow.own.copy()
    assert (flow.step() == 0).all()
    assert (flow.own == kept).all()


def disturb(flow: Solver) -> None:
    """Waves in all three directions on top of the vortex, so that no layer is like another."""
    shape = flow.own.shape[1:]
    phases = np.meshgrid(*(2 * np.pi * np.arange(n) / n for n in shape), indexing="ij")
    flow.own[:] *= 1 + 0.05 * np.sin(phases[0] + 2 * phases[1] - phases[2] + 1)
    flow.own[3] += 0.1 * np.cos(phases[2])
    solver._wrapped(flow.state.transpose(0, 3, 1, 2))


def plain_change(state: Field, scale: float) -> Field:
    """The scaled net flux of the scheme, direction by direction, with np.roll over a periodic box."""
    rho, p = state[0], gas.pressure(state)
    w = np.stack([rho, *(state[1:4] / rho), p])
    sound = np.sqrt(gas.GAMMA * p / rho)
    change = np.zeros_like(state)
    for axis in range(3):
        ahead = [np.roll(a, -1, axis=axis + d) for a, d in ((w, 1), (sound, 0))]
        slope = (ahead[0] - np.roll(w, 1, axis=axis + 1)) / 4
        left, right = w + slope, ahead[0] - np.roll(slope, -1, axis=axis + 1)
        speed = np.maximum(np.abs(w[1 + axis]) + sound, np.abs(ahead[0][1 + axis]) + ahead[1])
        both = [conserved_and_flux(side, axis) for side in (left, right)]
        flux = (both[0][1] + both[1][1]) / 2 - speed / 2 * (both[1][0] - both[0][0])
        change += np.roll(flux, 1, axis=axis + 1) - flux
    return scale * change


def conserved_and_flux(w: Field, axis: int) -> tuple[Field, Field]:
    rho, velocity, p = w[0], w[1:4], w[4]
    u = np.stack([rho, *(rho * velocity), p / (gas.GAMMA - 1) + rho * (velocity**2).sum(axis=0) / 2])
    flux = u * velocity[axis]
    flux[1 + axis] += p
    flux[4] += p * velocity[axis]
    return u, flux


def plain_step(state: Field, scale: float) -> tuple[Field, Field]:
    first = plain_change(state, scale)
    stage = state + first
    return (state + stage + plain_change(stage, scale)) / 2, first


@pytest.mark.parametrize("tile_cells", [30, 100, 6000])
def test_a_step_is_that_of_the_scheme_written_out(tile_cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "TILE_CELLS", tile_cells)
    flow = alone((7, 9, 6))
    disturb(flow)
    expected, first = plain_step(flow.own.copy(), flow.dt / flow.h)
    sums = flow.step()
    assert np.abs(flow.own - expected).max() < 1e-14 * np.abs(expected).max()
    assert sums == pytest.approx((first**2).sum(axis=(1, 2, 3)) / flow.dt**2, rel=1e-10)


def test_any_tile_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for cells in (30, 70, 6000):
        monkeypatch.setattr(solver, "TILE_CELLS", cells)
        flow = alone((7, 9, 6))
        disturb(flow)
        flow.step()
        flow.step()
        found.append(flow.own.tobytes())
    assert len(set(found)) == 1


def test_a_time_step_that_is_too_long_shows_in_the_residual() -> None:
    flow = alone((12, 12, 4), cfl=6)
    for _ in range(60):
        if not np.isfinite(flow.step()).all():
            return
    pytest.fail("the flow is still finite")


def test_it_starts_again_from_the_same_bits() -> None:
    flow = alone((6, 8, 4))
    kept = flow.state.tobytes()
    flow.step()
    assert flow.state.tobytes() != kept
    flow.reset()
    assert (flow.state.tobytes(), flow.steps) == (kept, 0)
