"""Learning the clocks of a job's ranks by ping-pongs, and measuring them again.

Processes with one CLOCK_MONOTONIC share one model; the first of each such group learns for it, in HCA3's order
(Hunold and Carpen-Amarie, CLUSTER 2018), from a rank that already knows the time of rank 0. Ping-pongs are programs
of the native loop: no Python runs between a stamp and its message. Ranks that wait for their turn sleep, so that they
leave the cores to those that measure.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from microbench.buffers import allocate
from microbench.clocks import IDENTITY, ClockModel, Point, hca3_rounds, model_of, observe, remembered
from microbench.engine import Program, statuses

if TYPE_CHECKING:
    from microbench.job import Job

_TAG = 53
_LONGEST_NS = 300_000_000  # of learning one clock
_LOOK_S = 0.0001
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_OFFSETS = Path("/proc/self/timens_offsets")  # not there in kernels without time namespaces


@dataclass(frozen=True)
class _Plan:
    """``points`` of so many ping-pongs; fewer once one's bound is within ``enough`` times the best so far."""

    points: int
    pingpongs: int
    gap_s: float
    enough: float


_LEARN = _Plan(points=5, pingpongs=100, gap_s=0.02, enough=0.0)
_AGAIN = _Plan(points=4, pingpongs=20, gap_s=0.0, enough=1.1)


def same_clock_key() -> str:
    """What two processes have in common when they read one CLOCK_MONOTONIC: host, boot and time namespace."""
    offsets = _OFFSETS.read_text("ascii").split() if _OFFSETS.exists() else []
    return " ".join((socket.gethostname(), _BOOT_ID.read_text("ascii").strip(), *offsets))


class Clocks:
    """The clock of this rank against that of rank 0. All methods but ``model`` are called by every rank together."""

    def __init__(self, job: Job, keys: Sequence[str]) -> None:
        self._job = job
        first: dict[str, int] = {}
        self.leaders = tuple(dict.fromkeys(first.setdefault(key, rank) for rank, key in enumerate(keys)))
        self._group = [rank for rank, key in enumerate(keys) if key == keys[job.rank]]
        self._points: list[Point] = []
        self._programs: dict[int, Program] = {}
        self._discrepancy_ns = 0.0
        self.model = IDENTITY
        self.learned_s = 0.0

    @classmethod
    def learn(cls, job: Job, key: str = "") -> Clocks:
        """Learn every clock; ``key`` names this rank's, :func:`same_clock_key` where it is empty.

        Of one clock for all ranks there is nothing to learn.
        """
        clocks = cls(job, job.comm.allgather(key or same_clock_key()))
        start = time.monotonic()
        clocks._walk(_LEARN)
        clocks.learned_s = time.monotonic() - start
        return clocks

    def measure(self) -> tuple[float, float]:
        """Measure this rank's offset again: how far it is from what the model predicted, and its bound, in ns.

        The model is then anchored at the new offset, unless that is known worse than the old one foretells it, and its
        drift is what all points so far tell.
        """
        self._walk(_AGAIN)
        return self._discrepancy_ns, self.model.bound_ns

    def gather(self) -> list[ClockModel]:
        """Every rank's model on rank 0, nothing elsewhere."""
        if len(self.leaders) == 1:
            return [IDENTITY] * self._job.size if self._job.rank == 0 else []
        return self._job.comm.gather(self.model, root=0) or []

    def _walk(self, plan: _Plan) -> None:
        """Down the tree: each leader learns once, then teaches; the others of its group are told."""
        if len(self.leaders) == 1:
            return
        comm, rank = self._job.comm, self._job.rank
        for teacher, learner in (pair for pairs in hca3_rounds(len(self.leaders)) for pair in pairs):
            if rank == self.leaders[learner]:
                self._learn(self.leaders[teacher], plan)
            elif rank == self.leaders[teacher]:
                self._teach(self.leaders[learner])
        first, *others = self._group
        if rank == first:
            for other in others:
                comm.send((self.model, self._discrepancy_ns), dest=other, tag=_TAG)
        else:
            self._await(first)
            self.model, self._discrepancy_ns = comm.recv(source=first, tag=_TAG)
        done = comm.Ibarrier()
        while not done.Test():  # who goes on early would disturb those that still measure
            time.sleep(_LOOK_S)

    def _await(self, source: int) -> None:
        """Sleep until a message of ours is there."""
        while not self._job.comm.iprobe(source=source, tag=_TAG):
            time.sleep(_LOOK_S)

    def _told(self, source: int, n: int = 1) -> NDArray[np.int64]:
        """``n`` integers from another rank."""
        got = np.zeros(n, "i8")
        self._await(source)
        self._job.comm.Recv(got, source=source, tag=_TAG)
        return got

    def _tell(self, dest: int, words: NDArray[np.int64]) -> None:
        self._job.comm.Send(words, dest=dest, tag=_TAG)

    def _teach(self, learner: int) -> None:
        """Answer ping-pongs, as many as the learner asks for, and tell their global times, until it asks for none."""
        self._tell(learner, np.array([math.ceil(self.model.bound_ns)], "i8"))
        while pingpongs := int(self._told(learner)[0]):
            self._tell(learner, self.model.to_global(self._pingpong(learner, asks=False).run(pingpongs)[:, 0]))

    def _learn(self, teacher: int, plan: _Plan) -> None:
        """Points apart in time, and the model that they make."""
        teachers_bound_ns = int(self._told(teacher)[0])
        enough_ns = plan.enough * min((point.bound_ns for point in self._points), default=0.0)
        new: list[Point] = []
        while not new or not self._done(new, plan.points, enough_ns):
            self._tell(teacher, np.array([plan.pingpongs], "i8"))
            times = self._pingpong(teacher, asks=True).run(plan.pingpongs)
            seen = observe(self.model, times[:, 0], self._told(teacher, plan.pingpongs), times[:, 1])
            new.append(replace(seen, bound_ns=seen.bound_ns + teachers_bound_ns))
            time.sleep(plan.gap_s)
        self._tell(teacher, np.zeros(1, "i8"))
        best = min(new, key=lambda point: point.bound_ns)
        self._discrepancy_ns = float(best.offset_ns - self.model.ahead(best.at_local_ns))
        before = self.model if self._points else None
        self._points = remembered([*self._points, *new])
        self.model = model_of(self._points, new, before)

    @staticmethod
    def _done(new: Sequence[Point], most: int, enough_ns: float) -> bool:
        took_ns = new[-1].at_local_ns - new[0].at_local_ns
        return len(new) == most or new[-1].bound_ns <= enough_ns or took_ns > _LONGEST_NS

    def _pingpong(self, peer: int, asks: bool) -> Program:
        """Empty messages there and back; the side that asks stamps around them, the other in between."""
        if peer not in self._programs:
            comm, byte, nothing = self._job.comm, self._job.engine.MPI.BYTE, allocate(8)
            send = ("MPI_Send", nothing, 0, byte, peer, _TAG, comm)
            receive = ("MPI_Recv", nothing, 0, byte, peer, _TAG, comm, statuses(1))
            calls = ("stamp", send, receive, "stamp") if asks else (receive, "stamp", send)
            self._programs[peer] = self._job.engine.program(*calls)
        return self._programs[peer]
