"""Which cost formula explains a measured allreduce: fitted over ranks and sizes, chosen by the ranks left out.

In each region of sizes every formula is fitted by non-negative least squares on relative errors. A formula is judged
by the times at one rank count as predicted from the others, never by how well it follows what it was fitted to. How
sure a choice is: the share of bootstrap draws that choose the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reports.models import cost
from reports.models.hockney import MOST_ERROR
from reports.models.least_squares import nonnegative
from reports.models.points import RESAMPLES, Points

Float = NDArray[np.float64]
REGIONS = (0.0, 4096.0, 262144.0, np.inf)  # bytes; a library may choose another algorithm in each
FEWEST_CELLS = 4
FURTHEST = 4  # times the largest rank count: no formula is trusted beyond


@dataclass(frozen=True, eq=False)
class Cells:
    """Measured times by layout and size: each is a ``Points``, whose sizes were measured at (ranks, ranks a host)."""

    layouts: tuple[tuple[int, int], ...]
    points: tuple[Points, ...]

    @property
    def ranks(self) -> tuple[int, ...]:
        """The rank counts, rising."""
        return tuple(sorted({p for p, _ in self.layouts}))

    def within(self, low: float, high: float) -> Cells:
        """The cells above ``low`` bytes, up to ``high``."""
        kept = [(layout, p.where((p.nbytes > low) & (p.nbytes <= high))) for layout, p in
                zip(self.layouts, self.points, strict=True)]  # fmt: skip
        kept = [(layout, p) for layout, p in kept if len(p)]
        return Cells(tuple(layout for layout, _ in kept), tuple(p for _, p in kept))

    def flat(self) -> tuple[list[tuple[int, int]], Float, Float]:
        """Layout, size and weight of every cell."""
        layouts = [layout for layout, p in zip(self.layouts, self.points, strict=True) for _ in range(len(p))]
        return layouts, _joined([p.nbytes for p in self.points]), _joined([p.weights for p in self.points])

    def times(self, resamples: int, seed: int) -> Float:
        """Times of every cell, of shape (1 + resamples, cells), the first row as measured."""
        return np.concatenate([p.resampled(resamples, seed) for p in self.points], axis=1)


def _joined(parts: Sequence[Float]) -> Float:
    return np.concatenate(parts) if parts else np.zeros(0)


@dataclass(frozen=True, eq=False)
class Explained:
    """A formula in a region of sizes: coefficients (a, b, c, a within, b within), and its errors on ranks left out.

    ``confidence`` is the share of draws that chose it; ``second`` is what came next, with its typical error.
    """

    algorithm: str
    low: float
    high: float
    ranks: tuple[int, ...]
    coefficients: tuple[float, ...]
    typical: float
    worst: float
    confidence: float = 1.0
    second: tuple[str, float] | None = None

    @property
    def fits(self) -> bool:
        """Whether no cell is off by more than 10 % as predicted from other rank counts."""
        return self.worst <= MOST_ERROR

    def time_s(self, ranks: int, per_host: int, nbytes: float) -> float:
        """The formula's time; ValueError beyond 4 times the largest rank count that was measured."""
        if ranks > FURTHEST * self.ranks[-1]:
            raise ValueError(f"{ranks} ranks are more than {FURTHEST} times the {self.ranks[-1]} measured")
        row = cost.columns(self.algorithm, [(ranks, per_host)], np.array([float(nbytes)]))
        return float(row[0] @ np.array(self.coefficients))


def explain(
    cells: Cells,
    reduce_s_per_byte: float | None,
    algorithms: Sequence[str] = (),
    resamples: int = RESAMPLES,
    regions: Sequence[float] = REGIONS,
) -> tuple[Explained, ...]:
    """The best formula of each region that two rank counts or more were measured in.

    ``reduce_s_per_byte`` is c where it was measured apart; else it is fitted, which takes several rank counts on
    either side. ``algorithms`` are those that may be meant, all by default.
    """
    found = []
    for low, high in pairwise(regions):
        part = cells.within(low, high)
        if len(part.ranks) > 1 and sum(map(len, part.points)) >= FEWEST_CELLS:
            names = algorithms or cost.candidates(part.layouts)
            found.append(_best(part, reduce_s_per_byte, names, resamples, low, high))
    return tuple(found)


