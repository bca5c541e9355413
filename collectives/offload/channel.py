"""One collective on fixed buffers that the DPUs do, posted any number of times: the engine's front.

All of it is calls of the native loop (:mod:`microbench.engine`). A host posts, computes, and waits; a DPU's worker
serves. Between :meth:`Channel.post` and the end of :meth:`Channel.wait` the buffers belong to the DPUs.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from collectives.offload import rma, window
from collectives.offload.derived import Derived
from collectives.offload.exchange import METHODS
from collectives.offload.party import Calls, Crew
from collectives.offload.pieces import OPERATIONS, Task, planned
from collectives.offload.staged import StagedDpu, StagedHost
from collectives.offload.staging import Staging
from fabrics.errors import UserError
from microbench import check
from microbench.buffers import allocate
from microbench.dtypes import DType
from microbench.engine import statuses
from microbench.job import lowest_fault

__all__ = ["OPERATIONS", "TRANSPORTS", "Channel", "why_not"]

TRANSPORTS = ("staged", "window", "rma")
_TAGS = 2  # of a channel: one towards the DPU, one towards the host
_NAMES = {
    "staged": "messages to the DPU and back",
    "window": "the host's own buffers, mapped by the DPU: a model of cross-memory access (GVMI, XPMEM)",
    "rma": "MPI one-sided: the DPU gets from and puts into the host's buffers",
}


class HostSide(Protocol):
    """What a transport does on a host; ``handed`` are the requests, one a row, of what ``begin`` sends."""

    handed: NDArray[np.uint8]

    def begin(self) -> Calls:
        """Hand over."""

    def probe(self) -> Calls:
        """One look."""

    def wait(self, gentle: bool) -> Calls:
        """Until it is done."""

    def finished(self) -> list[bool]:
        """Of every lane in use whether it is done; after a probe."""

    def close(self) -> None:
        """Give back."""


class DpuSide(Protocol):
    """What a transport does on a DPU's worker."""

    def serve(self) -> Calls:
        """One operation."""

    def close(self) -> None:
        """Give back."""


