"""A lab member's speed, set by measuring it: the CPU quota under which fixed work goes at a fraction of its rate.

The same native work is done in turns by a process in the member, held to the quota, and by one that is not, on the same
processor. The quota is corrected until the ratio of their rates is what was asked for. The rate without a quota is that
per time of the processor, which other processes on it take nothing of; what is held hardly notices one of them, for the
scheduler owes it more than its quota, and where it does notice, the speed is not reached, and refused.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fabrics.errors import CannotRun, UserError
from fabrics.lab import cluster
from fabrics.lab.groups import PERIOD_US
from microbench.stats import Interval, quantile

TOLERANCE = 0.03  # of what was asked for
_AIM = 0.01  # below it, another correction would follow noise
_ATTEMPTS = 6
_MOST_QUOTA = 1.25  # times the speed: what needs more is held back by something else than its quota
_PAIRS = 6  # the fewest with an interval
_PERIODS = 40  # of the quota that a held piece of work takes, about
_LEAD_IN_PERIODS = 2  # so that work does not begin with what was saved while the process slept
_PILOT_STEPS = 20_000_000
_SLOWEST = 100  # times what work should take, and it is given up
_END_S = 5.0


class Burner:
    """A process that does work when told to (:mod:`microbench.burner`)."""

    def __init__(self, process: subprocess.Popen[str], name: str) -> None:
        self._process, self._name = process, name

    def ns(self, steps: int, deadline_s: float) -> tuple[int, int]:
        """What so many steps took, and of the processor; CannotRun where that is too long, or the process has ended."""
        if self._process.stdin is None or self._process.stdout is None:
            raise ValueError("the process was made without pipes")
        try:
            self._process.stdin.write(f"{steps}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise CannotRun(f"{self._name}: {self._last_words()}") from None
        if not select.select([self._process.stdout], [], [], deadline_s)[0]:
            raise CannotRun(f"{self._name}: fixed work took over {deadline_s:.0f} s: the machine is too busy")
        line = self._process.stdout.readline()
        if not line:
            raise CannotRun(f"{self._name}: {self._last_words()}")
        wall, cpu = map(int, line.split())
        return wall, cpu

    def _last_words(self) -> str:
        self._process.kill()
        _, told = self._process.communicate()
        return (told.strip().splitlines() or ["the process that does the work has ended"])[-1]


@contextmanager
def _burner(command: Sequence[str], name: str) -> Iterator[Burner]:
    """A burner for the time of the block, reaped whatever happens."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield Burner(process, name)
        process.communicate(timeout=_END_S)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def calibrate(lab: cluster.Lab, member: str, speed: float) -> tuple[cluster.Lab, Interval]:
    """``lab`` with ``member`` held to ``speed`` (0 to 1) of what it does without a quota, and the speed measured.

    The interval is of the median of six pairs. Raises UserError for a speed that cannot be, CannotRun where the kernel
    refuses the quota or the speed is not reached within 3 %; the member then has the quota it had before.
    """
    if not 0 < speed < 1:
        raise UserError(f"speed {speed:g}: above 0 and below 1, or none for no quota")
    try:
        return _calibrated(lab, member, speed)
    except BaseException:
        cluster.limit_cpu(lab, lab.cpus.get(member), member)
        if member in lab.speeds:
            cluster.note_speed(lab, member, lab.speeds[member])
        raise


def _calibrated(lab: cluster.Lab, member: str, speed: float) -> tuple[cluster.Lab, Interval]:
    command = [sys.executable, "-m", "microbench.burner", str(max(os.sched_getaffinity(0)))]
    held_lab = cluster.limit_cpu(lab, speed, member)  # before its process starts, which joins the group
    cores, seen = speed, Interval(0.0, None, None, 0)
    with (
        _burner(command, f"lab {lab.name}, this machine") as free,
        _burner(held_lab.enter(member, command), f"lab {lab.name}, {member}") as held,
    ):
        pilot = min(free.ns(_PILOT_STEPS, _SLOWEST)[1] for _ in range(3))
        period_steps = _PILOT_STEPS / pilot * PERIOD_US * 1e3 * speed  # that a period's quota is enough for
        for attempt in range(_ATTEMPTS):
            if attempt:
                cores = min(cores * speed / seen.value, _MOST_QUOTA * speed)
                held_lab = cluster.limit_cpu(held_lab, cores, member)
            seen = quantile([_pair(free, held, period_steps) for _ in range(_PAIRS)])
            if abs(seen.value / speed - 1) <= _AIM:
                break
    if abs(seen.value / speed - 1) > TOLERANCE:
        raise CannotRun(
            f"lab {lab.name}: {member} was seen at {100 * seen.value:.3g} % of its speed, and {100 * speed:g} % was"
            f" asked for: other work on this machine disturbs the measurement"
        )
    return cluster.note_speed(held_lab, member, seen.value), seen


def _pair(free: Burner, held: Burner, period_steps: float) -> float:
    """The rate of held work over that of free work, one after the other."""
    steps, lead_in = int(_PERIODS * period_steps), int(_LEAD_IN_PERIODS * period_steps)
    deadline_s = _SLOWEST * _PERIODS * PERIOD_US * 1e-6
    free.ns(lead_in, deadline_s)
    _, alone_ns = free.ns(steps, deadline_s)
    held.ns(lead_in, deadline_s)
    held_ns, _ = held.ns(steps, deadline_s)
    return alone_ns / held_ns


def told(member: str, lab: cluster.Lab, seen: Interval) -> str:
    """What was reached, in a line."""
    ends = f" (95 % interval {100 * seen.low:.3g} to {100 * seen.high:.3g} %)" if seen.low and seen.high else ""
    quota = f"by a CPU quota of {100 * lab.cpus[member]:.3g} % of a core in periods of {PERIOD_US // 1000} ms"
    return f"lab {lab.name}: {member} at {100 * seen.value:.3g} % of its speed without a quota{ends}, {quota}"