def _best(
    cells: Cells, reduced: float | None, names: Sequence[str], resamples: int, low: float, high: float
) -> Explained:
    times = cells.times(resamples, 0)
    errors = {name: np.abs(_held_out(cells, name, reduced, times)) for name in names}
    typical = np.stack([np.median(errors[name], axis=1) for name in names])
    order = typical[:, 0].argsort(kind="stable")
    winner = names[int(order[0])]
    chosen = typical.argmin(axis=0)[1:]
    confidence = float(np.mean(chosen == order[0])) if chosen.size else 1.0
    second = (names[int(order[1])], float(typical[order[1], 0])) if len(names) > 1 else None
    layouts, nbytes, weights = cells.flat()
    coefficients = _fit(cost.columns(winner, layouts, nbytes), times[:1], weights, reduced, len(cells.ranks))[0]
    return Explained(winner, low, high, cells.ranks, tuple(coefficients.tolist()), float(typical[order[0], 0]),
                     float(errors[winner][0].max()), confidence, second)  # fmt: skip


def _held_out(cells: Cells, name: str, reduced: float | None, times: Float) -> Float:
    """Relative errors of every cell, as predicted by the cells of other rank counts; shape of ``times``."""
    layouts, nbytes, weights = cells.flat()
    matrix = cost.columns(name, layouts, nbytes)
    ranks = np.array([p for p, _ in layouts])
    errors = np.zeros_like(times)
    for p in cells.ranks:
        out = ranks == p
        others = len(cells.ranks) - 1
        found = _fit(matrix[~out], times[:, ~out], weights[~out], reduced, others)
        errors[:, out] = found @ matrix[out].T / times[:, out] - 1
    return errors


def _fit(matrix: Float, times: Float, weights: Float, reduced: float | None, ranks: int) -> Float:
    """Coefficients of shape (rows, 5): c is given, or fitted where several rank counts can tell it from b."""
    found = np.zeros((len(times), 5))
    if reduced is not None:
        found[:, 2] = reduced
        times = times - reduced * matrix[:, 2]
    free = [k for k in range(5) if matrix[:, k].any() and (k != 2 or (reduced is None and ranks > 1))]
    free = free if len(free) <= 4 else [k for k in free if k != 2]
    found[:, free] = nonnegative(matrix[:, free], times, weights)[0]
    return found


def crossovers(
    fits: Sequence[tuple[str, Sequence[Explained]]], ranks: int, per_host: int, smallest: float, largest: float
) -> Iterator[tuple[float, str]]:
    """From which size on which of several fitted allreduces is the fastest: (size, name), the first at ``smallest``."""
    best = ""
    for nbytes in np.geomspace(max(smallest, 1.0), largest, 257):
        known = {name: t for name, parts in fits if (t := _time(parts, ranks, per_host, nbytes)) is not None}
        name = min(known, key=known.__getitem__, default=best)
        if name != best:
            yield float(nbytes), name
            best = name


def _time(parts: Sequence[Explained], ranks: int, per_host: int, nbytes: float) -> float | None:
    """The time in the region of a size; None where no formula fits there."""
    held = [part for part in parts if part.low < nbytes <= part.high and part.fits]
    return held[0].time_s(ranks, per_host, nbytes) if held else None


def likeness(library: Sequence[Points], own: dict[str, Sequence[Points]]) -> list[tuple[str, float, int]]:
    """How near each of our schedules comes to the library's own, at the sizes and rank counts that both have.

    (name, median of |ln(time / time)|, how many cells), the nearest first. ``library`` and each of ``own`` hold the
    same rank counts in the same order.
    """
    found = []
    for name, theirs in own.items():
        apart = [
            np.abs(np.log(b.time_s[np.isin(b.nbytes, a.nbytes)] / a.time_s[np.isin(a.nbytes, b.nbytes)]))
            for a, b in zip(library, theirs, strict=True)
        ]
        cells = _joined(apart)
        if cells.size:
            found.append((name, float(np.median(cells)), int(cells.size)))
    return sorted(found, key=lambda f: f[1])
