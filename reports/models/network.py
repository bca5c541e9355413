"""A fitted fabric as the simulator's model of messages: a line per segment of sizes, ends' overheads, shared NICs.

Known from LogGP where its probes were measured, else from the line through latency, whose ends' overheads are then
part of what a message is on its way. An allreduce sends and receives at once, so rates are those of two-way traffic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collectives.schedule import Int
from collectives.schedules import ALGORITHMS, NEEDS_HOSTS
from collectives.simulate import Cost, Network, simulate
from reports.models.fabric import Fitted
from reports.models.hockney import Hockney
from reports.models.points import Float

FLOAT32_BYTES = 4


@dataclass(frozen=True, eq=False)
class Messages:
    """``networks[k]`` is that of segment k of ``lines``; overheads in s and s/byte are spent at either end besides."""

    lines: Hockney
    networks: tuple[Network, ...]
    send_s: float = 0.0
    receive_s: float = 0.0
    send_per_byte: float = 0.0
    receive_per_byte: float = 0.0

    def hosts(self, rank: Int) -> Int:
        """The host of each rank."""
        return self.networks[0].hosts(rank)

    def messages(self, source: Int, target: Int, nbytes: Float) -> Cost:
        """The cost of one round's messages, each by its own segment; all of them share the NICs."""
        which = np.searchsorted([s.first_bytes for s in self.lines.segments[1:]], nbytes, side="right")
        costs = {k: self.networks[k].messages(source, target, nbytes) for k in np.unique(which).tolist()}
        latency, wire, synchronous = (
            np.select([which == k for k in costs], [getattr(cost, name) for cost in costs.values()])
            for name in ("latency_s", "wire_s", "synchronous")
        )
        # What waits for its receiver is not copied by its sender first.
        eager = np.where(synchronous, 0.0, nbytes)
        return Cost(latency, wire, self.send_s + self.send_per_byte * eager,
                    self.receive_s + self.receive_per_byte * eager, synchronous.astype(bool))  # fmt: skip

    def reduce_s(self, nbytes: Float) -> Float:
        """Seconds to reduce so many bytes."""
        return self.networks[0].reduce_s(nbytes)

    def copy_s(self, nbytes: Float) -> Float:
        """Seconds to copy so many bytes."""
        return self.networks[0].copy_s(nbytes)


def model(found: Fitted, hosts: Sequence[int]) -> Messages | None:
    """The model of a fabric whose ranks are on ``hosts``, each with one NIC; None where no segment of sizes fits.

    Without a measured reduction reducing and copying cost nothing, else a byte copied costs what a byte reduced does.
    """
    where = np.asarray(hosts, "i8")
    reduced = found.reduce_s_per_byte
    rate = 1 / reduced.value if reduced is not None and reduced.value > 0 else np.inf
    p = found.loggp if found.loggp is not None and found.loggp.fits else None
    lines = p.trips if p is not None else found.hockney
    if lines is None or not any(s.fits for s in lines.segments):
        return None
    ends = (p.send_s.value, p.receive_s.value, p.send_per_byte.value, p.receive_per_byte.value) if p else (0, 0, 0, 0)
    edge = lines.edges[0].value if lines.edges else np.inf
    networks = []
    for s in lines.segments:
        eager = s.first_bytes < edge
        per_byte = s.s_per_byte.value - (ends[2] + ends[3] if eager else 0.0)
        networks.append(Network(
            max(s.latency_s.value - ends[0] - ends[1], 0.0), found.two_way / per_byte if per_byte > 0 else np.inf,
            reduce_bytes_per_s=rate, copy_bytes_per_s=rate, host_of_rank=where, nics=1,
            rendezvous_bytes=np.inf if eager else 0.0,
        ))  # fmt: skip
    return Messages(lines, tuple(networks), *ends)


def allreduce_s(algorithm: str, nbytes: int, hosts: Sequence[int], on: Messages) -> float:
    """The simulated time of an allreduce of float32; KeyError for an algorithm that there is not."""
    of = ("allreduce", algorithm)
    options = {"hosts": list(hosts)} if of in NEEDS_HOSTS else {}
    schedule = ALGORITHMS[of](len(hosts), nbytes // FLOAT32_BYTES, **options)
    return simulate(schedule, FLOAT32_BYTES, on).time_s