class Channel:
    """One operation on fixed buffers by one transport; made, and closed, by all ranks together.

    ``send`` and ``receive`` are a host's operands, as :mod:`collectives.operands` lays them out for MPI's own, out of
    place: of a broadcast the root's ``send`` and the others' ``receive`` count. ``tally`` on a worker counts the
    operations that it finished, natively. Raises UserError for an unknown operation or transport, CannotRun where
    ``memory_bytes`` of a DPU hold nothing.
    """

    def __init__(
        self,
        crew: Crew,
        operation: str,
        kind: DType,
        count: int,
        transport: str,
        *,
        chunk_bytes: int | None = None,
        root: int = 0,
        memory_bytes: int | None = None,
    ) -> None:
        _known("operation", operation, OPERATIONS)
        _known("transport", transport, TRANSPORTS)
        layout = crew.layout
        if not 0 <= root < len(layout.hosts):
            raise UserError(f"root {root}: one of the {len(layout.hosts)} hosts, from 0")
        self.crew, self.transport, self.chunk_bytes = crew, transport, chunk_bytes
        self.task = Task(operation, count, len(layout.hosts), root)
        bound = None if transport == "window" else memory_bytes
        self.plan = planned(self.task, layout.workers, layout.most_served, kind.nbytes, chunk_bytes, bound)
        self.tally = np.zeros(1, "i8")
        self._derived = Derived(crew.job.engine.MPI, kind)
        sizes = (0, 0) if crew.is_dpu else (count * kind.nbytes, self.task.received * kind.nbytes)
        self.staging: Staging | None = None
        self._window: window.Window | rma.Window | None = None
        self._open(sizes, kind, crew.tags(_TAGS))

    def _open(self, sizes: tuple[int, int], kind: DType, tag: int) -> None:
        crew = self.crew
        if self.transport == "window":
            self._window = window.Window(crew, self.plan, sizes)
            self.send, self.receive = self._window.send, self._window.receive
        elif self.transport == "rma":
            self._window = rma.Window(crew, sizes)
            self.send, self.receive = self._window.send, self._window.receive
        else:
            self.send, self.receive = (allocate(size, crew.job.pages) for size in sizes)
        self._side: Any = self._dpu_side(tag, kind) if crew.is_dpu else self._host_side(tag)

    def _host_side(self, tag: int) -> HostSide:
        if isinstance(self._window, window.Window):
            return window.WindowHost(self.plan, self._window)
        if isinstance(self._window, rma.Window):
            return rma.RmaHost(self.crew, self.plan, self._window, tag)
        return StagedHost(self.crew, self.task, self.plan, self._derived, self.send, self.receive, tag)

    def _dpu_side(self, tag: int, kind: DType) -> DpuSide:
        crew, task, plan, derived = self.crew, self.task, self.plan, self._derived
        if isinstance(self._window, window.Window):
            return window.WindowDpu(crew, task, plan, derived, self._window)
        self.staging = Staging(crew, task, plan, kind.nbytes)
        if isinstance(self._window, rma.Window):
            return rma.RmaDpu(crew, task, plan, derived, self.staging, self._window, tag)
        return StagedDpu(crew, task, plan, derived, self.staging, tag)

    def post(self) -> Calls:
        """Host: hand over; nothing is left that needs the host's processor, but for RMA without hardware."""
        return [*self.begin(), *self.crew.waits(self._side.handed, gentle=not self.crew.is_busy)]

    def begin(self) -> Calls:
        """Host: the first part of ``post``, after which what it sends may still be on its way."""
        return list(self._side.begin())

    def handed(self, flag: NDArray[np.int32]) -> Calls:
        """Host: look once, and write to ``flag`` whether all that was sent has gone."""
        sent = self._side.handed
        return [("MPI_Testall", len(sent), sent, flag, statuses(max(1, len(sent))))]

    @property
    def answers(self) -> list[int]:
        """Host: pipes that become readable, of each lane in use, when it is done; none but through a window."""
        return list(getattr(self._side, "answers", []))

    def probe(self) -> Calls:
        """Host: look once whether it is done."""
        return list(self._side.probe())

    def wait(self, gentle: bool = True) -> Calls:
        """Host: until the result is in ``receive``; by the waiting strategy, or busily."""
        return list(self._side.wait(gentle))

    def finished(self) -> list[bool]:
        """Host: of each of ``plan.used`` lanes whether it is done, as the last probe saw it."""
        return list(self._side.finished())

    def serve(self) -> Calls:
        """DPU worker: all of one operation, and one more in the tally."""
        return [*self._side.serve(), ("stream", self.tally, 1, 1)]

    def poison(self) -> None:
        """Spoil what an operation writes, on hosts and in the DPUs' staging; none may be under way."""
        check.poison(self.receive)
        if self.staging is not None:
            self.staging.poison()

    def method(self) -> dict[str, Any]:
        """How the operation is done, for a record."""
        layout = self.crew.layout
        staged = {} if self.transport == "window" else {
            "slots": self.plan.slots,
            "staging_bytes": self.plan.slots * self.plan.slot_bytes * layout.workers,
        }  # fmt: skip
        return {
            "transport": self.transport,
            "through": _NAMES[self.transport],
            "among_dpus": METHODS[self.task.operation],
            "chunk_bytes": self.chunk_bytes,
            "pieces": sum(map(len, self.plan.lanes)),
            "piece_bytes": self.plan.longest * self.task.rows * self._derived.each,
            "workers": layout.workers,
            "hosts_per_dpu": [len(hosts) for hosts in layout.served],
            **staged,
        }

    def close(self) -> None:
        """Give back what was made; no operation may be under way. Collective."""
        self._side.close()
        if self._window is not None:
            self._window.close()
        self._derived.close()


def _known(what: str, name: str, names: tuple[str, ...]) -> None:
    if name not in names:
        raise UserError(f"unknown {what} {name!r}: one of {', '.join(names)}")


def why_not(crew: Crew, transport: str) -> str:
    """Why this transport cannot be used here, or nothing; the same on all ranks. Collective."""
    _known("transport", transport, TRANSPORTS)
    if transport == "staged":
        return ""
    return window.trial(crew) if transport == "window" else lowest_fault(crew.comm, rma.trial(crew))
