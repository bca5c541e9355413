"""Running the steps: one rank's account of a case, from its first check to the last round.

Between blocks all ranks meet in a barrier that sleeps; a rank without a part in a step is in it from the start.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives.overlap import cargo, kernels, schedule
from collectives.overlap.evidence import Meter
from collectives.overlap.kernels import Kernel, Rate, Registers, Work
from collectives.overlap.modes import Mode
from collectives.overlap.options import Options
from collectives.overlap.programs import Programs, Timed
from collectives.overlap.ranks import Ranks
from microbench.case import Case, Invalid
from microbench.job import Job

_PILOT_SHARE, _PILOT_LEAST, _PILOT_MOST = 0.05, 4, 100
_WARM_UP = 2

Times = NDArray[np.int64]
Spans = dict[str, Times]


@dataclass
class Desk:
    """One rank's running account. Every method is collective.

    ``modes`` has ``host`` in any case: its pure time is what compute and lateness are sized by.
    """

    job: Job
    ranks: Ranks
    options: Options
    modes: Mapping[str, Mode]
    compare: tuple[str, ...]
    kernel: Kernel
    meter: Meter
    programs: dict[str, Timed | None] = field(default_factory=dict)
    cpu_s: dict[str, float] = field(default_factory=dict)
    wall_s: dict[str, float] = field(default_factory=dict)
    preemptions: dict[str, int] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    checked_bytes: int = 0
    validation: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._next_lag = np.zeros(1, "u8")
        self._lags = np.zeros(0, "i8")
        self.longest_lag_ns = 0.0

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of the case."""
        return schedule.steps(self.compare)

    def block(self, step: str, iterations: int, round_: int | None = None) -> Spans:
        """Run a block of ``step``, or sleep through it; its spans in ns, none on a rank without a part.

        Hosts are late as drawn for the round; never without one.
        """
        name, mode, timed = schedule.mode(step), self.modes.get(schedule.mode(step)), self.programs[step]
        self._draw(iterations, round_)
        if mode is not None:
            mode.begin()
        if schedule.offloaded(step):
            self.meter.begin()
        wall, cpu, preempted = time.monotonic(), time.process_time(), _preemptions()
        spans = timed.spans(timed.program.run(iterations)) if timed is not None else {}
        self.preemptions[step] = self.preemptions.get(step, 0) + _preemptions() - preempted
        self.ranks.quiet.barrier()
        self.wall_s[step] = self.wall_s.get(step, 0.0) + time.monotonic() - wall
        self.cpu_s[step] = self.cpu_s.get(step, 0.0) + time.process_time() - cpu
        if schedule.offloaded(step):
            self.meter.end(name)
            self.asked[name] = self.asked.get(name, 0) + iterations * self.options.outstanding
        if mode is not None:
            mode.end()
        return spans

    def _draw(self, iterations: int, round_: int | None) -> None:
        """The delays of a block: the same for every step of a round."""
        if round_ is None or self.ranks.here is None:
            self._lags = np.zeros(iterations, "i8")
        else:
            self._lags = schedule.lags(self.job.seed, round_, self.ranks.index, iterations, self.longest_lag_ns)
        self._next_lag[0] = self._lags.ctypes.data

    def checked(self, step: str, iterations: int, round_: int | None = None) -> Spans:
        """A block that starts with spoiled buffers and ends with a comparison of what every host received.

        Raises Invalid on every rank alike.
        """
        mode = self.modes[schedule.mode(step)]
        mode.poison()
        self.ranks.quiet.barrier()
        spans = self.block(step, iterations, round_)
        for place in range(self.options.outstanding):
            verify = mode.cargo[place].verify if self.ranks.here is not None else cargo.nothing
            try:
                self.validation = verify(self.ranks.quiet.sum, self.job.seed)
            except Invalid as error:
                raise Invalid(f"{step}: {error}") from None
            self.checked_bytes += self.validation["checked_bytes"]
        return spans

    def prepare(self, case: Case) -> Work:
        """Calibrate, size the compute to the hosts' own collective, and check the data of every step."""
        own, stand_in, noise_ns = self.ranks.quiet.decide(*self._calibrate())
        unhurried, idle = Programs(self.ranks, self.modes, self.kernel, None), Work(0.0, 0.0, 0, own, noise_ns)
        self.programs[schedule.HOST_PURE] = unhurried.of(schedule.HOST_PURE, idle)
        self.checked(schedule.HOST_PURE, 1)
        pure_ns = self._pilot(case.budget_s)
        steps = schedule.work_steps(self.options.fraction * pure_ns, own)
        work = Work(self.options.fraction, pure_ns, steps, own, noise_ns, stand_in)
        self.longest_lag_ns = self.options.skew * pure_ns
        programs = Programs(self.ranks, self.modes, self.kernel, self._next_lag if self.options.skew else None)
        self.programs = {step: programs.of(step, work) for step in self.steps}
        for step in self.steps[2:]:
            self.checked(step, 1)
        return work

    def _calibrate(self) -> tuple[float, float, float]:
        """Nanoseconds of a step of both kernels, and the shortest measurable time: rank 0, while all others sleep."""
        self.ranks.quiet.barrier()
        found = 0.0, 0.0, 0.0
        if self.job.rank == 0:
            engine = self.job.engine
            stand_in = Rate.of(engine, Registers())
            own = stand_in if isinstance(self.kernel, Registers) else Rate.of(engine, self.kernel)
            found = own.ns_per_step, stand_in.ns_per_step, kernels.noise_ns(engine)
        self.ranks.quiet.barrier()
        return found

    def _pilot(self, budget_s: float) -> float:
        """Nanoseconds of the hosts' own collective, of the reported hosts' slowest; connections speed up at first."""
        start = time.monotonic()
        self.block(schedule.HOST_PURE, 2)
        fit = _PILOT_SHARE * budget_s * 2 / (time.monotonic() - start)
        (count,) = self.ranks.quiet.decide(float(min(_PILOT_MOST, max(_PILOT_LEAST, int(fit)))))
        spans = self.block(schedule.HOST_PURE, int(count))
        mine = float(np.median(spans[""][int(count) // 3 :])) if spans else 0.0
        medians = self.ranks.quiet.gather(np.array([mine]))
        return float(medians[list(self.ranks.reported)].max())

    def rounds(self, case: Case, started: float) -> tuple[dict[str, list[Spans]], dict[str, Any]]:
        """Warm up, and run the rounds: each step's blocks of spans, and the method's account of them.

        ``started`` is when the case began (``time.monotonic``): its budget covers the preparation. The last
        block of every overlapped step is checked.
        """
        set_s = sum(self._warm_up(step) for step in self.steps)
        began = time.monotonic()
        planned = schedule.plan(case, set_s, began - started)
        (count,) = self.ranks.quiet.decide(float(planned.count))
        blocks: dict[str, list[Spans]] = {step: [] for step in self.steps}
        done, late = 0, False
        while done < int(count) and not late:
            now = time.monotonic()
            cut = schedule.must_stop(case, done + 1, now - started, now - began) != ""
            (late,) = (bool(flag) for flag in self.ranks.quiet.decide(float(cut)))
            last = late or done + 1 == int(count)
            for step in schedule.order(self.compare, self.job.seed, done):
                act = self.checked if last and schedule.overlapped(step) else self.block
                blocks[step].append(act(step, schedule.BLOCK + schedule.LEAD_IN, done))
            done += 1
        return blocks, self._account(case, done, time.monotonic() - started)

    def _warm_up(self, step: str) -> float:
        """Seconds of one iteration."""
        start = time.monotonic()
        self.block(step, _WARM_UP, 0)
        return (time.monotonic() - start) / _WARM_UP

    def _account(self, case: Case, done: int, spent_s: float) -> dict[str, Any]:
        return {
            "warmup_iterations": _WARM_UP + 1,
            "iterations": done * schedule.BLOCK,
            "rounds": done,
            "block": schedule.BLOCK,
            "lead_in": schedule.LEAD_IN,
            "order": "modes in an order drawn for each round",
            "stop_reason": schedule.stop_reason(case, done),
            "measuring_s": round(spent_s, 3),
        }


def _preemptions() -> int:
    """How often this process lost its core to another so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
