"""The net flux into the cells of a tile, a plane after the other.

A box holds ghost cells around its own. A tile is some rows of y, whole in z, and is led through the planes of x. Within
a plane all arrays are contiguous: a neighbour in y is a row away and one in z an element, whatever stands in the ghosts
between two rows, and what is computed there goes nowhere. The planes of a face's stencil are kept, so that the flux
between two planes is computed once. A value is the same sequence of roundings in any tile of any box.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from training.cfd.blocks import GHOSTS
from training.cfd.faces import Calls, Faces, primitive, run
from training.cfd.gas import Field, N

_QUARTER = np.array(0.25)
_KEPT = 4  # planes: the stencil of a face


class Tile:
    """Room for ``rows`` rows of ``row`` cells, ghosts in z included, and the calls that lead it on.

    ``scale`` multiplies the net flux: the time step over the side of a cell.
    """

    def __init__(self, rows: int, row: int, scale: float) -> None:
        self.rows, self.row = rows, row
        own, wide = rows * row, (rows + 2 * GHOSTS) * row
        self._conserved, self._inverse = np.ones((N, wide)), np.empty(wide)
        self._primitive, self._sound = np.ones((_KEPT, N, wide)), np.ones((_KEPT, wide))
        self._slopes, self._waves = np.empty((2, N, own)), np.empty((2, own))  # along x
        self._through = np.empty((2, N, own))  # the fluxes along x
        self._change = np.empty((N, own))
        room = np.empty(Faces.doubles(own + row))
        self._faces = tuple(Faces(own + more, room) for more in (0, row, 1))
        self._slope, self._wave = np.empty(N * (own + 2 * row)), np.empty(own + 2 * row)
        self._flux = np.empty(N * (own + row))
        kept = range(_KEPT)
        self._loads = [primitive(self._conserved, self._primitive[k], self._sound[k], self._inverse) for k in kept]
        self._looks, self._crossings = [self._look(k) for k in kept], [self._cross(k) for k in kept]
        self._changes = [self._net(k, np.array(scale / 2)) for k in kept]

    def begin(self, planes: Field, x: int) -> None:
        """Stand before plane ``x`` of ``planes`` (5, x, rows and ghosts of the tile)."""
        for plane in range(x - 2, x + 1):
            self._load(planes, plane)
        run(self._looks[(x - 1) % _KEPT])
        self._load(planes, x + 1)
        run(self._crossings[(x - 1) % _KEPT])

    def advance(self, planes: Field, x: int) -> Field:
        """The scaled net flux into the cells of plane ``x``, of shape (5, rows, row), ghosts in z included.

        Planes follow each other: ``x`` is one more than at the last call, or that of :meth:`begin`.
        """
        self._load(planes, x + 2)
        run(self._crossings[x % _KEPT])
        run(self._changes[x % _KEPT])
        return self._change.reshape(N, self.rows, self.row)

    def _load(self, planes: Field, x: int) -> None:
        np.copyto(self._conserved, planes[:, x])
        run(self._loads[x % _KEPT])

    def _own(self, x: int) -> Field:
        """Primitive variables of the tile's own rows."""
        margin = GHOSTS * self.row
        return self._primitive[x % _KEPT, :, margin:-margin]

    def _look(self, x: int) -> Calls:
        """Slopes and wave speeds along x of a plane between two that are loaded."""
        slope, wave, margin = self._slopes[x % 2], self._waves[x % 2], GHOSTS * self.row
        return [
            (np.subtract, (self._own(x + 1), self._own(x - 1), slope)),
            (np.multiply, (slope, _QUARTER, slope)),
            (np.absolute, (self._own(x)[1], wave)),
            (np.add, (wave, self._sound[x % _KEPT, margin:-margin], wave)),
        ]

    def _cross(self, x: int) -> Calls:
        """The fluxes between planes ``x`` and ``x + 1``."""
        faces = self._faces[0]
        return [
            *self._look(x + 1),
            (np.add, (self._own(x), self._slopes[x % 2], faces.states[:, 0])),
            (np.subtract, (self._own(x + 1), self._slopes[(x + 1) % 2], faces.states[:, 1])),
            (partial(np.maximum, out=faces.speed), tuple(self._waves)),
            *faces.rusanov(0, self._through[x % 2]),
        ]

    def _net(self, x: int, scale: Field) -> Calls:
        """What flows into the cells of a plane whose fluxes along x are known."""
        return [
            (np.subtract, (self._through[(x - 1) % 2], self._through[x % 2], self._change)),
            *self._along(x, 1, self.row),
            *self._along(x, 2, 1),
            (np.multiply, (self._change, scale, self._change)),
        ]

    def _along(self, x: int, axis: int, step: int) -> Calls:
        """Add what flows along an axis within the plane, where a neighbour is ``step`` elements away."""
        w, sound, faces = self._primitive[x % _KEPT], self._sound[x % _KEPT], self._faces[axis]
        first, n = GHOSTS * self.row, self._change.shape[1]
        low, high = first - step, first + n + step  # a cell more on either side
        slope = self._slope[: N * (n + 2 * step)].reshape(N, -1)
        wave, flux = self._wave[: n + 2 * step], self._flux[: N * (n + step)].reshape(N, -1)
        return [
            (np.subtract, (w[:, low + step : high + step], w[:, low - step : high - step], slope)),
            (np.multiply, (slope, _QUARTER, slope)),
            (np.add, (w[:, low : high - step], slope[:, :-step], faces.states[:, 0])),
            (np.subtract, (w[:, low + step : high], slope[:, step:], faces.states[:, 1])),
            (np.absolute, (w[1 + axis, low:high], wave)),
            (np.add, (wave, sound[low:high], wave)),
            (partial(np.maximum, out=faces.speed), (wave[:-step], wave[step:])),
            *faces.rusanov(axis, flux),
            (np.add, (self._change, flux[:, :-step], self._change)),
            (np.subtract, (self._change, flux[:, step:], self._change)),
        ]
