"""Running the steps: one rank's account of a case, from calibration to the last round.

Between blocks all ranks meet in a barrier that sleeps; a rank without a part in a step is in it from the start.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives.offload import schedule
from collectives.offload.crew import Crew
from collectives.offload.waiting import Quiet
from microbench import check
from microbench.case import Case, Invalid
from microbench.engine import Program, durations, stamped
from microbench.job import Job

_CALIBRATION_STEPS, _CALIBRATION_RUNS = 200_000, 40
_PILOT_SHARE, _PILOT_LEAST, _PILOT_MOST = 0.05, 6, 100
_WARMUP = 3
_STAMP_PAIRS = 200
_STAMPS_PER_MEASURABLE = 20  # a clock reading is then at most 5 % of the time
_OVERTIME = 1.5

Times = NDArray[np.int64]


@dataclass(frozen=True)
class Work:
    """The compute of a case: a fixed count of steps, and the rate at which rank 0 alone was seen to do them.

    ``noise_ns`` is the shortest time that the clock can tell.
    """

    fraction: float
    steps: int
    ns_per_step: float
    noise_ns: float

    @property
    def alone_ns(self) -> int:
        """How long the count takes alone."""
        return round(self.steps * self.ns_per_step)


@dataclass
class Desk:
    """One rank's running account. Every method is collective."""

    job: Job
    crew: Crew
    quiet: Quiet
    emulated: bool
    programs: dict[str, Program | None] = field(default_factory=dict)
    cpu_s: dict[str, float] = field(default_factory=dict)
    wall_s: dict[str, float] = field(default_factory=dict)
    preemptions: dict[str, int] = field(default_factory=dict)
    asked: int = 0
    checked_bytes: int = 0
    validation: dict[str, Any] = field(default_factory=dict)

    def block(self, step: str, iterations: int) -> Times:
        """Run a block of ``step``, or sleep through it; the stamps, none on a rank without a part."""
        wall, cpu, preempted = time.monotonic(), time.process_time(), _preemptions()
        program = self.programs[step]
        times = program.run(iterations) if program else np.zeros((0, 4), "i8")
        self.preemptions[step] = self.preemptions.get(step, 0) + _preemptions() - preempted
        self.quiet.barrier()
        self.wall_s[step] = self.wall_s.get(step, 0.0) + time.monotonic() - wall
        self.cpu_s[step] = self.cpu_s.get(step, 0.0) + time.process_time() - cpu
        self.asked += iterations if schedule.offloaded(step) else 0
        return times

    def checked(self, step: str, iterations: int) -> Times:
        """A block that starts with spoiled buffers and ends with a comparison of what every host received.

        Raises Invalid on every rank alike.
        """
        self.crew.poison()
        self.quiet.barrier()
        times = self.block(step, iterations)
        try:
            self.validation = check.verify(self.crew.receive, self.crew.expected(), self.quiet.sum, self.job.seed)
        except Invalid as error:
            raise Invalid(f"{step}: {error}") from None
        self.checked_bytes += self.validation["checked_bytes"]
        return times

    def prepare(self, fraction: float, budget_s: float) -> Work:
        """Calibrate, size the compute to ``fraction`` of the hosts' own allreduce, and check every step's data."""
        ns_per_step, noise_ns = self.quiet.decide(*self._calibrate())
        self.programs["host.pure"] = self.crew.program("host.pure")
        self.checked("host.pure", 1)
        target_ns = fraction * self._pilot(budget_s)
        (steps,) = self.quiet.decide(float(schedule.work_steps(target_ns, ns_per_step)))
        work = Work(fraction, int(steps), ns_per_step, noise_ns)
        nap_ns = work.alone_ns if self.emulated else 0
        self.programs = {step: self.crew.program(step, work.steps, nap_ns) for step in schedule.STEPS}
        for step in schedule.STEPS[2:]:
            self.checked(step, 1)
        return work

    def _pilot(self, budget_s: float) -> float:
        """Nanoseconds of the hosts' own allreduce on rank 0, 0 elsewhere; connections speed up for a while first."""
        start = time.monotonic()
        self.block("host.pure", 2)
        fit = _PILOT_SHARE * budget_s * 2 / (time.monotonic() - start)
        (count,) = self.quiet.decide(float(min(_PILOT_MOST, max(_PILOT_LEAST, int(fit)))))
        times = durations(self.block("host.pure", int(count)))
        return float(np.median(times[int(count) // 3 :])) if self.job.rank == 0 else 0.0

    def _calibrate(self) -> tuple[float, float]:
        """Nanoseconds of a step of work, and the shortest measurable time: rank 0 alone, while all others sleep."""
        self.quiet.barrier()
        found = 0.0, 0.0
        if self.job.rank == 0:
            engine = self.job.engine
            times = durations(engine.program(*stamped([("work", _CALIBRATION_STEPS)])).run(_CALIBRATION_RUNS))
            pairs = durations(engine.program("stamp", "stamp").run(_STAMP_PAIRS))
            settled = times[_CALIBRATION_RUNS // 4 :]
            found = (
                float(np.median(settled)) / _CALIBRATION_STEPS,
                _STAMPS_PER_MEASURABLE * float(np.median(pairs)),
            )
        self.quiet.barrier()
        return found

    def rounds(self, case: Case, started: float) -> tuple[dict[str, list[Times]], dict[str, Any]]:
        """Warm up, and run the rounds: each step's blocks of stamps, and the method's account of them.

        ``started`` is when the case began (``time.monotonic``): its budget covers the preparation. The last
        block of every overlapped step is checked.
        """
        set_s = sum(self._warm_up(step) for step in schedule.STEPS)
        left_s = case.budget_s - (time.monotonic() - started)
        planned = schedule.plan(set_s, left_s, case.min_iterations, case.max_iterations)
        (count,) = self.quiet.decide(float(planned.count))
        rounds = schedule.Rounds(int(count))
        blocks: dict[str, list[Times]] = {step: [] for step in schedule.STEPS}
        done, late = 0, False
        while done < rounds.count and not late:
            over = time.monotonic() - started > _OVERTIME * case.budget_s
            enough = (done + 1) * rounds.block >= case.min_iterations
            (late,) = (bool(flag) for flag in self.quiet.decide(float(over and enough)))
            done += 1
            run = self.checked if late or done == rounds.count else self.block
            for step in schedule.STEPS:
                act: Callable[[str, int], Times] = run if schedule.overlapped(step) else self.block
                blocks[step].append(act(step, rounds.block + 1))
        return blocks, self._account(case, rounds, done, late)

    def _warm_up(self, step: str) -> float:
        """Seconds of one iteration."""
        self.block(step, 1)
        start = time.monotonic()
        self.block(step, _WARMUP)
        return (time.monotonic() - start) / _WARMUP

    def _account(self, case: Case, rounds: schedule.Rounds, done: int, late: bool) -> dict[str, Any]:
        capped = rounds.iterations + rounds.block > case.max_iterations
        return {
            "warmup_iterations": _WARMUP + 1,
            "iterations": done * rounds.block,
            "rounds": done,
            "block": rounds.block,
            "lead_in": 1,
            "stop_reason": "max_iterations" if capped and done == rounds.count else "time",
        }


def _preemptions() -> int:
    """How often this process lost its core to another so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
