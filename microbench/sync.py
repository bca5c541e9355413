"""How the ranks of a collective start an iteration together: parts of a program, none of them Python.

- ``barrier``: MPI_Barrier. Its exit skew is the MPI library's own, so it is no means to compare libraries.
- ``dissemination``: a barrier of messages, the same for all libraries: ceil(lg p) rounds, in round k a byte to rank
  r + 2^k and one from rank r - 2^k (Hensgen, Finkel and Manber 1988).
- ``round-time``: a dissemination barrier, then rank 0 broadcasts a time soon after, and every rank spins until its own
  clock shows it (Hunold and Carpen-Amarie, CLUSTER 2018). An iteration counts where every rank was early.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fabrics.errors import UserError
from microbench.buffers import allocate
from microbench.engine import CallSpec, durations, stamped, statuses

if TYPE_CHECKING:
    from microbench.clocksync import Clocks
    from microbench.job import Job

NAMES = ("auto", "barrier", "dissemination", "round-time")
_TAG = 54
_BROADCASTS, _SLACK = 10, 3.0
_TRIALS, _MOST_DOUBLINGS, _ENOUGH = 40, 8, 0.95
_CROWDED = "more busy ranks than cores, where spinning until an agreed time would delay others"
_LONGEST_SLACK_NS = 20_000_000
_UNSEEN = 0.01  # of an iteration
_MOST_WIDENINGS, _MOST_AT_ONCE = 5, 8

Run = Callable[[int], NDArray[np.int64]]
Again = Callable[[], NDArray[np.int64]]


class Sync(ABC):
    """What an iteration does before its first stamp; ``columns`` is how many columns that adds before the stamps'."""

    name: str
    columns = 0

    @abstractmethod
    def calls(self) -> list[CallSpec]:
        """The calls of this rank."""

    def settle(self, run: Run) -> None:  # noqa: B027 - most have nothing to do
        """Tune, all ranks together. ``run(n)`` runs n iterations of a program that begins with these calls.

        The calls alone will do, and cost little. Its columns are in ns, of shape (n, columns and more).
        """

    def widen(self, margins: NDArray[np.int64], again: Again) -> None:  # noqa: B027 - most have nothing to do
        """Tune again, all ranks together, by what a warm-up block showed; ``again`` runs another one.

        Margins are in ns, of shape (ranks, n) on rank 0, how early each rank was with the operation between starts.
        """

    def widen_unseen(self, each_ns: float) -> None:  # noqa: B027 - most have nothing to do
        """Tune again, all ranks together, by how long an iteration takes: too long for blocks that only show it."""

    def before_block(self) -> None:  # noqa: B027 - most have nothing to do
        """Bring what the program reads up to date; called before each block."""

    def method(self) -> dict[str, Any]:
        """What a record says of it, beside its name."""
        return {}


class Own(Sync):
    """Nothing: the operation itself keeps its ranks together, in a way that ``name`` tells."""

    def __init__(self, name: str) -> None:
        self.name = name

    def calls(self) -> list[CallSpec]:
        """No call."""
        return []


class Barrier(Sync):
    """The MPI library's own barrier."""

    name = "barrier"

    def __init__(self, job: Job, why: str = "") -> None:
        self._job, self._why = job, why

    def calls(self) -> list[CallSpec]:
        """One MPI_Barrier."""
        return [("MPI_Barrier", self._job.comm)]

    def method(self) -> dict[str, Any]:
        """Why it was chosen, where nobody asked for it."""
        return {"sync_reason": self._why} if self._why else {}


class Dissemination(Sync):
    """A barrier of point-to-point messages."""

    name = "dissemination"

    def __init__(self, job: Job) -> None:
        self._job = job
        self._send, self._receive, self._status = allocate(1), allocate(1), statuses(1)

    def calls(self) -> list[CallSpec]:
        """A MPI_Sendrecv per round; none for one rank."""
        job = self._job
        byte, rank, size = job.engine.MPI.BYTE, job.rank, job.size
        steps = [1 << k for k in range((size - 1).bit_length())]
        return [
            ("MPI_Sendrecv", self._send, 1, byte, (rank + step) % size, _TAG,
             self._receive, 1, byte, (rank - step) % size, _TAG, job.comm, self._status)
            for step in steps
        ]  # fmt: skip


