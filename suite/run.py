"""A run: plan, jobs one after the other, records as they arrive, and the report."""

from __future__ import annotations

import json
import sys
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from fabrics.lab.cluster import Lab
from fabrics.model import Fabric
from fabrics.recipes import NoRecipe, recipe
from microbench.case import Case
from microbench.record import Record, Status, finite
from suite import environment, launch, leftovers, neighbours, protocol, resume
from suite.budget import budget_text
from suite.plan import JobPlan, Plan, spec
from suite.progress import Progress
from suite.store import RunFolder
from suite.supervise import Ending, supervise

OK, CANNOT, LATE, INTERRUPTED = 0, 4, 124, 130


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class BudgetSpent(Exception):
    """The run's own time has passed: what is not measured stays missing."""


@dataclass
class Run:
    """The state of one run; ``modules`` name where benchmarks are registered."""

    folder: RunFolder
    plan: Plan
    fabrics: Iterable[Fabric]
    launcher: launch.Launcher
    library: str
    modules: tuple[str, ...]
    lab: Lab | None = None
    pages: str = "small"
    seed: int = 1
    others: neighbours.Watch | None = None
    jobs: list[dict[str, Any]] = field(default_factory=list)
    started: str = field(default_factory=_now)
    began: str = field(default_factory=_now)
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    worst: int = OK
    measured: bool = False
    warnings: list[str] = field(default_factory=list)
    earlier: resume.Earlier | None = None
    until: float | None = None
    environment: dict[str, Any] = field(init=False)
    todo: Plan = field(init=False)

    def __post_init__(self) -> None:
        self.todo = self.plan
        self.warnings = list(self.plan.notes)
        launcher = f"{self.launcher.path} ({self.launcher.version})"
        self.environment = environment.describe(self.library, launcher, launch.removed_variables())

    def go_on(self) -> bool:
        """Take over what earlier attempts left in the folder; whether anything is missing of the run.

        UserError where plan or environment differ.
        """
        earlier = resume.read(self.folder.directory)
        before = earlier.data.run
        resume.check(self.folder.directory, before, json.loads(json.dumps(finite(self._description("")))))
        self.earlier, self.todo = earlier, resume.missing(self.plan, earlier)
        self.id, self.started = str(before.get("id")), str(before.get("started"))
        self.jobs = [dict(job) for job in earlier.data.jobs]
        self.warnings = [*before.get("warnings", ()), *self.warnings]
        self.measured, self.worst = earlier.measured, CANNOT if earlier.wrong else OK
        return bool(self.todo.jobs or self.todo.skips or not earlier.data.finished)

    @property
    def code(self) -> int:
        """The exit code of what is on disk."""
        return self.worst if self.measured else CANNOT

    def execute(self) -> int:
        """Run every job; the exit code. An interrupt keeps what there is and is raised again."""
        progress = Progress(sum(len(job.cases) for job in self.todo.jobs))
        if self.earlier and (torn := self.folder.mend()):
            self.warnings.append(torn)
            progress.say(f"fabricbench: warning: {torn}")
        self._write()
        ended = ""
        self.until = None if self.plan.budget_s is None else time.monotonic() + self.plan.budget_s
        try:
            for skip in self.todo.skips:
                self.folder.add(_unrun(skip.case, skip.fabric, skip.status, skip.reason), {}, 0)
            for job in self.todo.jobs:
                self._job(job, progress)
            ended = "finished"
        except BudgetSpent as spent:
            ended = "budget"
            progress.say(f"fabricbench: {spent}: what is missing was not measured")
        except KeyboardInterrupt:
            ended = "interrupted"
            raise
        finally:
            progress.close()
            self._write(ended)
        return LATE if ended == "budget" else self.code

    def _write(self, ended: str = "") -> None:
        self.folder.write_run(self._description(ended))

    def _description(self, ended: str) -> dict[str, Any]:
        """What ``run.json`` says of the run."""
        before = self.earlier.data.run if self.earlier else {}
        disturbed = [neighbours.WARNING] if self.others and self.others.disturbed else []
        return {
            "schema": 1,
            "fabricbench": environment.version(),
            "id": self.id,
            "started": self.started,
            "resumed": [*before.get("resumed", ()), self.began] if self.earlier else [],
            "finished": _now() if ended == "finished" else None,
            "ended": ended,
            "command": before.get("command", sys.argv),
            "plan": {
                "tier": self.plan.name,
                "launches": self.plan.launches,
                "seed": self.seed,
                "pages": self.pages,
                "budget_s": self.plan.budget_s,
                "cases": resume.definitions(self.plan),
                "jobs": [job.summary() for job in self.plan.jobs],
            },
            "environment": self.environment,
            "fabrics": [fabric.as_dict() for fabric in self.fabrics],
            "jobs": self.jobs,
            "warnings": list(dict.fromkeys([*self.warnings, *disturbed])),
        }

    def _job(self, job: JobPlan, progress: Progress) -> None:
        """Launch a job; after a case that ended it, go on with the remaining cases in a fresh one.

        A job that ended between two cases is launched again for the rest, unless it had not come to any.
        """
        cases = job.cases
        while cases:
            self._check_budget()
            before = len(self.jobs)
            attempt = _Attempt(self, replace(job, cases=cases), progress)
            files = leftovers.present()
            try:
                ending = attempt.supervise()
            finally:
                self._tidy(files)
            self.jobs[before:] = [{**attempt.description(), "status": ending.status, "reason": ending.reason}]
            self._write()
            if ending.status == "ok":
                return
            if ending.status == "ended":
                self._check_budget()
            self.worst = CANNOT
            status: Status = "timeout" if ending.status == "timeout" else "failed"
            lost = (cases[ending.case],) if ending.case is not None else () if attempt.done else cases
            progress.say(f"{job.fabric.name}: {lost[0].id if lost else 'a job'}: {status}: {ending.reason}")
            for case in lost:
                self.folder.add(_unrun(case, job.fabric, status, ending.reason, job), {}, job.number)
                progress.advance()
            cases = cases[attempt.done + len(lost) :]

    def keep(self, job: Mapping[str, Any]) -> None:
        """Store what is known of a job that has begun, so that its proof stays with its records come what may."""
        self.jobs.append({**job, "status": "lost", "reason": "the run ended before this job did"})
        self._write()

    def _check_budget(self) -> None:
        if self.until is not None and self.plan.budget_s is not None and time.monotonic() >= self.until:
            raise BudgetSpent(f"the budget of {budget_text(self.plan.budget_s)} has passed")

    def _tidy(self, before: frozenset[str]) -> None:
        removed = leftovers.remove_new(before)
        if removed:
            self.folder.log(f"removed from /dev/shm what the job left: {', '.join(removed)}")


