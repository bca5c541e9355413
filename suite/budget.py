"""What a run may take: a plan cut down to a budget of time, and the space that a plan needs on disk."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fabrics.errors import CannotRun, UserError
from microbench.case import Case
from reports.units import count, duration, volume
from suite.plan import JobPlan, Plan, Skip, estimate_job_s, estimate_s

DROPPED = "dropped to keep the budget"  # how the reason of all that was left out begins
_FASTEST_S = 1e-6
_SAMPLE_BYTES = 2 * 8  # a start and a duration, 64 bits each
_WARMUP = 100
_RECORD_BYTES = (1024, 4096)  # a line of records.jsonl, and a case's part in the other files: at least, at most


def fit(plan: Plan, budget_s: float) -> Plan:
    """``plan`` within a budget: whole launches are dropped from the last, and of a single one the dearest cases.

    Of cases that take as long, those that stand last in their jobs go first, so that fabrics keep the same ones.
    UserError where not even one case fits.
    """
    cut = replace(plan, budget_s=budget_s)
    if not plan.jobs:
        return cut
    kept = plan.launches
    while kept > 1 and _launches_s(plan.jobs, kept) > budget_s:
        kept -= 1
    jobs = tuple(job for job in plan.jobs if job.launch <= kept)
    if kept < plan.launches:
        cut = replace(cut, launches=kept, notes=(*plan.notes, _dropped_launches(plan, kept, budget_s)))
    jobs, skips = _without_dearest(jobs, budget_s, plan.name)
    return replace(cut, jobs=jobs, skips=(*plan.skips, *skips))


def _launches_s(jobs: Sequence[JobPlan], launches: int) -> float:
    return sum(estimate_job_s(job) for job in jobs if job.launch <= launches)


def _dropped_launches(plan: Plan, kept: int, budget_s: float) -> str:
    each_s = plan.estimate_s / plan.launches
    which = f"launch {plan.launches}" if kept + 1 == plan.launches else f"launches {kept + 1} to {plan.launches}"
    return f"{DROPPED} of {budget_text(budget_s)}: {which} of {plan.launches}, each at most about {duration(each_s)}"


def _without_dearest(
    jobs: tuple[JobPlan, ...], budget_s: float, name: str
) -> tuple[tuple[JobPlan, ...], tuple[Skip, ...]]:
    """The jobs of one launch without the cases that are too many, and those cases."""
    dearest_last = sorted(
        ((_alone_s(job, case), place, job.number, case) for job in jobs for place, case in enumerate(job.cases)),
        key=lambda entry: entry[:3],
    )
    skips: list[Skip] = []
    while sum(map(estimate_job_s, jobs)) > budget_s:
        least_s, _, number, case = dearest_last.pop()
        if not dearest_last:
            raise UserError(
                f"a budget of {budget_text(budget_s)} holds nothing of plan {name}:"
                f" its shortest case may take {duration(math.ceil(least_s))}"
            )
        (home,) = (job for job in jobs if job.number == number)
        cost_s = max(1.0, estimate_s(case, home.fabric))
        reason = f"{DROPPED} of {budget_text(budget_s)}: at most about {duration(cost_s)}"
        skips.append(Skip(case, home.fabric, "skipped", reason))
        rest = replace(home, cases=tuple(other for other in home.cases if other.id != case.id))
        jobs = tuple(rest if job is home else job for job in jobs if job is not home or rest.cases)
    return tuple(replace(job, number=number) for number, job in enumerate(jobs, 1)), tuple(skips)


def _alone_s(job: JobPlan, case: Case) -> float:
    """What a case takes with a job for itself."""
    return estimate_job_s(replace(job, cases=(case,)))


def told(plan: Plan) -> tuple[str, ...]:
    """What was left out to keep the budget, in a line each."""
    if plan.budget_s is None:
        return ()
    why = f"{DROPPED} of {budget_text(plan.budget_s)}"
    dropped = sum(skip.reason.startswith(why) for skip in plan.skips)
    return (*plan.notes, *([f"{count(dropped, 'case')} {why}"] if dropped else []))


def budget_text(budget_s: float) -> str:
    """A budget as a user wrote it, or nearly: ``90 s``, ``30 min``, ``1 h 30 min``."""
    parts = ((budget_s // 3600, "h"), (budget_s % 3600 // 60, "min"), (budget_s % 60, "s"))
    return " ".join(f"{number:.0f} {unit}" for number, unit in parts if number)


@dataclass(frozen=True)
class Space:
    """Bytes that a run writes: ``least`` if every case stops at its fewest iterations, ``most`` if none stops early."""

    least: int
    most: int


def space(jobs: Sequence[JobPlan]) -> Space:
    """What these jobs write: a record a case, and a start and a duration of every rank and iteration.

    The most iterations are those of the plan, or what fits the budget at 1 us an iteration if that is less.
    """
    each = [(_samples(case), case.ranks * _SAMPLE_BYTES) for job in jobs for case in job.cases]
    least, most = (sum(n[end] * size + _RECORD_BYTES[end] for n, size in each) for end in (0, 1))
    return Space(least, most)


def _samples(case: Case) -> tuple[int, int]:
    fit_budget = max(case.min_iterations, int(case.budget_s / _FASTEST_S))
    return case.min_iterations, min(case.max_iterations, fit_budget) + _WARMUP


def check_space(jobs: Sequence[JobPlan], directory: Path) -> str:
    """A warning where the disk may fill up, or nothing; CannotRun where not even the least has room.

    Between the two a run may well come to its end, since few cases go on to their most iterations.
    """
    need, disk = space(jobs), shutil.disk_usage(directory)
    if not disk.total:  # a file system that does not tell
        return ""
    records = count(sum(len(job.cases) for job in jobs), "record")
    figures = f"{records} with samples: {volume(need.least)} to {volume(need.most)}, {volume(disk.free)} are free"
    if disk.free < need.least:
        raise CannotRun(
            f"not enough room for the run in {directory}: {figures}; make room, or choose another folder with -o"
        )
    return f"warning: {directory} may fill up: {figures}" if disk.free < need.most else ""
