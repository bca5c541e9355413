"""One time for all ranks: offset and drift of a clock, and what a global clock tells of a collective. Pure.

A model says how far a rank's clock is from the clock of rank 0, the reference. The offset is bounded as in SKaMPI:
a message arrives after it was sent, so every ping-pong gives a lower and an upper bound of it. Who learns from whom
is HCA3's order (Hunold and Carpen-Amarie, "Hierarchical Clock Synchronization in MPI", CLUSTER 2018): top-down, so
that a learner gets the global time of a teacher that knows it already, in O(log p) rounds. Make-span and last exit
after the entry of the last are theirs too (EuroMPI 2015, TPDS 2016).

All times are whole ns; differences to an epoch are taken before anything becomes a float.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

SHARE = 0.10
_MOST_POINTS = 50
_WINDOW_NS = 60_000_000_000  # clocks are steered: what is older says little of the present drift
_FEWEST_FOR_SCATTER = 5
_WANDER = 1e-6  # s/s by which a drift may change
_STEP_NS = 10.0  # of the clock: no offset is known better
_WORDS = np.dtype([("epoch", "i8"), ("offset", "i8"), ("drift", "f8")])

Times = NDArray[np.int64]


@dataclass(frozen=True)
class ClockModel:
    """A rank's clock: local - global = ``offset_ns`` + ``drift`` * (local - ``epoch_ns``), within ``bound_ns``.

    ``epoch_ns`` is a local time, at which the bound was measured; ``drift`` is in s/s.
    """

    epoch_ns: int
    offset_ns: int
    drift: float
    bound_ns: float

    def ahead(self, local_ns: int) -> int:
        """How far the clock is ahead of the reference at one of its times, in ns."""
        return round(self.offset_ns) + round(self.drift * (local_ns - self.epoch_ns))

    def to_global(self, local: Times) -> Times:
        """Local times in ns on the clock of the reference."""
        drifted = np.rint(self.drift * (local - self.epoch_ns)).astype("i8")
        return np.asarray(local - round(self.offset_ns) - drifted)

    def words(self) -> NDArray[np.int64]:
        """The three words of loop.c's ``Clock``, which goes the other way: from global to local time."""
        offset = round(self.offset_ns)
        row = np.zeros(1, _WORDS)
        row[0] = (self.epoch_ns - offset, offset, self.drift / (1 - self.drift))
        return row.view("i8")

    def moved(self, offset_now_ns: int, at_local_ns: int, bound_ns: float) -> ClockModel:
        """The same drift, anchored at a new measurement."""
        return replace(self, epoch_ns=at_local_ns, offset_ns=offset_now_ns, bound_ns=bound_ns)


IDENTITY = ClockModel(0, 0, 0.0, 0.0)


def offset_bounds(sent: Times, reference: Times, received: Times) -> tuple[int, int]:
    """Bounds of local minus reference time, in ns, from ping-pongs that the local side began.

    SKaMPI: sent - reference <= offset <= received - reference holds for every one of them. The offset is the middle,
    half of the width its bound. The low one is above the high one where clocks drift faster than ping-pongs resolve.
    """
    return int((sent - reference).max()), int((received - reference).min())


@dataclass(frozen=True)
class Point:
    """The offset of a clock at one of its times, within a bound; all in ns."""

    at_local_ns: int
    offset_ns: int
    bound_ns: float


