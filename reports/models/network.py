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
FURTHEST = 4  # times below the smallest size that a line was fitted to


@dataclass(frozen=True, eq=False)
class Messages:
    """``networks[k]`` is that of segment k of ``lines``; overheads in s and s/byte are spent at either end besides.

    ``least_bytes`` is the smallest message that the lines are trusted for.
    """

    lines: Hockney
    networks: tuple[Network, ...]
    send_s: float = 0.0
    receive_s: float = 0.0
    send_per_byte: float = 0.0
    receive_per_byte: float = 0.0
    least_bytes: float = 0.0

    def trusted(self, low: float, high: float) -> bool:
        """Whether what messages of these sizes belong to fits."""
        return low >= self.least_bytes and self.lines.trusted(low, high)

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


def models(found: Fitted, hosts: Sequence[int]) -> list[Messages]:
    """The models of a fabric whose ranks are on ``hosts``, each with one NIC, the one that tells most first.

    LogGP where it fits, else the segments through latency; then the line of the large sizes, for messages down to a
    quarter of the smallest of these. Without a measured reduction reducing and copying cost nothing, else a byte copied
    costs what a byte reduced does.
    """
    p = found.loggp if found.loggp is not None and found.loggp.fits else None
    lines, made = p.trips if p is not None else found.hockney, []
    if lines is not None:
        ends = (p.send_s, p.receive_s, p.send_per_byte, p.receive_per_byte) if p else ()
        spent = [x.value for x in ends]
        made.append(Messages(lines, _networks(found, lines, hosts, *spent), *spent))
    if found.large is not None:
        least = found.large.segments[0].first_bytes / FURTHEST
        made.append(Messages(found.large, _networks(found, found.large, hosts), least_bytes=least))
    return made


def _networks(
    found: Fitted, lines: Hockney, hosts: Sequence[int],
    send_s: float = 0.0, receive_s: float = 0.0, send_per_byte: float = 0.0, receive_per_byte: float = 0.0,
) -> tuple[Network, ...]:  # fmt: skip
    """A network for each segment, without what the ends spend; from the first edge on messages are synchronous."""
    reduced = found.reduce_s_per_byte
    rate = 1 / reduced.value if reduced is not None and reduced.value > 0 else np.inf
    edge = lines.edges[0].value if lines.edges else np.inf
    networks = []
    for s in lines.segments:
        eager = s.first_bytes < edge
        per_byte = s.s_per_byte.value - (send_per_byte + receive_per_byte if eager else 0.0)
        networks.append(Network(
            max(s.latency_s.value - send_s - receive_s, 0.0), found.two_way / per_byte if per_byte > 0 else np.inf,
            reduce_bytes_per_s=rate, copy_bytes_per_s=rate, host_of_rank=np.asarray(hosts, "i8"), nics=1,
            rendezvous_bytes=np.inf if eager else 0.0,
        ))  # fmt: skip
    return tuple(networks)


def allreduce_s(algorithm: str, nbytes: int, hosts: Sequence[int], on: Messages) -> float:
    """The simulated time of an allreduce of float32; KeyError for an algorithm that there is not."""
    of = ("allreduce", algorithm)
    options = {"hosts": list(hosts)} if of in NEEDS_HOSTS else {}
    schedule = ALGORITHMS[of](len(hosts), nbytes // FLOAT32_BYTES, **options)
    return simulate(schedule, FLOAT32_BYTES, on).time_s
