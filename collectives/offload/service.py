"""The DPUs' side of offloaded requests: a worker that does what its hosts order, and sleeps meanwhile.

An order is eight words. Hosts give the same orders in the same order; a worker follows when each of the hosts that its
DPU serves has given one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from collectives.offload.channel import TRANSPORTS, Channel
from collectives.offload.party import Calls, Crew
from fabrics.errors import CannotRun
from microbench.dtypes import DTYPES
from microbench.engine import Program, requests

MAKE, RUN, STOP = 1, 2, 3
TAGS = 2  # one for orders, one for what is said to them
WORDS = 8


@dataclass(frozen=True)
class Order:
    """What a worker shall do: ``verb`` to channel ``number``; the rest tells what channel shall be made."""

    verb: int
    number: int = 0
    kind: str = "float32"
    count: int = 0
    transport: str = TRANSPORTS[0]
    chunk_bytes: int | None = None
    memory_bytes: int | None = None

    def words(self) -> NDArray[np.int64]:
        """As it travels."""
        known = [list(DTYPES).index(self.kind), self.count, TRANSPORTS.index(self.transport)]
        bounds = [-1 if value is None else value for value in (self.chunk_bytes, self.memory_bytes)]
        return np.array([self.verb, self.number, *known, *bounds, 0], "i8")

    @classmethod
    def of(cls, words: NDArray[np.int64]) -> Order:
        """The order that came."""
        verb, number, kind, count, transport, *bounds = (int(value) for value in words[: WORDS - 1])
        chunk, memory = (None if value < 0 else value for value in bounds)
        return cls(verb, number, list(DTYPES)[kind], count, TRANSPORTS[transport], chunk, memory)

    def channel(self, crew: Crew) -> Channel:
        """Make the channel; all ranks do so together."""
        return Channel(
            crew,
            "allreduce",
            DTYPES[self.kind],
            self.count,
            self.transport,
            chunk_bytes=self.chunk_bytes,
            memory_bytes=self.memory_bytes,
        )


class Service:
    """One worker's post: ``run`` returns when its hosts have stopped it."""

    def __init__(self, crew: Crew) -> None:
        self.crew, self._tag = crew, crew.tags(TAGS)
        self._orders = np.zeros((len(crew.partners), WORDS), "i8")
        self._channels: list[tuple[Channel, Program]] = []
        self._next = crew.job.engine.program(*self._calls("MPI_Irecv", self._orders, self._tag))
        self._ready = crew.job.engine.program(*self._calls("MPI_Isend", self._orders, self._tag + 1))

    def _calls(self, name: str, rows: NDArray[np.int64], tag: int) -> Calls:
        """A message of an order's size with each host, and the wait for all."""
        slots = requests(len(rows), self.crew.job.engine.MPI)
        byte, comm, ends = (
            self.crew.job.engine.MPI.BYTE,
            self.crew.comm,
            zip(self.crew.partners, rows, slots, strict=True),
        )
        calls: Calls = [(name, row, row.nbytes, byte, rank, tag, comm, slot) for rank, row, slot in ends]
        return [*calls, *self.crew.waits(slots, gentle=True)]

    def run(self) -> int:
        """Follow orders until the hosts say stop; how many operations were done.

        Raises CannotRun where two hosts of this DPU order different things.
        """
        while (order := self._order()).verb != STOP:
            if order.verb == MAKE:
                self._ready.run(1)
                channel = order.channel(self.crew)
                self._channels.append((channel, self.crew.job.engine.program(*channel.serve())))
            else:
                self._channels[order.number][1].run(1)
        done = sum(int(channel.tally[0]) for channel, _ in self._channels)
        self._ready.run(1)
        for channel, _ in self._channels:
            channel.close()
        self._channels = []
        return done

    def _order(self) -> Order:
        self._next.run(1)
        differing = np.flatnonzero((self._orders != self._orders[0]).any(axis=1))
        if differing.size:
            first, other = (self.crew.name(self.crew.partners[place]) for place in (0, int(differing[0])))
            raise CannotRun(
                f"{first} and {other} order different things from one DPU: hosts must reduce the same arrays in the"
                " same order"
            )
        return Order.of(self._orders[0])


def serve(crew: Crew) -> int:
    """A DPU worker's part while the hosts have an :class:`collectives.offload.request.Offload`; operations done."""
    return Service(crew).run()
