"""The Euler equations in one rank's block, a step after the other: Heun's method, which is SSP and of second order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Protocol

import numpy as np

from training.cfd import gas
from training.cfd.blocks import GHOSTS, Block, Cells
from training.cfd.gas import Field, N
from training.cfd.tile import Tile

TILE_CELLS = 6000  # rows of a tile, ghosts included: fewer, and calls cost more than what they do
_G = GHOSTS
_HALF = np.array(0.5)

Region = tuple[int, int, int, int]  # planes of x from and to, rows of y from and to; ghosts count


def needed_bytes(cells: Cells) -> int:
    """About what a solver of a box of ``cells`` holds, its halos and a tile included."""
    held = math.prod(n + 2 * _G for n in cells) + math.prod(cells) // 2
    return 8 * N * (2 * held + 30 * TILE_CELLS)


class Exchange(Protocol):
    """How ghosts along split axes are filled: ``start`` takes what neighbours need, ``finish`` puts in theirs."""

    def start(self, state: Field) -> None:
        """Begin an exchange."""

    def probe(self) -> None:
        """Let it make progress."""

    def finish(self, state: Field) -> None:
        """End it."""


class Solver:
    """A block of a box of ``box`` cells with the vortex in it; alone, or beside others by ``exchange``.

    ``cfl`` is the time step over the longest that the fastest wave allows.
    """

    def __init__(self, box: Cells, block: Block, cfl: float, exchange: Exchange | None = None) -> None:
        self.block, self.exchange = block, exchange
        layer = gas.vortex(box)
        self.h = gas.spacing(box)
        self.dt = cfl * self.h / gas.fastest(layer)
        (x, y, _), (nx, ny, nz) = block.first, block.cells
        self._initial = np.ascontiguousarray(layer[:, x : x + nx, y : y + ny])
        self.state = np.empty((N, nx + 2 * _G, ny + 2 * _G, nz + 2 * _G))
        self._stage = np.empty_like(self.state)
        self._tiles: dict[int, Tile] = {}
        self._sums = np.zeros(N)
        self.steps = 0
        self.reset()

    def reset(self) -> None:
        """The vortex where it starts, in ghosts that nobody fills too: what is computed there has to be numbers."""
        ghosts = ((0, 0), (_G, _G), (_G, _G))
        self.state[:] = np.pad(self._initial, ghosts, mode="wrap")[..., None]
        self._stage[:] = self.state
        self.steps = 0

    @property
    def own(self) -> Field:
        """The block's cells, without ghosts, of shape (5, x, y, z)."""
        return self.state[:, _G:-_G, _G:-_G, _G:-_G]

    @property
    def time(self) -> float:
        """How long it has been flowing."""
        return self.steps * self.dt

    def totals(self) -> list[float]:
        """The sum of each conserved variable over the block's cells, rounded once."""
        return [math.fsum(field.ravel()) for field in self.own]

    def step(self, overlap: bool = False, probes: bool = False) -> Field:
        """One step; the sum over the block of each field's squared change per time, in the first of its two stages.

        With ``overlap`` the cells that need no neighbour are updated while halos are under way, with ``probes`` with a
        look at them after every plane.
        """
        self._sums[:] = 0
        with np.errstate(all="ignore"):  # what goes wrong shows in the sums
            for source, act in ((self.state, self._predict), (self._stage, self._correct)):
                if overlap and self.exchange:
                    self._overlapped(source, act, self.exchange, probes)
                else:
                    self._blocking(source, act)
        self.steps += 1
        return self._sums / self.dt**2

    def _blocking(self, source: Field, act: Callable[[Field, int, slice], None]) -> None:
        self._wrap(source)
        if self.exchange:
            self.exchange.start(source)
            self.exchange.finish(source)
        self._update(source, self._whole, act)

    def _overlapped(
        self, source: Field, act: Callable[[Field, int, slice], None], exchange: Exchange, probes: bool
    ) -> None:
        exchange.start(source)
        self._wrap(source)
        inner, *shells = self._regions()
        self._update(source, inner, act, exchange.probe if probes else None)
        exchange.finish(source)
        for shell in shells:
            self._update(source, shell, act)

    @property
    def _whole(self) -> Region:
        nx, ny, _ = self.block.cells
        return _G, _G + nx, _G, _G + ny

    def _regions(self) -> Iterator[Region]:
        """The cells that need no neighbour's, then the others in up to four pieces."""
        x, x_end, y, y_end = self._whole
        in_x, in_y = (_G * split for split in self.block.split)
        left, low = min(x + in_x, x_end), min(y + in_y, y_end)
        right, high = max(left, x_end - in_x), max(low, y_end - in_y)
        yield left, right, low, high
        yield from ((x, left, y, y_end), (right, x_end, y, y_end), (left, right, y, low), (left, right, high, y_end))

    def _wrap(self, state: Field) -> None:
        """Ghosts along axes that are not split: the box is periodic. Those in z are written with their cells."""
        split_x, split_y = self.block.split
        if not split_x:
            _wrapped(state[:, :, _G:-_G])
        if not split_y:
            _wrapped(state[:, _G:-_G].swapaxes(1, 2))

    def _update(
        self, source: Field, region: Region, act: Callable[[Field, int, slice], None],
        after: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        """Lead tiles through a region, ``act`` on the change of each plane, and ``after`` it."""
        x, x_end, y, y_end = region
        if x >= x_end or y >= y_end:
            return
        row = source.shape[3]
        pieces = -(-(y_end - y) * row // TILE_CELLS)
        edges = [y + (y_end - y) * i // pieces for i in range(pieces + 1)]
        flat = source.reshape(N, source.shape[1], -1)
        for first, end in pairwise(edges):
            tile, rows = self._tile(end - first), slice(first, end)
            planes = flat[:, :, (first - _G) * row : (end + _G) * row]
            tile.begin(planes, x)
            for plane in range(x, x_end):
                act(tile.advance(planes, plane)[:, :, _G:-_G], plane, rows)
                if after:
                    after()

    def _tile(self, rows: int) -> Tile:
        if rows not in self._tiles:
            self._tiles[rows] = Tile(rows, self.state.shape[3], self.dt / self.h)
        return self._tiles[rows]

    def _predict(self, change: Field, x: int, rows: slice) -> None:
        """The first stage: a step of Euler's."""
        new = self._stage[:, x, rows]
        np.add(self.state[:, x, rows, _G:-_G], change, new[:, :, _G:-_G])
        _wrapped(new.transpose(0, 2, 1))
        self._sums += np.einsum("fyz,fyz->f", change, change)

    def _correct(self, change: Field, x: int, rows: slice) -> None:
        """The second: the mean of where it was and another step from where the first one led."""
        new = self.state[:, x, rows]
        own = new[:, :, _G:-_G]
        np.add(own, self._stage[:, x, rows, _G:-_G], own)
        np.add(own, change, own)
        np.multiply(own, _HALF, own)
        _wrapped(new.transpose(0, 2, 1))


def _wrapped(state: Field) -> None:
    """Fill the ghosts along the second axis with the cells at its other end."""
    state[:, :_G] = state[:, -2 * _G : -_G]
    state[:, -_G:] = state[:, _G : 2 * _G]
