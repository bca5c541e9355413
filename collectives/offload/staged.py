"""The staged transport: messages from the host to the DPU, and back.

A host has finished its sends when it has posted: what is left, the DPUs do. A worker has its receives ready before
the hosts post, so that several channels may be posted one after the other. Of pieces that its memory does not hold at
once, the host sends one when the result of an earlier one is back: none waits in the DPU's MPI library.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from collectives.offload.derived import Derived
from collectives.offload.exchange import Exchange
from collectives.offload.party import Calls, Crew
from collectives.offload.pieces import Plan, Task, pipeline
from collectives.offload.staging import Parcel, Staging, slots_free
from collectives.offload.waiting import cancelled
from microbench.dtypes import counted
from microbench.engine import CallSpec, requests, statuses


class StagedHost:
    """A host's side. ``done`` holds, by lane in use, whether the last probe found its results there."""

    def __init__(self, crew: Crew, task: Task, plan: Plan, derived: Derived, send: Any, receive: Any, tag: int) -> None:
        self.crew, self.plan = crew, plan
        engine, workers = crew.job.engine, crew.partners
        self._results = {lane: requests(len(plan.lanes[lane]), engine.MPI) for lane in plan.used}
        self.handed = requests(sum(bool(task.sends(crew.host, piece)) for _, piece in plan.order), engine.MPI)
        self.done = np.zeros(len(plan.used), "i4")
        receives, sends, slots = Calls(), Calls(), iter(self.handed)
        for index, lane in ((index, lane) for index in range(len(plan.lanes[0])) for lane in plan.used):
            if index >= len(plan.lanes[lane]):
                continue
            piece, end = plan.lanes[lane][index], (workers[lane], tag, crew.comm)
            region = derived.region(receive.ctypes.data, task.receives(crew.host, piece))
            name = counted(engine, "MPI_Irecv", region[1])
            receives.append((name, *region, end[0], tag + 1, crew.comm, self._results[lane][index]))
            if blocks := task.sends(crew.host, piece):
                sends += self._room(lane, index - plan.slots)
                region = derived.region(send.ctypes.data, blocks)
                sends.append((counted(engine, "MPI_Isend", region[1]), *region, *end, next(slots)))
        self._begin = [*receives, *sends]

    def _room(self, lane: int, index: int) -> Calls:
        """Wait until the worker has handed out a piece, whose place in its memory the next one then takes."""
        return self.crew.waits(self._results[lane][index : index + 1], not self.crew.is_busy) if index >= 0 else []

    def begin(self) -> Calls:
        """Be ready for the results, and hand the data over; ``handed`` are the requests of what is on its way."""
        return list(self._begin)

    def probe(self) -> Calls:
        """Test the results of every lane once."""
        return [
            ("MPI_Testall", len(slots), slots, self.done[place:], statuses(len(slots)))
            for place, slots in enumerate(self._results.values())
        ]

    def wait(self, gentle: bool) -> Calls:
        """Until the results are there."""
        return [call for slots in self._results.values() for call in self.crew.waits(slots, gentle)]

    def finished(self) -> list[bool]:
        """Of every lane in use whether its results are there; after a probe."""
        return [bool(flag) for flag in self.done]

    def close(self) -> None:
        """Nothing is left to give back."""


class StagedDpu:
    """A worker's side."""

    def __init__(self, crew: Crew, task: Task, plan: Plan, derived: Derived, staging: Staging, tag: int) -> None:
        self.crew, self.plan, self.staging, self._tag = crew, plan, staging, tag
        self._element = derived.element
        self._exchange = Exchange(crew, task, derived)
        self.method = self._exchange.method
        MPI = crew.job.engine.MPI  # noqa: N806 - the module's own name
        hosts, slots = len(crew.served), max(1, plan.slots)
        self._arrived = [requests(hosts, MPI) for _ in range(slots)]
        self._handed = [requests(hosts, MPI) for _ in range(slots)]
        self._running = [requests(1, MPI) for _ in range(slots)]
        self._ready = [call for index in slots_free(plan, crew.worker) for call in self._receive(index)]
        crew.job.engine.program(*self._ready).run(1)

    def serve(self) -> Calls:
        """All pieces in turn; then receives are posted for the next operation."""
        steps = {"take": self._take, "give": self._give, "free": self._free}
        order = pipeline(len(self.staging.pieces), max(1, self.plan.slots))
        return [*(call for step, index in order for call in steps[step](index)), *self._ready]

    def _take(self, index: int) -> Calls:
        slot = index % self.plan.slots
        arrived = self.crew.waits(self._arrived[slot], gentle=True)
        return [*arrived, *self._exchange.begin(self.staging.places(index), self._running[slot])]

    def _give(self, index: int) -> Calls:
        slot = index % self.plan.slots
        ended = self.crew.waits(self._running[slot], gentle=True)
        parcels = zip(self.staging.outputs(index), self._handed[slot], strict=True)
        sends = [self._message("MPI_Isend", parcel, self._tag + 1, request) for parcel, request in parcels]
        return [*ended, *self._exchange.end(self.staging.places(index)), *sends]

    def _free(self, index: int) -> Calls:
        calls = self.crew.waits(self._handed[index % self.plan.slots], gentle=True)
        following = index + self.plan.slots
        return calls + (self._receive(following) if following < len(self.staging.pieces) else [])

    def _receive(self, index: int) -> Calls:
        parcels = zip(self.staging.inputs(index), self._arrived[index % self.plan.slots], strict=False)
        return [self._message("MPI_Irecv", parcel, self._tag, request) for parcel, request in parcels]

    def _message(self, name: str, parcel: Parcel, tag: int, request: Any) -> CallSpec:
        name = counted(self.crew.job.engine, name, parcel.count)
        return (name, parcel.address, parcel.count, self._element, parcel.rank, tag, self.crew.comm, request)

    def close(self) -> None:
        """Withdraw the receives that no operation will use."""
        cancelled(self.crew.job.engine, self._ready)
