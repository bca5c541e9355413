"""Rusanov's flux through many faces at once, as a constant list of numpy calls that allocate nothing.

Second order in space: primitive variables (density, velocity, pressure) are reconstructed linearly on both sides of
every face (MUSCL with Fromm's slope and no limiter: for smooth flow). The flux takes the larger wave speed of the two
cells. Fluxes are kept doubled, as the sum of both sides'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from training.cfd.gas import GAMMA, Field, N

Call = tuple[Callable[..., Any], tuple[Any, ...]]
Calls = list[Call]

_HALF, _ONE, _GAMMA = np.array(0.5), np.array(1.0), np.array(GAMMA)  # arrays: a float would be converted in every call
_PER_PRESSURE, _OF_ENERGY = np.array(1 / (GAMMA - 1)), np.array(GAMMA - 1)


def run(calls: Iterable[Call]) -> None:
    """Do them in their order."""
    for function, arguments in calls:
        function(*arguments)


class Faces:
    """Room for ``n`` faces, of which ``states`` (5, 2, n) are the sides and ``speed`` (n) bounds the waves.

    The sides of a field lie together, so that a call on both is one on contiguous memory: numpy's cheapest.
    """

    def __init__(self, n: int, room: Field) -> None:
        self.states, rest = shaped(room, (N, 2, n))
        self._conserved, rest = shaped(rest, (N, 2, n))
        self._flux, rest = shaped(rest, (N, 2, n))
        self._squares, rest = shaped(rest, (3, 2, n))
        self.speed, _ = shaped(rest, (n,))

    @staticmethod
    def doubles(n: int) -> int:
        """How much room ``n`` faces take."""
        return n * (3 * 2 * N + 2 * 3 + 1)

    def rusanov(self, axis: int, out: Field) -> Calls:
        """Twice the flux along ``axis`` (0, 1, 2) into ``out`` (5, n)."""
        states, conserved, flux, squares = self.states, self._conserved, self._flux, self._squares
        normal, momentum, energy, kinetic = 1 + axis, conserved[1:4], conserved[4], squares[0]
        jump = squares.reshape(6, -1)[:N]
        return [
            (np.multiply, (states[:1], states[1:4], momentum)),
            (np.multiply, (momentum, states[1:4], squares)),
            (np.add, (kinetic, squares[1], kinetic)),
            (np.add, (kinetic, squares[2], kinetic)),
            (np.multiply, (kinetic, _HALF, kinetic)),
            (np.multiply, (states[4], _PER_PRESSURE, energy)),
            (np.add, (energy, kinetic, energy)),
            (np.multiply, (momentum, states[normal : normal + 1], flux[1:4])),
            (np.add, (flux[normal], states[4], flux[normal])),
            (np.add, (energy, states[4], kinetic)),
            (np.multiply, (kinetic, states[normal], flux[4])),
            (np.add, (conserved[normal, 0], conserved[normal, 1], out[0])),
            (np.add, (flux[1:, 0], flux[1:, 1], out[1:])),
            (np.subtract, (states[0, 1], states[0, 0], jump[0])),
            (np.subtract, (conserved[1:, 1], conserved[1:, 0], jump[1:])),
            (np.multiply, (jump, self.speed, jump)),
            (np.subtract, (out, jump, out)),
        ]


def shaped(room: Field, shape: tuple[int, ...]) -> tuple[Field, Field]:
    """An array of that shape in ``room``, and the rest of it."""
    size = int(np.prod(shape))
    return room[:size].reshape(shape), room[size:]


def primitive(conserved: Field, w: Field, sound: Field, inverse: Field) -> Calls:
    """Primitive variables ``w`` (5, n) and the speed of sound (n) of ``conserved``; ``inverse`` (n) is overwritten."""
    p = w[4]
    return [
        (np.copyto, (w[0], conserved[0])),
        (np.divide, (_ONE, conserved[0], inverse)),
        (np.multiply, (conserved[1:4], inverse, w[1:4])),
        (np.multiply, (conserved[1], w[1], sound)),
        (np.multiply, (conserved[2], w[2], p)),
        (np.add, (sound, p, sound)),
        (np.multiply, (conserved[3], w[3], p)),
        (np.add, (sound, p, sound)),
        (np.multiply, (sound, _HALF, sound)),
        (np.subtract, (conserved[4], sound, p)),
        (np.multiply, (p, _OF_ENERGY, p)),
        (np.multiply, (p, inverse, sound)),
        (np.multiply, (sound, _GAMMA, sound)),
        (np.sqrt, (sound, sound)),
    ]
