"""Waiting without burning the core, so that emulated DPUs leave it to their neighbours.

MPI libraries wait busily. Over TCP, UCX keeps its sockets in epoll sets, and an epoll descriptor may itself be
polled: a rank that tests a few times and then sleeps in ``poll`` on all of the process's epoll descriptors wakes
when a message comes. That cannot see shared memory, nor RDMA. So it is chosen only where DPUs are emulated, and
only after every rank has seen it work; elsewhere ranks spin, as the cores of a real DPU are its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fabrics.errors import UserError
from microbench.engine import CallSpec, requests, statuses

if TYPE_CHECKING:
    from microbench.engine import Engine
    from microbench.job import Job

Strategy = Literal["poll", "spin"]
CAP_MS = 5
_TESTS = 4
_PATIENCE_MS = 400
_IDLE_NS = 60_000_000
_LATEST_WAKE_S = 0.1  # a quarter of the patience
_MOST_CPU = 0.25
_TAG = 31
_POLLFD = np.dtype([("fd", "i4"), ("events", "i2"), ("revents", "i2")])
_POLLIN = 1


def epoll_descriptors(folder: Path = Path("/proc/self/fd")) -> list[int]:
    """The epoll descriptors that this process holds."""
    found = []
    for link in folder.iterdir():
        try:
            if str(link.readlink()) == "anon_inode:[eventpoll]":
                found.append(int(link.name))
        except OSError:  # the descriptor of this very listing has gone
            continue
    return sorted(found)


@dataclass(frozen=True)
class Trial:
    """What one rank saw of the wake-up.

    ``wake_s`` runs from the sending of a message to the end of the wait for it; ``idle_cpu_share`` is the
    processor's share of a wait for nothing; ``descriptors`` were polled.
    """

    wake_s: float
    idle_cpu_share: float
    descriptors: int

    @property
    def passed(self) -> bool:
        """Whether the message, and nothing else, woke the rank."""
        return self.descriptors > 0 and self.wake_s < _LATEST_WAKE_S and self.idle_cpu_share < _MOST_CPU


@dataclass(frozen=True)
class Waiting:
    """How this rank waits: ``descriptors`` is an array of ``struct pollfd``, empty where it spins."""

    strategy: Strategy
    why: str
    descriptors: NDArray[Any]
    trials: tuple[Trial, ...] = ()

    def call(self, request: Any, status: NDArray[np.int64], cap_ms: int = CAP_MS) -> CallSpec:
        """The call that waits for ``request`` (its address, or a row of requests)."""
        polled = self.descriptors
        return ("test_until", request, status, _TESTS, polled, polled.size, cap_ms if polled.size else 0)

    def as_dict(self) -> dict[str, Any]:
        """What the record keeps."""
        kept: dict[str, Any] = {"strategy": self.strategy, "why": self.why}
        if self.strategy == "poll":
            kept |= {"tests_before_poll": _TESTS, "cap_ms": CAP_MS}
        if self.trials:
            kept["selftest"] = {
                "passed": [trial.passed for trial in self.trials],
                "wake_us": [round(trial.wake_s * 1e6, 1) for trial in self.trials],
                "idle_cpu_share": [round(trial.idle_cpu_share, 4) for trial in self.trials],
                "descriptors": [trial.descriptors for trial in self.trials],
            }
        return kept


def spin(why: str, trials: tuple[Trial, ...] = ()) -> Waiting:
    """Testing without a pause."""
    return Waiting("spin", why, np.zeros(0, _POLLFD), trials)


def choose(job: Job, wanted: str = "auto") -> Waiting:
    """How the ranks of this job shall wait; the same on all. Collective.

    ``poll`` is tried where a rank has no core to spare, emulated or not. Raises UserError for what is none of these.
    """
    if wanted not in ("auto", "poll", "spin"):
        raise UserError(f"waiting {wanted!r}: poll, auto or spin")
    if wanted == "spin":
        return spin("asked for")
    if wanted == "auto" and not job.fabric.emulated:
        return spin("the fabric is real: a DPU's cores are its own")
    found = epoll_descriptors()
    polled = np.array([(fd, _POLLIN, 0) for fd in found], _POLLFD)
    trials = tuple(job.comm.allgather(_try(job, Waiting("poll", "trial", polled))))
    if all(trial.passed for trial in trials):
        why = "DPUs are emulated" if job.fabric.emulated else "ranks have no core to spare"
        return Waiting("poll", f"{why}, and every rank was woken by a message", polled, trials)
    failed = [rank for rank, trial in enumerate(trials) if not trial.passed]
    return spin(f"messages do not wake ranks {', '.join(map(str, failed))} from poll", trials)


def _try(job: Job, waiting: Waiting) -> Trial:
    """Every rank in turn is sent one message while it sleeps with a cap far beyond the time that it takes.

    Ranks 1 and up wait for rank 0 at the same time, then rank 0 for rank 1. The message holds the sender's
    clock: emulated hosts share one.
    """
    others = list(range(1, job.size))
    _connect(job, others)
    if job.rank == 0:
        _send_later(job, others)
    mine = _receive(job, waiting, 0) if job.rank else None
    job.comm.Barrier()
    if job.rank == 1:
        _send_later(job, [0])
    return mine or _receive(job, waiting, 1)


def _connect(job: Job, others: list[int]) -> None:
    """Exchange a message between rank 0 and each other, for a first one brings connections with it."""
    token = np.zeros(1, "i8")
    for peer in others if job.rank == 0 else [0]:
        job.comm.Sendrecv(token, peer, _TAG, np.zeros(1, "i8"), peer, _TAG)
    job.comm.Barrier()


def _send_later(job: Job, peers: list[int]) -> None:
    time.sleep(_IDLE_NS * 1e-9)
    for peer in peers:
        job.comm.Send(np.array([time.monotonic_ns()], "i8"), peer, _TAG)


def _receive(job: Job, waiting: Waiting, source: int) -> Trial:
    stamp, MPI = np.zeros(1, "i8"), job.engine.MPI  # noqa: N806 - the module's own name
    slot, status = requests(1, MPI), statuses(1)
    size = waiting.descriptors.size
    wait = ("test_until", slot, status, _TESTS, waiting.descriptors, size, _PATIENCE_MS)
    program = job.engine.program(("MPI_Irecv", stamp, 8, MPI.BYTE, source, _TAG, job.comm, slot), wait)
    start, cpu = time.monotonic(), time.process_time()
    program.run(1)
    cpu_s, end_ns = time.process_time() - cpu, time.monotonic_ns()
    share = cpu_s / max(end_ns * 1e-9 - start, 1e-9)
    return Trial((end_ns - int(stamp[0])) * 1e-9, share, size)


class Quiet:
    """Agreement of all ranks that sleeps while it waits. Every method is collective."""

    def __init__(self, job: Job, waiting: Waiting) -> None:
        self.job, self.waiting, self._status = job, waiting, statuses(1)

    def _finish(self, request: Any) -> None:
        address = self.job.engine.MPI._addressof(request)
        self.job.engine.program(self.waiting.call(address, self._status)).run(1)

    def barrier(self) -> None:
        """All wait for all."""
        self._finish(self.job.comm.Ibarrier())

    def decide(self, *values: float) -> list[float]:
        """Rank 0's numbers, on every rank; the others say how many."""
        agreed = np.array(values, "f8")
        self._finish(self.job.comm.Ibcast(agreed, root=0))
        return [float(value) for value in agreed]

    def sum(self, value: int) -> int:
        """The sum of an integer over all ranks."""
        mine, total = np.array([value], "i8"), np.zeros(1, "i8")
        self._finish(self.job.comm.Iallreduce(mine, total))
        return int(total[0])

    def gather(self, row: NDArray[np.float64]) -> NDArray[np.float64]:
        """Every rank's row of equal length, on every rank."""
        rows = np.zeros((self.job.size, row.size))
        self._finish(self.job.comm.Iallgather(np.ascontiguousarray(row, "f8"), rows))
        return rows


def cancelled(engine: Engine, receives: Iterable[CallSpec | str]) -> None:
    """Withdraw receives that were posted by these calls, the last argument of which is their request."""
    for call in receives:
        engine.program(("MPI_Cancel", call[-1]), ("MPI_Wait", call[-1], statuses(1))).run(1)
