"""What one rank runs in each step, and what the columns of its stamps mean.

A host's iteration with compute: it meets the others, is late by what was drawn for it, and then, each between two
stamps, posts, works (its probes timed apart) and waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from collectives.overlap import schedule
from collectives.overlap.figures import CPU, WORK
from collectives.overlap.kernels import Kernel, Nap, Registers, Work
from collectives.overlap.options import ACCEL, PROBES
from collectives.overlap.ranks import Calls, Ranks

if TYPE_CHECKING:
    from collectives.overlap.modes import Mode
    from microbench.engine import Program

Times = NDArray[np.int64]

_SPENT, _STAMP = "spent", "stamp"


@dataclass(frozen=True)
class Timed:
    """A program and what lies between its columns: a part's name, or nothing, for each gap between two of them."""

    program: Program
    gaps: tuple[str, ...] = ()

    def spans(self, stamps: Times) -> dict[str, Times]:
        """Times in ns by part, each of shape (iterations,): ``""`` is the whole, ``test_longest`` the longest probe.

        The processor's time is between the first column and the last, where a processor's clock was read.
        """
        if not self.gaps:
            return {}
        found: dict[str, Times] = {}
        first, last = (1, -2) if self.gaps[0] == CPU else (0, -1)
        if first:
            found[CPU] = stamps[:, -1] - stamps[:, 0]
        found[""] = stamps[:, last] - stamps[:, first]
        steps = np.diff(stamps, axis=1)
        for part in dict.fromkeys(gap for gap in self.gaps if gap and gap != CPU):
            columns = [i for i, gap in enumerate(self.gaps) if gap == part]
            found[part] = steps[:, columns].sum(axis=1)
            if part == "test":
                found["test_longest"] = steps[:, columns].max(axis=1)
        return found


class Programs:
    """Builds the steps of a case on one rank.

    ``lag`` is the address of the next delay, which :class:`collectives.overlap.desk.Desk` sets before each block; None
    where no host is late.
    """

    def __init__(self, ranks: Ranks, modes: Mapping[str, Mode], kernel: Kernel, lag: NDArray[np.uint64] | None) -> None:
        self._ranks, self._modes, self._kernel, self._lag = ranks, modes, kernel, lag

    def of(self, step: str, work: Work) -> Timed | None:
        """The program of a step, None where this rank has no part in it."""
        if step == schedule.COMPUTE:
            return self._compute(work)
        mode = self._modes[schedule.mode(step)]
        if self._ranks.here is None:
            calls = mode.serve()
            return Timed(self._program(calls)) if calls else None
        if not schedule.overlapped(step):
            return self._timed(mode, [("post", mode.post()), ("wait", mode.wait())], cpu=False)
        return self._timed(
            mode, [("post", mode.post()), *self._work(step, work, mode), ("wait", mode.wait())], cpu=True
        )

    def _program(self, calls: Calls) -> Program:
        return self._ranks.job.engine.program(*calls)

    def _timed(self, mode: Mode, parts: list[tuple[str, Calls]], cpu: bool) -> Timed:
        late: Calls = [("lag", self._lag)] if self._lag is not None else []
        return self._assembled([*mode.start(), *late], parts, cpu)

    def _assembled(self, before: Calls, parts: list[tuple[str, Calls]], cpu: bool) -> Timed:
        """Processor clock, stamp, a part and a stamp each, processor clock."""
        clock: Calls = [_SPENT] if cpu else []
        calls: Calls = [*before, *clock, _STAMP]
        for _, part in parts:
            calls += [*part, _STAMP]
        ends = [CPU] if cpu else []
        return Timed(self._program([*calls, *clock]), (*ends, *(name for name, _ in parts), *ends))

    def _compute(self, work: Work) -> Timed | None:
        """The compute alone: of those hosts whose times count, at the same time."""
        ranks = self._ranks
        if ranks.here is None or ranks.stands_in:
            return None
        together: Calls = [("MPI_Barrier", ranks.comm)] if len(ranks.reported) > 1 else []
        kernel, steps = self._of_host(schedule.COMPUTE, work)
        return self._assembled(together, [(WORK, kernel.calls(steps))], cpu=True)

    def _of_host(self, step: str, work: Work) -> tuple[Kernel, int]:
        """How this host spends the compute's time, and how many steps of that it takes."""
        if self._ranks.placement == ACCEL or (self._ranks.stands_in and schedule.offloaded(step)):
            return Nap(), work.alone_ns
        if self._ranks.stands_in:
            return Registers(), work.steps_of(work.stand_in_ns_per_step)
        return self._kernel, work.steps

    def _work(self, step: str, work: Work, mode: Mode) -> list[tuple[str, Calls]]:
        """The compute in pieces, with a probe of every operation between two of them."""
        kernel, steps = self._of_host(step, work)
        parts: list[tuple[str, Calls]] = []
        for n, piece in enumerate(schedule.chunks(steps, PROBES.get(mode.name, 0) + 1)):
            parts += [("test", mode.probe())] if n else []
            parts.append((WORK, kernel.calls(piece)))
        return parts