class RoundTime(Sync):
    """A start at an agreed time. The program's first column is how early each rank was: 0 or less is late."""

    name = "round-time"
    columns = 1

    def __init__(self, job: Job, clocks: Clocks) -> None:
        self._job, self._clocks = job, clocks
        self._barrier = Dissemination(job)
        self._at = allocate(8).view("i8")
        self._clock = clocks.model.words()
        self._slack_ns = np.zeros(1, "i8")
        self._doublings, self._widenings, self._trial_valid = 0, 0, 0.0

    def calls(self) -> list[CallSpec]:
        """Barrier, deadline on rank 0, its broadcast, the wait."""
        first: list[CallSpec] = [("deadline", self._at, self._slack_ns)] if self._job.rank == 0 else []
        return [*self._barrier.calls(), *first, self._broadcast(), ("wait_until", self._at, self._clock)]

    def _broadcast(self) -> CallSpec:
        return ("MPI_Bcast", self._at, 8, self._job.engine.MPI.BYTE, 0, self._job.comm)

    def settle(self, run: Run) -> None:
        """Find the slack: three times a broadcast, doubled until 95 % of trial iterations are valid on all ranks.

        It is short, because the MPI library makes no progress meanwhile, and begins alike for all of a job's cases.
        Where neither eight doublings nor 20 ms are enough, ranks are late because they do not run; the fraction that
        stays valid tells.
        """
        for self._doublings in range(_MOST_DOUBLINGS + 1):
            self._slack_ns[0] = min(round(_SLACK * self._broadcast_ns * 2**self._doublings), _LONGEST_SLACK_NS)
            self.before_block()
            self._trial_valid = self._agreed_valid(run(_TRIALS)[:, 0])
            if self._trial_valid >= _ENOUGH or self._slack_ns[0] == _LONGEST_SLACK_NS:
                return

    def widen(self, margins: NDArray[np.int64], again: Again) -> None:
        """Add three times the usual lateness, where ranks are late after the operation: a large one cools the caches.

        Settling saw the calls alone. At most eight times the slack at once: a rank that did not run is no measure.
        """
        if margins.shape[1] < 2:  # nothing ran before it
            margins = again()
        for self._widenings in range(_MOST_WIDENINGS + 1):
            early_ns = int(self._job.decide(_usual(margins) if self._job.rank == 0 else 0))
            if early_ns > 0 or self._slack_ns[0] == _LONGEST_SLACK_NS or self._widenings == _MOST_WIDENINGS:
                return
            slack_ns = int(self._slack_ns[0])
            wider_ns = min(slack_ns + round(_SLACK * (1 - early_ns)), _MOST_AT_ONCE * slack_ns)
            self._slack_ns[0] = min(wider_ns, _LONGEST_SLACK_NS)
            margins = again()

    def widen_unseen(self, each_ns: float) -> None:
        """A hundredth of an iteration, where settling found less."""
        self._slack_ns[0] = max(int(self._slack_ns[0]), min(round(_UNSEEN * each_ns), _LONGEST_SLACK_NS))

    @cached_property
    def _broadcast_ns(self) -> float:
        """What a broadcast usually takes on the slowest rank; measured once, by all ranks together."""
        timed = self._job.engine.program(*self._barrier.calls(), *stamped([self._broadcast()]))
        timed.run(_BROADCASTS)  # warm-up
        return self._job.max(float(np.median(durations(timed.run(_BROADCASTS)))))

    def _agreed_valid(self, margins: NDArray[np.int64]) -> float:
        """The share of iterations in which the latest rank was early, known to all."""
        least = np.zeros(margins.size, "i8")
        self._job.comm.Allreduce(np.ascontiguousarray(margins), least, op=self._job.engine.MPI.MIN)
        return float(valid(least[np.newaxis]).mean())

    def before_block(self) -> None:
        """Give the program the present model of this rank's clock."""
        self._clock[:] = self._clocks.model.words()

    def method(self) -> dict[str, Any]:
        """The slack in s, how often it was doubled and then widened, and the share of trials valid with the doubled."""
        return {
            "slack_s": float(self._slack_ns[0]) * 1e-9,
            "slack_doublings": self._doublings,
            "slack_widenings": self._widenings,
            "trial_valid": self._trial_valid,
        }


def valid(margins: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which iterations started in time: every rank was early. ``margins`` in ns, of shape (ranks, n)."""
    return np.asarray((margins > 0).all(axis=0))


def _usual(margins: NDArray[np.int64]) -> int:
    """The median of the latest rank's margin in ns, of the iterations that follow another one in their block."""
    return int(np.median(margins[:, 1:].min(axis=0)))


def choose(job: Job, name: str = "auto", why_barrier: str = "") -> Sync:
    """The way of that name; ``auto`` is round-time where every busy rank has a core of its own, else barrier.

    It is a barrier too where the caller knows a reason; the record tells it, or that ranks share cores.
    Called by all ranks together: round-time, one for the whole job, needs its clocks. UserError for another name.
    """
    if name not in NAMES:
        raise UserError(f"unknown synchronisation {name!r}: one of {', '.join(NAMES)}")
    if name == "auto":
        why = why_barrier or (_CROWDED if job.oversubscribed else "")
        if why:
            return Barrier(job, why)
        name = RoundTime.name
    if name == RoundTime.name:
        return job.round_time
    return Barrier(job) if name == Barrier.name else Dissemination(job)
