"""Going on with a run that did not come to its end: what has to be the same, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fabrics.errors import UserError
from microbench.record import Record
from reports.load import NotARun, RunData, load, mapping
from reports.summary import WRONG, newest
from reports.units import count, rate, volume
from suite.budget import DROPPED
from suite.plan import JobPlan, Plan

_PLAN = {"seed": "seed", "pages": "pages"}
_ENVIRONMENT = {
    "hostname": "hostname", "kernel": "kernel", "machine": "machine", "cpu": "CPU", "cores": "cores",
    "transparent_hugepages": "huge pages", "python": "Python", "mpi": "MPI", "mpiexec": "mpiexec",
}  # fmt: skip
_FABRIC = ("kind", "rate_bits_per_s", "hosts", "devices", "emulated", "note")  # not the lab: each run names its own
_SAME_MEMORY = 0.01  # what a kernel counts as its memory differs a little from one boot to the next
_MOST_TOLD = 5
_ABSENT = "absent"


@dataclass(frozen=True)
class Earlier:
    """What earlier attempts at a run left on disk."""

    data: RunData

    @property
    def records(self) -> tuple[Record, ...]:
        """A record of every case and launch that has one."""
        return newest(self.data.records)

    def done(self, retry: bool = False) -> frozenset[tuple[str, int]]:
        """Case and launch of every record that stays, whatever came of it; with ``retry`` none that went wrong.

        What was left out to keep a budget is never done: a later one may have room for it.
        """
        stay = (r for r in self.records if not r.reason.startswith(DROPPED) and not (retry and went_wrong(r)))
        return frozenset((record.id, record.launch) for record in stay)

    @property
    def measured(self) -> bool:
        """Whether there is a number."""
        return any(record.status == "ok" for record in self.records)

    @property
    def wrong(self) -> bool:
        """Whether a record went wrong, or a job that has not been tried again since."""
        return any(map(went_wrong, self.records)) or any(
            _job_went_wrong(job) and not job.get("retried") for job in self.data.jobs
        )

    def jobs(self, retry: bool = False) -> list[dict[str, Any]]:
        """What is known of the jobs; with ``retry`` those that went wrong are marked ``retried``."""
        return [{**job, "retried": True} if retry and _job_went_wrong(job) else dict(job) for job in self.data.jobs]

    @property
    def unreachable(self) -> dict[str, str]:
        """Why hosts did not reach each other over a fabric, by its name."""
        return dict(mapping(mapping(self.data.run.get("reachability")).get("unreachable")))

    @property
    def warnings(self) -> list[str]:
        """What was told of the run; what a budget dropped may be measured now."""
        return [text for text in self.data.run.get("warnings") or () if not text.startswith(DROPPED)]

    @property
    def last_job(self) -> int:
        """The highest number that a job of the run has had."""
        jobs = (*self.data.jobs, *self.data.plan.get("jobs", ()))
        return max((job["job"] for job in jobs if isinstance(job.get("job"), int)), default=0)


def went_wrong(record: Record) -> bool:
    """Whether a run with this record did not go as it should have."""
    return record.status in WRONG or (record.status == "ok" and record.proof == "disproved")


def _job_went_wrong(job: Mapping[str, Any]) -> bool:
    return job.get("status") in ("failed", "timeout") or mapping(job.get("proof")).get("verdict") == "disproved"


def read(directory: Path) -> Earlier:
    """What is on disk; UserError where it cannot be read."""
    try:
        return Earlier(load(directory))
    except NotARun as error:
        raise UserError(f"cannot resume: {error}") from None


def definitions(plan: Plan) -> dict[str, dict[str, Any]]:
    """By case, how it is to be measured: all that its id does not say."""
    cases = {case.id: case for job in plan.jobs for case in job.cases}
    known = {case_id: case.identity() | {"ranks": case.ranks} for case_id, case in cases.items()}
    return {
        case_id: {name: value for name, value in case.as_dict().items() if name not in known[case_id]}
        for case_id, case in cases.items()
    }


def described(plan: Plan, seed: int, pages: str) -> dict[str, Any]:
    """What ``run.json`` says of a plan."""
    return {
        "tier": plan.name,
        "launches": plan.launches,
        "seed": seed,
        "pages": pages,
        "budget_s": plan.budget_s,
        "cases": definitions(plan),
        "jobs": [job.summary() for job in plan.jobs],
    }


def missing(plan: Plan, earlier: Earlier, retry: bool = False) -> Plan:
    """The part of ``plan`` that is not :meth:`Earlier.done`, in jobs with numbers that are new."""
    done, jobs = earlier.done(retry), list[JobPlan]()
    for job in plan.jobs:
        cases = tuple(case for case in job.cases if (case.id, job.launch) not in done)
        if cases:
            jobs.append(replace(job, number=earlier.last_job + len(jobs) + 1, cases=cases))
    skips = tuple(skip for skip in plan.skips if (skip.case.id, 1) not in done)
    return replace(plan, jobs=tuple(jobs), skips=skips)


def check(directory: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise UserError where the two descriptions of a run (``run.json``) differ in what numbers depend on."""
    if not mapping(mapping(before.get("plan")).get("cases")):
        raise UserError(f"cannot resume {directory}: it does not say how its cases were to be measured")
    found = list(differences(before, now))
    if found:
        more = f"; and {len(found) - _MOST_TOLD} more" if len(found) > _MOST_TOLD else ""
        raise UserError(
            f"cannot resume {directory}: {'; '.join(found[:_MOST_TOLD])}{more};"
            " choose another folder or the same options"
        )


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Each difference in words: of the plan first, then of the environment."""
    plans = mapping(before.get("plan")), mapping(now.get("plan"))
    systems = mapping(before.get("environment")), mapping(now.get("environment"))
    yield from _values(_PLAN, *plans)
    yield from _launches(*plans)
    was, is_now = (mapping(plan.get("cases")) for plan in plans)
    yield from _cases(was, is_now, may_grow=plans[0].get("budget_s") is not None)
    yield from _said("processors", *(_processors(plan) for plan in plans))
    yield from _fabrics(before, now)
    yield from _said("fabricbench", before.get("fabricbench"), now.get("fabricbench"))
    yield from _values(_ENVIRONMENT, *systems)
    memory = [float(system.get("memory_bytes") or 0) for system in systems]
    if abs(memory[0] - memory[1]) > _SAME_MEMORY * max(memory):
        yield from _said("memory", *map(volume, memory))
    packages = [mapping(system.get("packages")) for system in systems]
    yield from _values({name: name for name in sorted({**packages[0], **packages[1]})}, *packages)


def _values(names: Mapping[str, str], before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name, label in names.items():
        yield from _said(label, before.get(name), now.get(name))


def _launches(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """A budget may have dropped launches: then there may be more of them now."""
    was, is_now = before.get("launches"), now.get("launches")
    if before.get("budget_s") is None or not (isinstance(was, int) and isinstance(is_now, int) and was < is_now):
        yield from _said("launches", was, is_now)


def _said(label: str, before: Any, now: Any) -> Iterator[str]:
    if before != now:
        yield f"{label} was {_text(before)}, now {_text(now)}"


def _text(value: Any) -> str:
    return _ABSENT if value is None or value == "" else str(value)


def _processors(plan: Mapping[str, Any]) -> list[int]:
    jobs: Sequence[Mapping[str, Any]] = plan.get("jobs") or ()
    lists = (cpus for job in jobs for cpus in job.get("cpus") or () if isinstance(cpus, list))
    return sorted({cpu for cpus in lists for cpu in cpus})


def _cases(before: Mapping[str, Any], now: Mapping[str, Any], may_grow: bool) -> Iterator[str]:
    for told, ours, others in (("gone", before, now), *([] if may_grow else [("new", now, before)])):
        only = [case_id for case_id in ours if case_id not in others]
        if only:
            yield f"{count(len(only), 'case')} {told} ({only[0]}{', ...' if len(only) > 1 else ''})"
    changed: dict[str, int] = {}
    for case_id in before:
        if case_id in now:
            was, is_now = mapping(before[case_id]), mapping(now[case_id])
            for text in _values({name: name for name in {**was, **is_now}}, was, is_now):
                changed[text] = changed.get(text, 0) + 1
    for text, cases in changed.items():
        yield f"of {count(cases, 'case')} {text}"


def _fabrics(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """The first difference of each fabric that both plans use."""
    used = [{str(job.get("fabric")) for job in mapping(run.get("plan")).get("jobs") or ()} for run in (before, now)]
    known = [{str(fabric.get("name")): fabric for fabric in run.get("fabrics") or ()} for run in (before, now)]
    for name in sorted(used[0] & used[1] & known[0].keys() & known[1].keys()):
        pairs = ((field, known[0][name].get(field), known[1][name].get(field)) for field in _FABRIC)
        for field, was, is_now in pairs:
            if was != is_now:
                told = [rate(x) if field == "rate_bits_per_s" else x for x in (was, is_now)]
                yield from _said(f"{field.removesuffix('_bits_per_s')} of fabric {name}", *told)
                break
