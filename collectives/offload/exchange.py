"""The collective that the workers of one lane do among the DPUs, for one piece, wherever its elements are.

Elements are in *places*: addresses of the worker's own memory, be it staging or a window into a host's. The hosts of
one DPU are served by one rank, which adds up or copies what they have before and after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives.offload.derived import Derived
from collectives.offload.party import Calls, Crew
from collectives.offload.pieces import Block, Task
from collectives.operands import vector
from microbench.dtypes import counted
from microbench.engine import CallSpec

METHODS = {
    "allreduce": "MPI_Iallreduce",
    "broadcast": "MPI_Ibcast",
    "allgather": "MPI_Iallgatherv",
    "alltoall": "MPI_Ialltoallw",
}

Blocks = tuple[Block, ...]


@dataclass(frozen=True)
class Places:
    """Where a piece is of every host that the DPU serves: addresses, and how many elements are there.

    ``length`` is the piece's, in elements of the span. Two of them may be the same place.
    """

    length: int
    inputs: tuple[Blocks, ...]
    outputs: tuple[Blocks, ...]


class Exchange:
    """A task's collectives as calls of one worker; types are made in ``derived``."""

    def __init__(self, crew: Crew, task: Task, derived: Derived) -> None:
        self.crew, self.task, self.derived = crew, task, derived
        self.method = METHODS[task.operation]
        self._in_place = crew.job.engine.MPI.IN_PLACE

    def begin(self, places: Places, request: NDArray[np.uint8]) -> Calls:
        """Start the collective, which ``request`` stands for."""
        calls: Calls = getattr(self, f"_{self.task.operation}")(places, request)
        return calls

    def end(self, places: Places) -> Calls:
        """What is left when it has ended: to give every host of the DPU the result."""
        if self.task.operation == "alltoall" or (self.task.operation == "broadcast" and self._has_root):
            return []
        return [call for output in places.outputs[1:] for call in self._copies(places.outputs[0], output)]

    @property
    def _has_root(self) -> bool:
        return self.task.root in self.crew.served

    def _copies(self, source: Blocks, target: Blocks) -> Calls:
        ends = zip(source, target, strict=True)
        return [("copy", to, at, length * self.derived.each) for (at, length), (to, _) in ends if to != at]

    def _name(self, *counts: int) -> str:
        return counted(self.crew.job.engine, self.method, *counts)

    def _allreduce(self, places: Places, request: NDArray[np.uint8]) -> Calls:
        """The hosts' own sum first, in the place of the first one's result; of one host alone nothing is copied."""
        ((data, count),), ((total, _),) = places.inputs[0], places.outputs[0]
        kind, add, lane = self.derived.element, self.crew.job.engine.MPI.SUM, self.crew.lane_comm
        calls: Calls = []
        source: Any = data
        if len(places.inputs) > 1:
            local = counted(self.crew.job.engine, "MPI_Reduce_local", count)
            calls = self._copies(places.inputs[0], places.outputs[0])
            calls += [(local, other, total, count, kind, add) for ((other, _),) in places.inputs[1:]]
            source = total
        if source == total:
            source = self._in_place
        return [*calls, (self._name(count), source, total, count, kind, add, lane, request)]

    def _broadcast(self, places: Places, request: NDArray[np.uint8]) -> Calls:
        """From the root's memory, or to the first host's; beside the root, others are served meanwhile."""
        lane, root_dpu, calls = self.crew.lane_comm, self.crew.layout.dpu_of(self.task.root), Calls()
        mine = places.outputs[0]
        if self._has_root:
            mine = places.inputs[self.crew.served.index(self.task.root)]
            others = [output for output in places.outputs if output]
            calls = [call for output in others for call in self._copies(mine, output)]
        ((data, count),) = mine
        return [(self._name(count), data, count, self.derived.element, root_dpu, lane, request), *calls]

    def _allgather(self, places: Places, request: NDArray[np.uint8]) -> Calls:
        """In place, once the DPU's own hosts have their blocks in the first one's result."""
        crew, result = self.crew, places.outputs[0]
        calls: Calls = []
        for host, data in zip(crew.served, places.inputs, strict=True):
            calls += self._copies(data, result[host : host + 1])
        block, times = self._row(places.length, (result[1][0] - result[0][0]) // self.derived.each)
        name = self._name(self.task.hosts * times)
        counts = vector(name, (len(hosts) * times for hosts in crew.layout.served))
        firsts = vector(name, (hosts[0] * times for hosts in crew.layout.served))
        none = (self._in_place, 0, self.derived.element)
        return [*calls, (name, *none, result[0][0], counts, firsts, block, crew.lane_comm, request)]

    def _row(self, length: int, stride: int) -> tuple[Any, int]:
        """A type, and how many of it are a host's part of a piece; parts begin ``stride`` elements apart."""
        return (self.derived.element, length) if stride == length else (self.derived.spaced(length, stride), 1)

    def _alltoall(self, places: Places, request: NDArray[np.uint8]) -> Calls:
        """Blocks between hosts of one DPU are copied, those for another DPU go to it in one message."""
        served, calls = self.crew.served, Calls()
        own = places.inputs[0][0][0], places.outputs[0][0][0]
        sends = [self._message(places.inputs, theirs, own[0], by_peer=False) for theirs in self.crew.layout.served]
        gets = [self._message(places.outputs, theirs, own[1], by_peer=True) for theirs in self.crew.layout.served]
        for row, source in zip(places.inputs, served, strict=True):
            for column, target in zip(places.outputs, served, strict=True):
                calls += self._copies(row[target : target + 1], column[source : source + 1])
        begin: CallSpec = (self.method, *self._described(own[0], sends), *self._described(own[1], gets))
        return [(*begin, self.crew.lane_comm, request), *calls]

    def _message(self, mine: Sequence[Blocks], theirs: Sequence[int], base: int, by_peer: bool) -> Any:
        """The type of what goes to or comes from the DPU of the hosts ``theirs``: by sender, then by receiver."""
        if theirs == self.crew.served:
            return None
        if by_peer:
            blocks = [row[other] for other in theirs for row in mine]
        else:
            blocks = [row[other] for row in mine for other in theirs]
        kept = [(at - base, length) for at, length in blocks if length]
        return self.derived.scattered(kept) if kept else None

    def _described(self, base: int, kinds: Sequence[Any]) -> tuple[Any, ...]:
        """Address, counts, displacements and types, as MPI_Ialltoallw takes them."""
        counts = np.array([kind is not None for kind in kinds], "i4")
        handles = self.derived.handles([kind or self.derived.element for kind in kinds])
        return base, counts, np.zeros(len(kinds), "i4"), handles
