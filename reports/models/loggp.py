"""LogGP of a fabric: latency L, overheads o_s and o_r of either end, gap g between messages, G seconds per byte.

Alexandrov, Ionescu, Schauser and Scheiman, "LogGP: Incorporating long messages into the LogP model", 1995; measured
by delayed bursts after Hoefler, Lichei and Rehm, "Low-overhead LogGP parameter assessment for modern interconnection
networks", 2007. With m bytes, below the edge beyond which a library waits for its peer (rendezvous)::

    half of a round trip = L + o_s + o_r + m G_eager        a message in a burst = g + m G
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microbench.stats import Interval
from reports.models import hockney
from reports.models.hockney import FEWEST_POINTS, Hockney
from reports.models.least_squares import line
from reports.models.points import RESAMPLES, Points, interval

Float = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Probes:
    """What a fabric was asked, over the same sizes: half round trips, times of a message in a burst, overheads."""

    half: Points
    burst: Points
    send: Points
    receive: Points

    def __post_init__(self) -> None:
        for other in (self.burst, self.send, self.receive):
            if not np.array_equal(other.nbytes, self.half.nbytes):
                raise ValueError("the probes must have the same sizes")


@dataclass(frozen=True, eq=False)
class LogGP:
    """The parameters in s and s/byte, with bootstrap intervals.

    Overheads rise with the size by ``send_per_byte`` and ``receive_per_byte``, where a processor copies the bytes
    (LogGOPS's O). ``s_per_byte`` is G of the largest messages, ``eager_per_byte`` that below the ``edge``, which is
    None where one protocol serves all sizes. ``trips`` and ``bursts`` are the piecewise lines behind it.
    """

    latency_s: Interval
    send_s: Interval
    receive_s: Interval
    gap_s: Interval
    s_per_byte: Interval
    eager_per_byte: Interval
    send_per_byte: Interval
    receive_per_byte: Interval
    edge: Interval | None
    trips: Hockney
    bursts: Hockney

    @property
    def worst(self) -> float:
        """The largest relative error at a size that the fits did not see."""
        return max(self.trips.worst, self.bursts.worst)

    @property
    def fits(self) -> bool:
        """Whether neither round trips nor bursts are off by more than 10 % anywhere."""
        return self.trips.fits and self.bursts.fits

    @property
    def verdict(self) -> str:
        """``fits``, or what does not."""
        told = [
            f"{what}: {f.verdict}" for what, f in (("round trips", self.trips), ("bursts", self.bursts)) if not f.fits
        ]
        return "; ".join(told) or "fits"


def fit(probes: Probes, resamples: int = RESAMPLES, seed: int = 0) -> LogGP:
    """Fit all parameters. ValueError for fewer than 4 sizes, or fewer than 4 below the edge."""
    trips, bursts = (hockney.fit(p, resamples, seed) for p in (probes.half, probes.burst))
    edge = trips.edges[0] if trips.edges else None
    eager = probes.half.nbytes < (edge.value if edge else np.inf)
    n = int(eager.sum())
    if n < FEWEST_POINTS:
        raise ValueError(f"{n} sizes below the edge: {FEWEST_POINTS} are needed")
    # The same seed draws the same launches of all four probes.
    half, burst, send, receive = (p.where(eager).resampled(resamples, seed) for p in
                                  (probes.half, probes.burst, probes.send, probes.receive))  # fmt: skip
    x, below = probes.half.nbytes[eager], {name: getattr(probes, name).where(eager) for name in ("send", "receive")}
    o_s, per_s = line(x, send, below["send"].weights)
    o_r, per_r = line(x, receive, below["receive"].weights)
    on_the_way = half - (o_s + o_r)[:, None] - (per_s + per_r)[:, None] * x
    latency, eager_g = line(x, on_the_way, probes.half.where(eager).weights)
    gap, _ = line(x, burst, probes.burst.where(eager).weights)
    found = (interval(values, n) for values in (latency, o_s, o_r, gap, eager_g, per_s, per_r))
    low, send_s, receive_s, gap_s, eager_per_byte, send_per, receive_per = found
    return LogGP(low, send_s, receive_s, gap_s, bursts.segments[-1].s_per_byte, eager_per_byte, send_per, receive_per,
                 edge, trips, bursts)  # fmt: skip
