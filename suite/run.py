"""A run: plan, jobs one after the other, records as they arrive, and the report."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from fabrics.lab.cluster import Lab
from fabrics.model import Fabric
from fabrics.recipes import NoRecipe, recipe
from microbench.case import Case
from microbench.record import Record, Status
from suite import environment, launch, leftovers, neighbours, protocol
from suite.plan import JobPlan, Plan, spec
from suite.progress import Progress
from suite.store import RunFolder
from suite.supervise import Ending, supervise

OK, CANNOT, INTERRUPTED = 0, 4, 130


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


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
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    worst: int = OK
    measured: bool = False
    environment: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        launcher = f"{self.launcher.path} ({self.launcher.version})"
        self.environment = environment.describe(self.library, launcher, launch.removed_variables())

    def execute(self) -> int:
        """Run every job; the exit code. An interrupt keeps what there is and is raised again."""
        progress = Progress(sum(len(job.cases) for job in self.plan.jobs))
        self._write()
        ended = ""
        try:
            for skip in self.plan.skips:
                self.folder.add(_unrun(skip.case, skip.fabric, skip.status, skip.reason), {}, 0)
            for job in self.plan.jobs:
                self._job(job, progress)
            ended = "finished"
        except KeyboardInterrupt:
            ended = "interrupted"
            raise
        finally:
            progress.close()
            self._write(ended)
        return self.worst if self.measured else CANNOT

    def _write(self, ended: str = "") -> None:
        self.folder.write_run(
            {
                "schema": 1,
                "fabricbench": environment.version(),
                "id": self.id,
                "started": self.started,
                "finished": _now() if ended == "finished" else None,
                "ended": ended,
                "command": sys.argv,
                "plan": {
                    "tier": self.plan.name,
                    "launches": self.plan.launches,
                    "seed": self.seed,
                    "pages": self.pages,
                    "jobs": [job.summary() for job in self.plan.jobs],
                },
                "environment": self.environment,
                "fabrics": [fabric.as_dict() for fabric in self.fabrics],
                "jobs": self.jobs,
                "warnings": [neighbours.WARNING] if self.others and self.others.disturbed else [],
            }
        )

    def _job(self, job: JobPlan, progress: Progress) -> None:
        """Launch a job; after a case that ended it, go on with the remaining cases in a fresh one.

        A job that ended between two cases is launched again for the rest, unless it had not come to any.
        """
        cases = job.cases
        while cases:
            attempt = _Attempt(self, replace(job, cases=cases), progress)
            files = leftovers.present()
            try:
                ending = attempt.supervise()
            finally:
                self._tidy(files)
            self.jobs.append({**attempt.description(), "status": ending.status, "reason": ending.reason})
            self._write()
            if ending.status == "ok":
                return
            self.worst = CANNOT
            status: Status = "timeout" if ending.status == "timeout" else "failed"
            lost = (cases[ending.case],) if ending.case is not None else () if attempt.done else cases
            progress.say(f"{job.fabric.name}: {lost[0].id if lost else 'a job'}: {status}: {ending.reason}")
            for case in lost:
                self.folder.add(_unrun(case, job.fabric, status, ending.reason, job), {}, job.number)
                progress.advance()
            cases = cases[attempt.done + len(lost) :]

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
            self._run.folder.add(record, protocol.unpack(event["samples"]), self._job.number)
            self.done += 1
            self._progress.advance()
            self._run.measured |= record.status == "ok"
            if record.status in ("failed", "invalid", "timeout"):
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
