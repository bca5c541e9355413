"""A run: plan, jobs one after the other, records as they arrive, and the report."""

from __future__ import annotations

import json
import sys
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from fabrics.lab.cluster import Lab
from fabrics.lab.config import MANAGEMENT
from fabrics.model import Fabric
from microbench.case import Case
from microbench.record import Record, Status, finite
from suite import environment, launch, leftovers, neighbours, protocol, reachable, resume
from suite.budget import budget_text
from suite.plan import JobPlan, Plan, spec
from suite.progress import Progress
from suite.settings import able, settings
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
    unreachable: Mapping[str, str] = field(default_factory=dict)
    until: float | None = None
    reach: reachable.Reach = field(default_factory=reachable.Reach)
    access: launch.Access = launch.HERE
    environment: dict[str, Any] = field(init=False)
    todo: Plan = field(init=False)

    def __post_init__(self) -> None:
        self.todo = self.plan
        self.warnings = list(self.plan.notes)
        launcher = f"{self.launcher.path} ({self.launcher.version})"
        self.environment = environment.describe(self.library, launcher, launch.removed_variables())

    def go_on(self, retry: bool = False) -> bool:
        """Take over what earlier attempts left in the folder; whether anything is missing of the run.

        With ``retry`` what went wrong is missing too, and hosts that did not reach each other try again.

        UserError where plan or environment differ.
        """
        earlier = resume.read(self.folder.directory)
        before, now = earlier.data.run, json.loads(json.dumps(finite(self._description(""))))
        resume.check(self.folder.directory, before, now)
        self.earlier, self.todo = earlier, resume.missing(self.plan, earlier, retry)
        retry &= bool(self.todo.jobs)
        self.unreachable = {} if retry else earlier.unreachable
        self.id, self.started = str(before.get("id")), str(before.get("started"))
        self.jobs, self.warnings = earlier.jobs(retry), [*earlier.warnings, *self.warnings]
        self.measured, self.worst = earlier.measured, CANNOT if earlier.wrong and not retry else OK
        return bool(self.todo.jobs or self.todo.skips or not earlier.data.finished)

    @property
    def code(self) -> int:
        """The exit code of what is on disk: what is left out, with its reason, is no fault beside numbers."""
        return self.worst if self.measured else CANNOT

    def execute(self) -> int:
        """Run every job that is to do; the exit code. An interrupt keeps what there is and is raised again."""
        progress = Progress(sum(len(job.cases) for job in self.todo.jobs))
        if self.earlier and (torn := self.folder.mend()):
            self.warnings.append(torn)
            progress.say(f"fabricbench: warning: {torn}")
        self._write()
        ended = ""
        if self.until is None and self.plan.budget_s is not None:
            self.until = time.monotonic() + self.plan.budget_s
        try:
            self._try_routes(progress)
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
            "plan": resume.described(self.plan, self.seed, self.pages),
            "environment": self.environment,
            "fabrics": [fabric.as_dict() for fabric in self.fabrics],
            "reachability": self.reach.as_dict(),
            "jobs": self.jobs,
            "warnings": list(dict.fromkeys([*self.warnings, *disturbed])),
        }

    def command(self, fabric: Fabric, hosts: Sequence[str], program: Iterable[str], **env: str) -> list[str]:
        """The argument vector that starts a program on hosts of a fabric, with these variables."""
        access = self.access
        if self.lab and fabric.lab:
            enter = tuple(self.lab.enter(hosts[0], ()))
            agent = str(self.lab.agent)
            access = replace(access, enter=enter, agent=agent, interface=MANAGEMENT, one_machine=True)
        given = {**launch.passed(allocation=access.allocation), **env}
        return launch.job_command(self.launcher, hosts, program, given, access)

    def _try_routes(self, progress: Progress) -> None:
        """Find the fabrics whose hosts do not reach each other: MPI would hang on them. Once is enough."""
        if self.reach.took_s:
            return
        self.reach = reachable.check_jobs(
            self.todo.jobs, lambda fabric: partial(self.command, fabric), self.unreachable
        )
        for name, reason in self.reach.unreachable.items():
            progress.say(f"{name}: failed: {reason}")
        self._write()

    def _lose(self, job: JobPlan, cases: Iterable[Case], status: Status, reason: str, progress: Progress) -> None:
        self.worst = CANNOT
        for case in cases:
            self.folder.add(_unrun(case, job.fabric, status, reason, job), {}, job.number)
            progress.advance()

    def _job(self, job: JobPlan, progress: Progress) -> None:
        """Launch a job; after a case that ended it, go on with the remaining cases in a fresh one.

        A job that ended between two cases is launched again for the rest, unless it had not come to any.
        """
        cases = job.cases
        if reason := self.reach.unreachable.get(job.fabric.name):
            self._lose(job, cases, "failed", reason, progress)
            return
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
            status: Status = "timeout" if ending.status == "timeout" else "failed"
            lost = (cases[ending.case],) if ending.case is not None else () if attempt.done else cases
            progress.say(f"{job.fabric.name}: {lost[0].id if lost else 'a job'}: {status}: {ending.reason}")
            self._lose(job, lost, status, ending.reason, progress)
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
        self._told, self.done = dict[str, Any](), 0
        self.backend = launch.backend(run.library)
        others = able(job.fabric, job.libraries, job.flavour, job.hosts)
        self.settings = settings(job.fabric, (self.backend, *others), job.flavour, job.hosts)

    def supervise(self) -> Ending:
        run, job = self._run, self._job
        by_rank = self.settings.by_rank
        program = launch.worker_program(job.thread_level, job.cpus, hosts=job.hosts, settings=by_rank)
        command = run.command(job.fabric, job.hosts, program, **self.settings.shared, OMP_NUM_THREADS="1")
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
        recipe_data: dict[str, Any] = {"flavour": job.flavour, "backend": self.backend, "env": self.settings.shared}
        if self.settings.sets:
            recipe_data |= {"sets": self.settings.sets, "of": self.settings.of}
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
