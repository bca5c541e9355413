"""From the ranks that were measured to thousands: an allreduce by the best formula, anchored at what was measured.

T(p, n) = measured(p0, n) * best(p, n) / best(p0, n), best being the least of all flat algorithms' formulas with the
fabric's own latency and rate. The ratio alone is the model's: what a formula misses at p0 it is taken to miss at p.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from reports.models.cost import FLAT, features
from reports.models.step import Cost, Exchange, Prediction, Profile, predict

HOSTS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
SHOWS = 0.01  # of the step: exposed communication below is none that shows


@dataclass(frozen=True)
class Wire:
    """A fabric's costs: ``latency_s`` a message, ``s_per_byte``, and ``reduce_s_per_byte``."""

    latency_s: float
    s_per_byte: float
    reduce_s_per_byte: float = 0.0

    def best_s(self, ranks: int, nbytes: float) -> float:
        """The least of the formulas, in s; 0 for one rank."""
        return min(self._formula_s(name, ranks, nbytes) for name in FLAT)

    def _formula_s(self, name: str, ranks: int, nbytes: float) -> float:
        f = features(name, ranks)
        return f.steps * self.latency_s + nbytes * (f.moved * self.s_per_byte + f.reduced * self.reduce_s_per_byte)

    def at_rate(self, bytes_per_s: float) -> Wire:
        """The same with another rate."""
        return replace(self, s_per_byte=1 / bytes_per_s)


def at(ranks: int, measured: Cost, measured_ranks: int, wire: Wire) -> Cost:
    """The time of an allreduce on ``ranks`` ranks, from the one measured on ``measured_ranks``."""
    return lambda nbytes: measured(nbytes) * wire.best_s(ranks, nbytes) / wire.best_s(measured_ranks, nbytes)


def other_rate(measured: Cost, ranks: int, wire: Wire, bytes_per_s: float) -> Cost:
    """The time of the measured allreduce if the wire had another rate."""
    other = wire.at_rate(bytes_per_s)
    return lambda nbytes: measured(nbytes) * other.best_s(ranks, nbytes) / wire.best_s(ranks, nbytes)


@dataclass(frozen=True)
class Scaled:
    """The step on so many hosts, and its efficiency: one rank's step over it, the work of a rank being the same."""

    ranks: int
    prediction: Prediction
    efficiency: float


def scale(
    profile: Profile, exchange: Exchange, measured_ranks: int, wire: Wire, alone_s: float, hosts: Sequence[int] = HOSTS
) -> list[Scaled]:
    """The step at each number of hosts, a rank each."""
    found = []
    for ranks in hosts:
        grown = replace(exchange, time_s=at(ranks, exchange.time_s, measured_ranks, wire))
        prediction = predict(profile, grown)
        found.append(Scaled(ranks, prediction, alone_s / prediction.step_s))
    return found


def shows_from(scaled: Sequence[Scaled]) -> int | None:
    """The smallest number of hosts at which exposed communication shows; None where it does at none of them."""
    return next((s.ranks for s in scaled if s.prediction.exposed_fraction > SHOWS), None)
