"""Times a schedule on a modelled network, whole rounds of all ranks at once.

Every rank has a clock, which stands at the end of its last round. In a round a rank posts its receives and sends at
once and spends the overhead of each send. A message leaves when its sender has posted it; where it is synchronous
(rendezvous), not before its target has come to the round too. It arrives its latency and wire time later. The rank
ends the round at the latest of: its own sends posted, all its messages arrived, and all its sends gone (the wire
time after they left; arrived, where synchronous). Then follow the overheads of what it received, the reductions,
and the local copies. A rank without messages in a round is not held up by it.

The model of costs is :class:`Network` or any other :class:`Model`; it sees all messages of a round together. Ranks
share no common clock, but contention is seen within a round only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from collectives.schedule import Flags, Int, Round, Schedule

Float = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Cost:
    """What messages cost, one entry each: seconds on the way, on the wire, and of CPU at either end."""

    latency_s: Float
    wire_s: Float
    send_s: Float
    receive_s: Float
    synchronous: Flags


class Model(Protocol):
    """What the simulator asks of a network: pure functions on arrays."""

    def hosts(self, rank: Int) -> Int:
        """The host of each rank, a small number from 0 on."""

    def messages(self, source: Int, target: Int, nbytes: Float) -> Cost:
        """The cost of the messages of one round, none of them local."""

    def reduce_s(self, nbytes: Float) -> Float:
        """Seconds to reduce so many bytes into as many."""

    def copy_s(self, nbytes: Float) -> Float:
        """Seconds to copy so many bytes within a rank."""


@dataclass(frozen=True, eq=False)
class Network:
    """Hockney's or LogGP's costs, and NICs that the ranks of a host share.

    A message takes ``latency_s`` + bytes / ``bytes_per_s`` and ``overhead_s`` of CPU at either end (LogGP's L, G and
    o, with G charged for every byte). ``host_of_rank`` (shape (ranks,)) places the ranks, each on a host of its own
    where None; within a host ``local_latency_s`` and ``local_bytes_per_s`` hold where given.

    With ``nics`` of ``bytes_per_s`` per host and direction, what goes between hosts in a round shares them fairly: a
    message is on the wire no shorter than its host's NICs need for all the round's bytes, at either end. With 0
    every message has the whole rate. Messages of ``rendezvous_bytes`` and more are synchronous: with 0 all are, so
    that a rank is busy for latency + bytes / rate with each message, as the closed formulas have it (Hockney 1994).
    """

    latency_s: float
    bytes_per_s: float
    overhead_s: float = 0.0
    reduce_bytes_per_s: float = np.inf
    copy_bytes_per_s: float = np.inf
    host_of_rank: Int | None = None
    nics: int = 0
    local_latency_s: float | None = None
    local_bytes_per_s: float | None = None
    rendezvous_bytes: float = 0.0

    def __post_init__(self) -> None:
        rates = (self.bytes_per_s, self.reduce_bytes_per_s, self.copy_bytes_per_s, _given(self.local_bytes_per_s, 1))
        times = (self.latency_s, self.overhead_s, _given(self.local_latency_s, 0), self.rendezvous_bytes, self.nics)
        if not (all(rate > 0 for rate in rates) and all(time >= 0 for time in times)):
            raise ValueError("a network's rates must be above 0, and its times, sizes and NICs not below")

    def hosts(self, rank: Int) -> Int:
        """The host of each rank; ValueError for a rank that has none."""
        if self.host_of_rank is None:
            return rank
        if rank.size and int(rank.max()) >= self.host_of_rank.size:
            raise ValueError(f"rank {int(rank.max())} has no host: {self.host_of_rank.size} given")
        return self.host_of_rank[rank]

    def messages(self, source: Int, target: Int, nbytes: Float) -> Cost:
        """The cost of the messages of one round."""
        from_host, to_host = self.hosts(source), self.hosts(target)
        across = from_host != to_host
        latency = np.where(across, self.latency_s, _given(self.local_latency_s, self.latency_s))
        wire = nbytes / np.where(across, self.bytes_per_s, _given(self.local_bytes_per_s, self.bytes_per_s))
        if self.nics:
            crossing, rate = np.where(across, nbytes, 0.0), self.nics * self.bytes_per_s
            for host in (from_host, to_host):
                busy = np.bincount(host, crossing) / rate
                wire = np.where(across, np.maximum(wire, busy[host]), wire)
        overhead = np.full(nbytes.size, self.overhead_s)
        return Cost(latency, wire, overhead, overhead, nbytes >= self.rendezvous_bytes)

    def reduce_s(self, nbytes: Float) -> Float:
        """Bytes over ``reduce_bytes_per_s``."""
        return nbytes / self.reduce_bytes_per_s

    def copy_s(self, nbytes: Float) -> Float:
        """Bytes over ``copy_bytes_per_s``."""
        return nbytes / self.copy_bytes_per_s


def _given(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


@dataclass(frozen=True, eq=False)
class Timing:
    """When it was over: ``time_s`` on the last rank, ``finish_s`` (shape (ranks,)) on each.

    ``rank_bytes`` (shape (ranks,)) each rank sent to others, ``host_bytes`` (shape (hosts,)) each host to others;
    ``messages`` between ranks, in ``rounds`` rounds (those of local messages alone included).
    """

    time_s: float
    finish_s: Float
    rank_bytes: Int
    host_bytes: Int
    messages: int
    rounds: int


def simulate(schedule: Schedule, element_bytes: int, model: Model) -> Timing:
    """Time ``schedule`` with elements of so many bytes, all ranks beginning at 0.

    Memory is that of one round. Raises ValueError as the model does, or for elements below 1 byte.
    """
    if element_bytes < 1:
        raise ValueError(f"an element of {element_bytes} bytes cannot be")
    clock = np.zeros(schedule.ranks)
    host = model.hosts(np.arange(schedule.ranks))
    sent, host_sent = np.zeros(schedule.ranks, "i8"), np.zeros(int(host.max()) + 1, "i8")
    messages = rounds = 0
    for made in schedule.rounds:
        local = made.local
        remote = made.where(~local) if local.any() else made
        clock = _exchange(clock, remote, element_bytes, model) if len(remote) else clock
        if len(remote) < len(made):
            clock = clock + _locally(made.where(local), schedule.ranks, element_bytes, model)
        nbytes = remote.count * element_bytes
        across = host[remote.source] != host[remote.target]
        np.add.at(sent, remote.source, nbytes)
        np.add.at(host_sent, host[remote.source[across]], nbytes[across])
        messages, rounds = messages + len(remote), rounds + 1
    return Timing(float(clock.max()), clock, sent, host_sent, messages, rounds)


def _exchange(clock: Float, made: Round, element_bytes: int, model: Model) -> Float:
    """The clocks after the messages between ranks, and their reductions."""
    ranks, source, target = clock.size, made.source, made.target
    nbytes: Float = made.count.astype("f8") * element_bytes
    cost = model.messages(source, target, nbytes)
    leaves = clock[source] + _running(cost.send_s, source)
    leaves = np.where(cost.synchronous, np.maximum(leaves, clock[target]), leaves)
    gone = leaves + cost.wire_s
    arrives = gone + cost.latency_s
    after = clock.copy()
    np.maximum.at(after, target, arrives)
    np.maximum.at(after, source, np.where(cost.synchronous, arrives, gone))
    work = cost.receive_s + np.where(made.combine, model.reduce_s(nbytes), 0.0)
    return np.asarray(after + np.bincount(target, work, ranks))


def _locally(made: Round, ranks: int, element_bytes: int, model: Model) -> Float:
    """Seconds that each rank spends on its messages to itself."""
    nbytes: Float = made.count.astype("f8") * element_bytes
    seconds = np.where(made.combine, model.reduce_s(nbytes), model.copy_s(nbytes))
    return np.asarray(np.bincount(made.target, seconds, ranks))


def _running(value: Float, of: Int) -> Float:
    """The running sum of ``value`` over the entries with the same ``of``, each included, in their order."""
    if np.bincount(of).max() == 1 or not value.any():
        return value
    order = np.argsort(of, kind="stable")
    total = np.cumsum(value[order])
    first = np.searchsorted(of[order], of[order])
    running = np.empty_like(total)
    running[order] = total - (total - value[order])[first]
    return running