def observe(model: ClockModel, sent: Times, reference: Times, received: Times) -> Point:
    """The offset in the middle of ping-pongs, taken against what ``model`` predicts for each of them.

    So a known drift does not blur the bounds. ``reference`` is global time; the model needs no anchor for this.
    """
    low, high = offset_bounds(model.to_global(sent), reference, model.to_global(received))
    at = (int(sent[0]) + int(received[-1])) // 2
    return Point(at, model.ahead(at) + (low + high) // 2, abs(high - low) / 2)


def fit(at_local: Times, offsets: Times, bounds: NDArray[np.float64]) -> tuple[float, float]:
    """Drift in s/s and its error: least squares of offsets over local times, weighted by 1 / bound^2.

    The error is that of bounds taken for errors, or, from 5 points on, three standard errors of the residuals, if that
    is less: what shifts all offsets alike does not turn the line. A slope below its error is no drift: 0, as of one
    point, whose error is infinite.
    """
    t, d = (at_local - at_local[0]).astype(float), (offsets - offsets[0]).astype(float)
    weight = 1.0 / np.maximum(bounds, _STEP_NS) ** 2
    t -= np.average(t, weights=weight)
    d -= np.average(d, weights=weight)
    spread = float((weight * t**2).sum())
    if spread == 0.0:
        return 0.0, float("inf")
    slope = float((weight * t * d).sum()) / spread
    scatter = _scatter(d - slope * t, weight) if t.size >= _FEWEST_FOR_SCATTER else 1.0
    error = min(1.0, 3 * scatter) / spread**0.5
    return (slope if abs(slope) > error else 0.0), error


def _scatter(residuals: NDArray[np.float64], weight: NDArray[np.float64]) -> float:
    """The standard deviation of what a line leaves, in bounds; not less than the clock's step."""
    freedom = residuals.size - 2
    least = _STEP_NS * float(weight.mean()) ** 0.5
    return float(max(least, np.sqrt((weight * residuals**2).sum() / freedom)))


def remembered(points: Sequence[Point]) -> list[Point]:
    """The points that tell the present drift: of the last minute, and every other one where they become too many."""
    recent = [p for p in points if points[-1].at_local_ns - p.at_local_ns <= _WINDOW_NS]
    return recent if len(recent) <= _MOST_POINTS else [*recent[:-1:2], recent[-1]]


def model_of(points: Sequence[Point], new: Sequence[Point], before: ClockModel | None = None) -> ClockModel:
    """The model through the tightest of the ``new`` points, with the drift that all ``points`` tell.

    Where the model ``before`` still tells the offset better, its bound grown by what its drift may be wrong, that is
    the anchor: new points may be disturbed ones.
    """
    columns = np.array([(p.at_local_ns, p.offset_ns) for p in points], "i8").T
    drift, error = fit(columns[0], columns[1], np.array([p.bound_ns for p in points]))
    anchor = min(new, key=lambda p: p.bound_ns)
    at = anchor.at_local_ns
    if before is not None:
        aged = Point(at, before.ahead(at), before.bound_ns + (error + _WANDER) * (at - before.epoch_ns))
        anchor = min(anchor, aged, key=lambda p: p.bound_ns)
    return ClockModel(at, anchor.offset_ns, drift, anchor.bound_ns)


def hca3_rounds(n: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Rounds of (teacher, learner) among ``n`` clocks, of which 0 is the reference: HCA3's order, top-down.

    With P the largest power of two in n, round by round the distance P/2, P/4, ..., 1 between teacher and learner; the
    clocks from P on learn from the one P below in a last round. Everyone learns once, from one that already knows.
    """
    power = 1 << (n.bit_length() - 1)
    distances = [power >> (i + 1) for i in range(power.bit_length() - 1)]
    rounds = [tuple((r, r + d) for r in range(0, power, 2 * d)) for d in distances]
    rest = tuple((r - power, r) for r in range(power, n))
    return (*rounds, *((rest,) if rest else ()))


@dataclass(frozen=True)
class Timeline:
    """Iterations on one clock, in ns, of shape (n,); ``starts``, global, of shape (ranks, n).

    ``makespan_ns`` is from the first entry to the last exit, ``last_exit_ns`` from the last entry to the last exit:
    what is left when everybody is in. ``entry_skew_ns`` is the difference of the two.
    """

    makespan_ns: Times
    last_exit_ns: Times
    entry_skew_ns: Times
    starts: Times


def timeline(starts: Times, ends: Times, models: Sequence[ClockModel]) -> Timeline:
    """Local starts and ends, of shape (ranks, n), on one clock: a model per rank."""
    entries, exits = (
        np.array([model.to_global(row) for model, row in zip(models, times, strict=True)]) for times in (starts, ends)
    )
    first, last, done = entries.min(axis=0), entries.max(axis=0), exits.max(axis=0)
    return Timeline(done - first, done - last, last - first, entries)


def joined(parts: Sequence[Timeline]) -> Timeline:
    """One timeline of several blocks, in order."""
    return Timeline(
        np.concatenate([p.makespan_ns for p in parts]),
        np.concatenate([p.last_exit_ns for p in parts]),
        np.concatenate([p.entry_skew_ns for p in parts]),
        np.concatenate([p.starts for p in parts], axis=1),
    )


def why_not(discrepancy_ns: float, median_ns: float, share: float = SHARE) -> str:
    """Why values of the global clock are n/a, or nothing: the clocks moved by too much of what was measured.

    ``discrepancy_ns`` is how far a measured offset was from the predicted one; the bound of either gates nothing.
    """
    if abs(discrepancy_ns) <= share * median_ns:
        return ""
    moved, median = _us(abs(discrepancy_ns)), _us(median_ns)
    return f"n/a: clocks moved {moved}, above {100 * share:g} % of the median {median}"


def _us(ns: float) -> str:
    return f"{ns * 1e-3:.1f} us" if ns >= 1000 else f"{ns * 1e-3:.3f} us"
