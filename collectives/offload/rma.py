"""The direct transport by MPI one-sided calls: a DPU's worker gets the host's data and puts the result back.

The host says in a small message that there is work, and is told in one that it is done; MPI moves the data. Where the
network has no hardware for that, as TCP has not, the library does it on the host's processor whenever the host is
inside MPI: the host's compute then holds it up, which is what this transport shows.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives.offload.derived import Derived
from collectives.offload.exchange import Exchange
from collectives.offload.party import Calls, Crew
from collectives.offload.pieces import Plan, Task, pipeline
from collectives.offload.staging import Parcel, Staging, slots_free
from collectives.offload.waiting import cancelled
from microbench.buffers import allocate
from microbench.dtypes import counted
from microbench.engine import CallSpec, requests, statuses

_NEEDED = ("MPI_Rget", "MPI_Rput", "MPI_Win_flush", "MPI_Win_lock_all", "MPI_Win_sync")
_TRIAL_BYTES = 4096


class Window:
    """One rank's end of an MPI window: both buffers on a host, nothing on a worker. Collective.

    Every rank may reach every other until it is closed. ``second`` is where ``receive`` begins on a host, by rank.
    """

    def __init__(self, crew: Crew, sizes: tuple[int, int]) -> None:
        MPI = crew.job.engine.MPI  # noqa: N806 - the module's own name
        first = -(-max(sizes[0], 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        area = allocate(0 if crew.is_dpu else first + sizes[1], crew.job.pages)
        self.send: NDArray[np.uint8] = area[: sizes[0]]
        self.receive: NDArray[np.uint8] = area[first : first + sizes[1]]
        self.second: list[int] = crew.comm.allgather(first)
        self.win = MPI.Win.Create(area if area.size else None, 1, MPI.INFO_NULL, crew.comm)
        self.win.Set_errhandler(MPI.ERRORS_RETURN)
        self.win.Lock_all(MPI.MODE_NOCHECK)
        crew.comm.Barrier()

    def close(self) -> None:
        """End the access and give the window back. Collective."""
        self.win.Unlock_all()
        self.win.Free()


class RmaHost:
    """A host's side."""

    def __init__(self, crew: Crew, plan: Plan, window: Window, tag: int) -> None:
        engine, workers = crew.job.engine, [crew.partners[lane] for lane in plan.used]
        self.crew, self._win = crew, window.win
        self.done = np.zeros(len(workers), "i4")
        self._nothing, byte = allocate(0), engine.MPI.BYTE
        self._told, self.handed = requests(len(workers), engine.MPI), requests(len(workers), engine.MPI)
        self._begin: Calls = [
            ("MPI_Irecv", self._nothing, 0, byte, worker, tag + 1, crew.comm, slot)
            for worker, slot in zip(workers, self._told, strict=True)
        ]
        self._begin += [
            ("MPI_Isend", self._nothing, 0, byte, worker, tag, crew.comm, slot)
            for worker, slot in zip(workers, self.handed, strict=True)
        ]

    def begin(self) -> Calls:
        """Tell every worker that the data is there."""
        return list(self._begin)

    def probe(self) -> Calls:
        """Test once for each worker's word that it is done."""
        status = statuses(1)
        return [("MPI_Test", slot, self.done[place:], status) for place, slot in enumerate(self._told)]

    def wait(self, gentle: bool) -> Calls:
        """Until every worker has said so; what it put is then in memory."""
        return [*self.crew.waits(self._told, gentle), ("MPI_Win_sync", self._win)]

    def finished(self) -> list[bool]:
        """Of every lane in use whether the last probe found it done."""
        return [bool(flag) for flag in self.done]

    def close(self) -> None:
        """Nothing is left to give back."""


