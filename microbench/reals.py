"""Are sums of real numbers as right as the type can be? Random numbers, an exact reference, and a bound on the error.

Adding n numbers in any order, each step rounded to nearest with unit roundoff u, is off by at most (n - 1) u sum |x|
(Jeannerod and Rump, SIAM J. Matrix Anal. Appl. 34, 2013: no condition on n, and none on the order, which is the
library's). The reference is a sum of integers: a number is an integer of as many bits as the type has digits, scaled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.case import Invalid
from microbench.check import repeated
from microbench.dtypes import DType

PERIOD = 65521
MOST_RANKS = 256  # so that an exact sum of 53-bit integers fits into 63 bits: further ranks contribute zeros
_MOST_PIECES = 16
_SAFE = 2.0 * MOST_RANKS  # above every sum, since numbers are below 1


def tolerance(kind: DType, ranks: int, op: str = "sum") -> float:
    """How far a result may be from the exact one, relative to the sum of magnitudes; 0 where nothing is rounded.

    ``op`` is ``sum``, or what chooses or moves values (``max``, ``min``, ``move``), which is exact. ValueError for
    another one, of which no bound is known.
    """
    if op in ("max", "min", "move"):
        return 0.0
    if op != "sum":
        raise ValueError(f"no bound on the error of {op!r} is known")
    return max(0, min(ranks, MOST_RANKS) - 1) * kind.roundoff


def integers(kind: DType, count: int, rank: int) -> NDArray[np.int64]:
    """``rank``'s numbers as integers, in units of the type's roundoff: magnitudes 1/2 to 1, any sign; a period at most.

    They are of one ``count``: with another one they are others.
    """
    period = min(count, PERIOD)
    if rank >= MOST_RANKS:
        return np.zeros(period, "i8")
    rng = np.random.default_rng((rank, kind.digits))
    sizes = rng.integers(1 << (kind.digits - 1), 1 << kind.digits, period)
    return np.where(rng.integers(2, size=period) == 1, sizes, -sizes)


def contribution(kind: DType, count: int, rank: int) -> NDArray[Any]:
    """What ``rank`` adds: random numbers that are exact in the type, in its storage."""
    return repeated(kind.encode(integers(kind, count, rank) * kind.roundoff), count)


class Reference:
    """The exact sum over ``ranks`` of ``count`` numbers, its magnitudes, and how far a result may be from it."""

    def __init__(self, kind: DType, count: int, ranks: int) -> None:
        self.kind, self.tolerance = kind, tolerance(kind, ranks)
        self._period = min(count, PERIOD)
        self._sum, self._magnitude = np.zeros(self._period, "i8"), np.zeros(self._period)
        for rank in range(min(ranks, MOST_RANKS)):
            numbers = integers(kind, count, rank)
            self._sum += numbers
            self._magnitude += np.abs(numbers).astype(float)

    def errors(self, stored: NDArray[Any], first: int) -> NDArray[np.float64]:
        """How far elements from index ``first`` on are off, relative to their sum of magnitudes; at most a period."""
        places = np.arange(first, first + stored.size) % self._period
        values = self.kind.decode(stored)
        sane = np.abs(values) < _SAFE  # false for NaN too
        scaled = np.rint(np.where(sane, values, 0.0) / self.kind.roundoff).astype("i8")
        off = np.abs(scaled - self._sum[places]).astype(float) / self._magnitude[places]
        return np.where(sane, off, np.inf)

    def spoiled(self, element: int) -> Any:
        """A value for that element which is wrong by more than the tolerance, if only just."""
        place = element % self._period
        exact = float(self._sum[place]) * self.kind.roundoff
        allowed = self.tolerance * float(self._magnitude[place]) * self.kind.roundoff
        spacing = 2 * self.kind.roundoff * max(1.0, abs(exact) + allowed)  # of neighbours in the type, or more
        return self.kind.encode(np.array([exact + allowed + 2 * spacing]))[0]


def pieces(count: int) -> Iterator[slice]:
    """Up to 16 periods of ``count`` elements, evenly spread, the first and the last among them."""
    starts = range(0, count, PERIOD)
    chosen = np.unique(np.linspace(0, len(starts) - 1, min(len(starts), _MOST_PIECES)).round().astype(int))
    for number in chosen.tolist() if count else ():
        yield slice(starts[number], min(starts[number] + PERIOD, count))


def verify(
    stored: NDArray[Any] | None, first: int, reference: Reference, agree: Callable[[int], int],
    worst: Callable[[float], float], seed: int = 0,
) -> dict[str, Any]:  # fmt: skip
    """Compare sums on every rank, and see that a value just beyond the tolerance is noticed; for the record.

    ``stored`` are elements from index ``first`` of the sum on, None on a rank that receives none; ``agree`` and
    ``worst`` are a sum and a maximum over the ranks. Raises Invalid on every rank alike.
    """
    mine = np.zeros(0, reference.kind.numpy) if stored is None else stored
    largest, wrong, checked = 0.0, 0, 0
    for piece in pieces(mine.size):
        errors = reference.errors(mine[piece], first + piece.start)
        largest, checked = max(largest, float(errors.max())), checked + errors.size
        wrong += int(np.count_nonzero(errors > reference.tolerance))
    wrong, largest, checked = agree(wrong), worst(largest), agree(checked)
    what = f"{reference.tolerance:.3g} of the sum of magnitudes"
    if wrong:
        raise Invalid(f"wrong data: {wrong} sums of {reference.kind.name} are off by {largest:.3g}, allowed is {what}")
    missed = bool(mine.size) and not _notices(mine, first, reference, seed)
    if agree(int(missed)):
        raise Invalid(f"the check did not notice a sum that is off by more than {what}: its verdict means nothing")
    return {"reals": checked, "reals_tolerance": reference.tolerance, "reals_largest_error": largest}


def _notices(stored: NDArray[Any], first: int, reference: Reference, seed: int) -> bool:
    """Whether one element that is wrong by a little more than is allowed is seen to be so; it is put right again."""
    where = int(np.random.default_rng(seed).integers(stored.size))
    kept = stored[where].copy()
    stored[where] = reference.spoiled(first + where)
    noticed = bool(reference.errors(stored[where : where + 1], first + where)[0] > reference.tolerance)
    stored[where] = kept
    return noticed
