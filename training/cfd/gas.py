"""A perfect gas and the isentropic vortex: conserved variables are density, momentum (x, y, z) and total energy.

The vortex is an exact solution of the Euler equations that the mean flow carries along unchanged (Shu 1998): of unit
mean density, pressure and temperature, of strength :data:`STRENGTH`. Its axis is z.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Field = NDArray[np.float64]

GAMMA = 1.4
FIELDS = ("density", "x momentum", "y momentum", "z momentum", "energy")
N = len(FIELDS)
MEAN = (1.0, 0.5, 0.25)  # velocity of the mean flow
STRENGTH = 5.0
SIDE = 10.0  # of the shorter side of the x-y plane, in radii of the vortex


def spacing(cells: tuple[int, int, int]) -> float:
    """The side of a cell, a cube: the shorter of x and y is :data:`SIDE` long."""
    return SIDE / min(cells[0], cells[1])


def vortex(cells: tuple[int, int, int], time: float = 0.0) -> Field:
    """Conserved variables at ``time`` at the centres of one layer of cells, of shape (5, x, y): all layers are alike.

    The vortex starts in the middle, and the box is periodic. Computed for the whole layer in any decomposition, so that
    all have the same bits to begin with.
    """
    h = spacing(cells)
    x, y = (_from_centre(n, h, speed * time) for n, speed in zip(cells[:2], MEAN, strict=False))
    x, y = x[:, None], y[None, :]
    swirl = STRENGTH / (2 * math.pi) * np.exp(0.5 * (1 - x * x - y * y))
    temperature = 1 - (GAMMA - 1) / (2 * GAMMA) * swirl * swirl
    rho = temperature ** (1 / (GAMMA - 1))
    velocity = (MEAN[0] - swirl * y, MEAN[1] + swirl * x, np.full_like(rho, MEAN[2]))
    kinetic = 0.5 * rho * sum(v * v for v in velocity)
    energy = rho * temperature / (GAMMA - 1) + kinetic
    return np.stack([rho, *(rho * v for v in velocity), energy])


def _from_centre(n: int, h: float, moved: float) -> Field:
    """Distances of n cell centres from a point that began in the middle, by the shorter way around the box."""
    length = n * h
    far = (np.arange(n) + 0.5) * h - length / 2 - moved
    return far - length * np.round(far / length)


def pressure(state: Field) -> Field:
    """The pressure of conserved variables, of shape (5, ...)."""
    rho, momentum, energy = state[0], state[1:4], state[4]
    return np.asarray((GAMMA - 1) * (energy - 0.5 * (momentum * momentum).sum(axis=0) / rho))


def fastest(state: Field) -> float:
    """The largest sum over the directions of |velocity| + speed of sound: what bounds the time step."""
    sound = np.sqrt(GAMMA * pressure(state) / state[0])
    return float((np.abs(state[1:4] / state[0]).sum(axis=0) + 3 * sound).max())