class _Attempt:
    """One launch of a job's cases."""

    def __init__(self, run: Run, job: JobPlan, progress: Progress) -> None:
        self._run, self._job, self._progress = run, job, progress
        self._told: dict[str, Any] = {}
        self.done = 0
        backends = ("mpich", "gloo") if any(case.backend == "gloo" for case in job.cases) else ("mpich",)
        self.env = _recipe_env(job.fabric, backends, job.hosts)

    def supervise(self) -> Ending:
        run, job = self._run, self._job
        lab = run.lab if job.fabric.lab else None
        command = launch.job_command(
            run.launcher,
            job.hosts,
            launch.worker_program(job.thread_level, job.cpus),
            {**self.env, "OMP_NUM_THREADS": "1"},
            enter=lab.enter(job.hosts[0], ()) if lab else (),
            agent=str(lab.agent) if lab else "",
        )
        run.folder.log(f"job {job.number}: {' '.join(command)}")
        return supervise(
            command,
            launch.clean_environment(),
            spec(job, run.modules, run.pages, run.seed),
            self._handle,
            self._log,
            until=run.until,
        )

    def description(self) -> dict[str, Any]:
        """What ``run.json`` keeps of it."""
        job = self._job
        told = {key: value for key, value in self._told.items() if key != "event"}
        recipe_data = {"flavour": "pure", "backend": "mpich", "env": self.env}
        return {
            "job": job.number, "launch": job.launch, "fabric": job.fabric.name, "recipe": recipe_data,
            "hosts": job.hosts, "roles": job.roles, "cpus": job.cpus, **told,
        }  # fmt: skip

    def _log(self, text: str) -> None:
        self._run.folder.log(text)
        if text.startswith("[rank "):
            self._progress.say(text)

    def _handle(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "job":
            self._told = dict(event)
            if event["proof"]["verdict"] == "disproved":
                self._run.worst = CANNOT
                self._progress.say(f"{self._job.fabric.name}: disproved: {event['proof']['detail']}")
        elif event["event"] == "start":
            case = self._job.cases[event["case"]]
            self._progress.begin(f"launch {self._job.launch}: {case.id}")
        elif event["event"] == "record":
            record = Record.from_dict(event["record"])
            if not self.done:
                self._run.keep(self.description())
            self._run.folder.add(record, protocol.unpack(event["samples"]), self._job.number)
            self.done += 1
            self._progress.advance()
            self._run.measured |= record.status == "ok"
            if resume.went_wrong(record):
                self._run.worst = CANNOT


def _recipe_env(fabric: Fabric, backends: Iterable[str], hosts: Iterable[str]) -> dict[str, str]:
    env: dict[str, str] = {}
    for backend in backends:
        try:
            env.update(recipe(fabric, backend).env)
        except NoRecipe:
            continue  # the benchmark itself says that it is unsupported
    return env


def _unrun(case: Case, fabric: Fabric, status: Status, reason: str, job: JobPlan | None = None) -> Record:
    return Record(
        **case.identity(),
        status=status,
        reason=reason,
        ranks=case.ranks,
        hosts=job.hosts if job else (),
        roles=job.roles if job else (),
        launch=job.launch if job else 1,
        emulated=fabric.emulated,
    )
