"""Measuring again what limits cannot decide: fresh launches of the cases in doubt, judged with all earlier ones.

Six launches are one round, since a median over launches has an interval from six on; a case has two rounds at most.
Nothing is kept of it but the records: what a case has beyond the plan's launches tells how often it was in doubt.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from reports.limits.judge import judge
from reports.limits.model import Judgement, first_code
from reports.load import load
from reports.summary import LAUNCHES_FOR_INTERVAL
from reports.units import count, duration
from reports.view import view
from suite.gate import Gate
from suite.plan import JobPlan, Plan, estimate_job_s
from suite.resume import read
from suite.run import LATE, Run

ROUNDS = 2
Tell = Callable[[str], None]
_Done = Collection[tuple[str, int]]


def judged(run: Run, gate: Gate) -> Judgement:
    """The verdicts on what the run has on disk."""
    return judge(view(load(run.folder.directory)), gate.limits, gate.baseline)


def code(run: Run, own: int, gate: Gate | None) -> int:
    """The run's own exit code and that of its verdicts together."""
    return first_code(own, judged(run, gate).code) if gate else own


def left(run: Run, gate: Gate) -> tuple[JobPlan, ...]:
    """One more round of what is in doubt; nothing where there is none, or no case may be measured again."""
    doubtful = judged(run, gate).doubtful
    done = read(run.folder.directory).done()
    last = max([0, *(job["job"] for job in run.jobs), *(job.number for job in run.plan.jobs)])
    return tuple(fresh(run.plan, doubtful, done, last, run.seed))


def fresh(plan: Plan, doubtful: Collection[str], done: _Done, last: int, seed: int) -> Iterator[JobPlan]:
    """Jobs with numbers from ``last`` on that launch each of the ``doubtful`` once a launch of its round.

    A round takes the first launches beyond the plan's that are not ``done``; like every launch but the first, each has
    an order of jobs and cases of its own.
    """
    beyond = range(plan.launches + 1, plan.launches + ROUNDS * LAUNCHES_FOR_INTERVAL + 1)
    rounds = {case: [n for n in beyond if (case, n) not in done][:LAUNCHES_FOR_INTERVAL] for case in doubtful}
    first = [job for job in plan.jobs if job.launch == 1]
    for launch in beyond:
        rng = random.Random(f"{seed}-{launch}")  # noqa: S311 - an order, no secret
        for job in rng.sample(first, len(first)):
            cases = [case for case in job.cases if launch in rounds.get(case.id, ())]
            if cases:
                last += 1
                yield replace(job, number=last, launch=launch, cases=tuple(rng.sample(cases, len(cases))))


def execute(run: Run, gate: Gate, tell: Tell) -> int:
    """Run what is to do, then rounds of what is in doubt; the run's own exit code."""
    ended = run.execute()
    for _ in range(ROUNDS):
        jobs = left(run, gate) if ended != LATE else ()
        if not jobs or _beyond_budget(run, jobs, tell):
            break
        cases = len({case.id for job in jobs for case in job.cases})
        tell(f"{count(cases, 'case')} in doubt: measured again in {count(len(jobs), 'job')}")
        run.todo = replace(run.plan, jobs=jobs, skips=())
        ended = run.execute()
    return ended


def _beyond_budget(run: Run, jobs: tuple[JobPlan, ...], tell: Tell) -> bool:
    """Whether what is left of the budget would not hold another round, which is told."""
    takes_s = sum(map(estimate_job_s, jobs))
    if run.until is None or time.monotonic() + takes_s <= run.until:
        return False
    tell(f"what is in doubt is not measured again: that may take {duration(takes_s)}, and less is left of the budget")
    return True
