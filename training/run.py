"""One case of training on a host: check, time rounds of steps, check again, and compose what is reported."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from microbench.case import Case, Outcome
from microbench.job import Job
from training import checks, control, figures, loading, paired
from training.cast import Cast, Meeting
from training.clock import Clock, Diverged
from training.data import Loader
from training.exchange.modes import NOOP
from training.first import First, watched_steps
from training.methods import method
from training.pace import FIRST_STEPS
from training.replica import Gradients, Replica
from training.setup import STRONG
from training.steps import Step


@dataclass(frozen=True)
class _Timed:
    """Steps by mode, ``noop`` included; the level of a look at them."""

    steps: Mapping[str, list[Step]]
    stop_reason: str
    level: float


@dataclass
class Run:
    """One case on one host, from its first step to its outcome."""

    cast: Cast
    case: Case
    here: Job
    clock: Clock
    meeting: Meeting
    replica: Replica | None
    first: First
    alone: Loader | None
    checked_ns: dict[str, int] = field(default_factory=dict)

    @property
    def modes(self) -> list[str]:
        """The exchanges."""
        return list(self.clock.ways.by_mode)

    def outcome(self) -> Outcome:
        """Check, measure, check again."""
        try:
            for mode in self.modes:
                self.first.steps[mode] = [self.clock.step(mode) for _ in range(FIRST_STEPS)]
            if fault := self.gradient_fault():
                return Outcome("invalid", fault)
            watched_steps(self.here, self.meeting, self.clock, self.first)
            plan, short = self.plan()
            if short:
                return Outcome("skipped", short)
            alone = self.steps_alone(plan)
            timed = self.rounds(plan)
            alone += self.steps_alone(plan)
            fault = self.gradient_fault() if self.cast.setup.replayed else self.disagreement()
        except Diverged as error:
            return Outcome("failed", str(error))
        if fault:
            return Outcome("invalid", f"{fault}, after {self.clock.steps} steps")
        return self.composed(timed, alone)

    def gradient_fault(self) -> str:
        """Check one exchange of all buckets by every mode, from the same weights on each host."""
        comm, allowed = self.here.comm, checks.tolerance(self.cast.setup.dtype, self.here.size)
        local = self.clock.gradients(NOOP)
        expected = checks.means(comm, local)
        for mode in self.modes:
            got = self.exchanged(mode)
            fault = "" if self.cast.setup.replayed else checks.agreement_fault(comm, got)
            got = expected if self.replica is None else got
            if fault := fault or checks.mean_fault(comm, local, got, expected, allowed):
                return f"{mode}: {fault}"
        return ""

    def disagreement(self) -> str:
        """Whether hosts, whose weights differ by now, still get the same of every exchange."""
        for mode in self.modes:
            if fault := checks.agreement_fault(self.here.comm, self.exchanged(mode)):
                return f"{mode}: {fault}"
        return ""

    def exchanged(self, mode: str) -> Gradients:
        """Gradients by a mode, and how long that took."""
        start = time.perf_counter_ns()
        found = self.clock.gradients(mode)
        self.checked_ns[mode] = time.perf_counter_ns() - start
        return found

    def steps_alone(self, plan: paired.Budget) -> list[int]:
        """Half of rank 0's steps without its peers, which sleep, in ns; none elsewhere."""
        found = []
        if self.replica is not None and self.alone is not None:
            found = [self.replica.alone(self.alone)["step"] for _ in range(plan.alone // 2)]
        self.meeting.rest()
        return found

    def rounds(self, plan: paired.Budget) -> _Timed:
        """Rounds until the time of every mode's step is known well enough, or as many as were planned."""
        kinds = [NOOP, *self.modes]
        steps = {kind: list[Step]() for kind in kinds}
        rule = paired.rule(plan, self.case.precision)
        for look in rule.looks:
            for number in range(len(steps[NOOP]), look):
                for kind in paired.order(len(kinds), number, self.here.seed):
                    steps[kinds[kind]].append(self.clock.step(kinds[kind]))
            rows = self.here.comm.gather([[step["step"] for step in steps[mode]] for mode in self.modes])
            enough = False
            if rows is not None and self.case.precision > 0:
                enough = all(map(rule.enough, np.max(rows[: self.cast.trainers], axis=0)))
            if self.here.decide(enough):
                return _Timed(steps, "precision", rule.level)
        return _Timed(steps, plan.stop_reason, rule.level)

    def plan(self) -> tuple[paired.Budget, str]:
        """Rank 0's decision how many rounds to time; an exchange's first step may have taken far longer than others.

        The time that is left may allow fewer: with none, the text says why.
        """
        steps = self.first.steps
        waits_s = self.here.max(float(np.median([step["data"] for own in steps.values() for step in own])) * 1e-9)
        first_ns = {kind: steps[kind][-1]["step"] if self.replica else 1 for kind in (NOOP, *self.modes)}
        step_s = {kind: waits_s + min(ns, self.checked_ns.get(kind, ns)) * 1e-9 for kind, ns in first_ns.items()}
        alone_s = step_s[NOOP] * (self.here.size if self.cast.setup.scaling == STRONG else 1)
        round_s, left_s = sum(step_s.values()), loading.left_s(self.here.engine.page.deadline_ns)
        found = paired.budget(round_s, self.case.budget_s, self.case.max_iterations, alone_s)
        if left_s is not None:  # of which the check at the end takes about a round
            found = paired.within(found, round_s, alone_s, left_s - round_s)
        told = "" if found.rounds else loading.no_round(self.cast.setup, round_s, waits_s, left_s or 0.0)
        decided: tuple[paired.Budget, str] = self.here.decide((found, told))
        return decided

    def composed(self, timed: _Timed, alone: list[int]) -> Outcome:
        """What rank 0 reports of good steps."""
        steps = self.gathered(timed.steps)
        first = self.gathered(self.first.steps)
        samples = {name: rows for mode, part in steps.items() for name, rows in figures.columns(part, mode).items()}
        setup, size = self.cast.setup, self.here.size
        found = method(self.cast, self.here, self.replica, self.first, self.clock.ways) | {
            "steps_alone": len(alone), "stop_reason": timed.stop_reason, "look_level": timed.level,
            "target_half_width": self.case.precision,
        }  # fmt: skip
        if self.here.rank or self.replica is None:
            return Outcome()
        scale = figures.Scale(found["images"], sum(self.replica.parameter_bytes), size, setup.scaling == STRONG)
        if told := control.warnings(samples, self.modes):
            found["warnings"] = told
        kept = {"step": samples[f"{self.modes[0]}.step"], "step_noop": samples[f"{NOOP}.step"]}
        kept |= samples | {f"first.{mode}": rows[:, :, 0] for mode, rows in first.items()}
        return Outcome(
            metrics=figures.metrics(samples, self.modes, alone, scale, timed.level),
            method=found,
            validation={
                "allreduce": "exact", "gradients": "mean of ranks, by every exchange; alike on all, after",
                "tolerance": checks.tolerance(setup.dtype, size),
            },
            samples=kept | {"step_alone": np.array([alone], "i8")},
            reported_ranks=self.cast.reported,
        )  # fmt: skip

    def gathered(self, steps: Mapping[str, list[Step]]) -> dict[str, Any]:
        """Steps of the hosts that train, by mode: of shape (ranks, steps, parts)."""
        found = {}
        for mode, own in steps.items():
            rows = self.here.comm.allgather(np.stack([step.ns for step in own]) if self.replica else None)
            found[mode] = np.stack([row for row in rows if row is not None])
        return found