class RmaDpu:
    """A worker's side."""

    def __init__(
        self, crew: Crew, task: Task, plan: Plan, derived: Derived, staging: Staging, window: Window, tag: int
    ) -> None:
        self.crew, self._plan, self._derived, self._staging, self._window = crew, plan, derived, staging, window
        self._exchange = Exchange(crew, task, derived)
        MPI = crew.job.engine.MPI  # noqa: N806 - the module's own name
        hosts, slots = len(crew.served), max(1, plan.slots)
        self._got, self._put = ([requests(hosts, MPI) for _ in range(slots)] for _ in range(2))
        self._running = [requests(1, MPI) for _ in range(slots)]
        self._asked, self._told = requests(hosts, MPI), requests(hosts, MPI)
        self._ready = self._small("MPI_Irecv", tag, self._asked) if staging.pieces else []
        self._done = self._small("MPI_Isend", tag + 1, self._told)
        crew.job.engine.program(*self._ready).run(1)

    def _small(self, name: str, tag: int, slots: NDArray[np.uint8]) -> Calls:
        """A message without data from or to each host."""
        nothing, byte = allocate(0), self.crew.job.engine.MPI.BYTE
        ends = zip(self.crew.partners, slots, strict=True)
        return [(name, nothing, 0, byte, rank, tag, self.crew.comm, slot) for rank, slot in ends]

    def serve(self) -> Calls:
        """Once the hosts have asked: all pieces in turn, and when all has arrived, a word to each host."""
        if not self._staging.pieces:
            return []
        calls = self.crew.waits(self._asked, gentle=True)
        for index in slots_free(self._plan, self.crew.worker):
            calls += self._get(index)
        steps = {"take": self._take, "give": self._give, "free": self._free}
        for step, index in pipeline(len(self._staging.pieces), self._plan.slots):
            calls += steps[step](index)
        calls += [("MPI_Win_flush", rank, self._window.win) for rank in self.crew.partners]
        return [*calls, *self._done, *self.crew.waits(self._told, gentle=True), *self._ready]

    def _take(self, index: int) -> Calls:
        slot = index % self._plan.slots
        got = self.crew.waits(self._got[slot], gentle=True)
        return [*got, *self._exchange.begin(self._staging.places(index), self._running[slot])]

    def _give(self, index: int) -> Calls:
        slot = index % self._plan.slots
        ended = self.crew.waits(self._running[slot], gentle=True)
        parcels = zip(self._staging.outputs(index), self._put[slot], strict=True)
        puts = [self._access("MPI_Rput", p, self._window.second[p.rank], slot) for p, slot in parcels if p.count]
        return [*ended, *self._exchange.end(self._staging.places(index)), *puts]

    def _free(self, index: int) -> Calls:
        calls = self.crew.waits(self._put[index % self._plan.slots], gentle=True)
        following = index + self._plan.slots
        return calls + (self._get(following) if following < len(self._staging.pieces) else [])

    def _get(self, index: int) -> Calls:
        parcels = zip(self._staging.inputs(index), self._got[index % self._plan.slots], strict=False)
        return [self._access("MPI_Rget", parcel, 0, slot) for parcel, slot in parcels]

    def _access(self, name: str, parcel: Parcel, base: int, slot: Any) -> CallSpec:
        here = (parcel.address, parcel.count, self._derived.element)
        there = (parcel.rank, *self._derived.region(base, parcel.blocks))
        return (counted(self.crew.job.engine, name, parcel.count), *here, *there, self._window.win, slot)

    def close(self) -> None:
        """Withdraw the receives that no operation will use."""
        cancelled(self.crew.job.engine, self._ready)


def trial(crew: Crew) -> str:
    """Why one-sided calls do not work here, as this rank sees it, or nothing. Collective."""
    engine = crew.job.engine
    if missing := [name for name in _NEEDED if not engine.has(name)]:
        return f"this MPI library has no {', '.join(missing)}"
    try:
        window = Window(crew, (0, 0) if crew.is_dpu else (_TRIAL_BYTES, _TRIAL_BYTES))
    except engine.MPI.Exception as error:
        return f"this MPI makes no window over these hosts ({_line(error)})"
    window.send[:] = 1
    crew.comm.Barrier()
    fault = _moved(crew, window) if crew.is_dpu and crew.worker == 0 else ""
    crew.comm.Barrier()
    window.win.Sync()
    if not crew.is_dpu and not window.receive.all():
        fault = "what a DPU put into the window of this host did not arrive"
    window.close()
    return fault


def _moved(crew: Crew, window: Window) -> str:
    """Get and put a page of every host served, while the hosts wait inside MPI."""
    page, MPI = allocate(_TRIAL_BYTES), crew.job.engine.MPI  # noqa: N806 - the module's own name
    try:
        for rank in crew.partners:
            window.win.Rget(page, rank).Wait()
            target = (window.second[rank], page.size, MPI.BYTE)
            window.win.Rput(page, rank, target).Wait()
            window.win.Flush(rank)
    except MPI.Exception as error:
        return f"one-sided calls fail ({_line(error)})"
    return ""


def _line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0]
