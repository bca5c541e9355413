"""From a plan file and the fabrics here to jobs: pure arithmetic, so that a dry run tells what a run would do."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

from fabrics.errors import UserError
from fabrics.model import Fabric
from microbench import pacing
from microbench.case import Case
from microbench.record import Status
from microbench.registry import BLOCKING, LIBRARY, case_mode
from suite.placement import HERE, Target, flavour, flavoured, kind_of, place, why_not
from suite.planfile import PlanFile, Section
from training.workload import Workload

_MPI_START_S, _TORCH_START_S, _PROBE_S = 1.5, 6.0, 1.5
_ASSUMED_BYTES_PER_S = 1e9
_DATA_S_PER_BYTE = 4e-9  # to get buffers, write them, and check them twice: a rank on a core of its own
_DEADLINE_S = 30.0


@dataclass(frozen=True)
class JobPlan:
    """One MPI job: the same fabric, ranks and roles; ``hosts``, ``roles`` and ``cpus`` have an entry per rank."""

    number: int
    launch: int
    fabric: Fabric
    hosts: tuple[str, ...]
    roles: tuple[str, ...]
    cpus: tuple[tuple[int, ...], ...]
    cases: tuple[Case, ...]
    thread_level: str = "single"

    @property
    def flavour(self) -> str:
        """Of the recipe that its placement takes."""
        return flavour(self.hosts)

    def summary(self) -> dict[str, Any]:
        """What ``run.json`` keeps of the plan."""
        return {
            "job": self.number,
            "launch": self.launch,
            "fabric": self.fabric.name,
            "hosts": self.hosts,
            "roles": self.roles,
            "cpus": self.cpus,
            "cases": [case.id for case in self.cases],
            "estimate_s": round(estimate_job_s(self), 1),
        }


@dataclass(frozen=True)
class Skip:
    """A case that is not run, with its status and reason."""

    case: Case
    fabric: Fabric
    status: Status
    reason: str


@dataclass(frozen=True)
class Plan:
    """All that a run will do, in order; ``notes`` tell what was left out to keep ``budget_s``, its limit."""

    name: str
    launches: int
    jobs: tuple[JobPlan, ...]
    skips: tuple[Skip, ...]
    budget_s: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def estimate_s(self) -> float:
        """At most about how long it takes: measuring stops when it knows enough."""
        return sum(estimate_job_s(job) for job in self.jobs)


def make_plan(
    file: PlanFile, fabrics: Sequence[Fabric], cpus: Sequence[int], seed: int = 1, target: Target = HERE
) -> Plan:
    """Jobs for every section on every usable fabric; each launch is a fresh set of jobs, in an order of its own.

    Cases of one fabric, rank count and kind share a job. ``cpus`` are the processors of this machine. UserError where
    a case stands in the plan twice: only one of its definitions could hold.
    """
    usable = [fabric for fabric in fabrics if fabric.usable]
    groups: dict[tuple[str, int, str], list[Case]] = {}
    skips: list[Skip] = []
    planned: set[str] = set()
    for fabric in usable:
        for section in file.sections:
            if section.fabrics and fabric.name not in section.fabrics:
                continue
            for plain in section_cases(section, fabric):
                status, reason = why_not(plain, fabric, len(cpus), target)
                case = plain if status == "skipped" else flavoured(plain, fabric, cpus, target)
                if case.id in planned:
                    raise UserError(f"plan {file.name}: {case.id} stands in it twice: leave one of them out")
                planned.add(case.id)
                if status != "ok":
                    skips.append(Skip(case, fabric, status, reason))
                else:
                    groups.setdefault((fabric.name, case.ranks, kind_of(case)), []).append(case)
    by_name = {fabric.name: fabric for fabric in usable}
    jobs: list[JobPlan] = []
    for launch in range(1, file.launches + 1):
        order = list(groups.items())
        rng = random.Random(f"{seed}-{launch}")  # noqa: S311 - so that drift does not always meet the same fabric
        rng.shuffle(order)
        for (name, ranks, kind), cases in order:
            hosts, roles, where = place(by_name[name], ranks, kind, cpus, target.slots)
            # the first launch goes in the plan's order, the others in one of their own: a sweep may leave traces
            inner = cases if launch == 1 else rng.sample(cases, len(cases))
            jobs.append(JobPlan(len(jobs) + 1, launch, by_name[name], hosts, roles, where, tuple(inner)))
    return Plan(file.name, file.launches, tuple(jobs), tuple(skips))


def why_nothing(plan: Plan, file: PlanFile, fabrics: Sequence[Fabric], asked: Sequence[str] = ()) -> str:
    """Why a plan without jobs has none, in a line: every case is skipped, or no section is for a fabric that is left.

    ``fabrics`` are all there are, ``asked`` the names that the user kept to; empty: all.
    """
    if plan.skips:
        first = plan.skips[0]
        return f"plan {plan.name} has nothing that can be measured here: {first.case.id}: {first.reason}; see --dry-run"
    named = list(dict.fromkeys(name for section in file.sections for name in section.fabrics))
    left_out = [name for name in named if asked and name not in asked]
    if left_out:
        only = f"plan {plan.name} is for {', '.join(named)} alone"
        return f"{only}, and --fabric asks for {', '.join(asked)}: ask for {left_out[0]}, or leave out --fabric"
    unusable = [f"{fabric.name}: {fabric.unusable}" for fabric in fabrics if fabric.name in named]
    return f"plan {plan.name} has nothing that can be measured here: {'; '.join(unusable)}"


def section_cases(section: Section, fabric: Fabric) -> Iterable[Case]:
    """The cases of one benchmark on one fabric."""
    base = Case(
        section.benchmark,
        fabric.name,
        budget_s=section.budget_s,
        min_iterations=section.min_iterations,
        max_iterations=section.max_iterations,
        precision=section.precision,
        sync=section.sync or "auto",
        mode=_mode(section.sync),
    )
    for model in section.models:
        options = {key: value for key, value in model.items() if key != "budget_s"}
        case = replace(base, backend="gloo", algorithm="ddp", workload=Workload(**options).label, options=options)
        case = replace(case, budget_s=float(model.get("budget_s", section.budget_s)))
        yield with_deadline(case, fabric, section.deadline_s)
    if section.models:
        return
    for ranks, dtype, nbytes in product(section.ranks, section.dtypes or ("",), section.sizes or (None,)):
        for way in _ways(section):
            yield with_deadline(
                replace(base, ranks=ranks, dtype=dtype, nbytes=nbytes, **way), fabric, section.deadline_s
            )


def _ways(section: Section) -> Iterable[dict[str, Any]]:
    """What is set beside each other at one size: backends, the MPI library's modes, and algorithms of our own."""
    yield from ({"backend": backend} for backend in section.backends if backend != "mpi")
    if "mpi" in section.backends:
        yield from ({"mode": _mode(section.sync, mode)} for mode in section.modes if LIBRARY in section.algorithms)
        yield from ({"algorithm": algorithm} for algorithm in section.algorithms if algorithm != LIBRARY)


def _mode(sync: str, mode: str = BLOCKING) -> str:
    """What a case's mode says: nothing of the usual ones, so that ids of cases stay as they were."""
    return " ".join(filter(None, (case_mode(mode), f"{sync} sync" if sync else "")))


def with_deadline(case: Case, fabric: Fabric, deadline_s: float | None = None) -> Case:
    """The case with the moment at which a supervisor gives it up: the plan's, or well beyond its estimate."""
    return replace(case, deadline_s=deadline_s or _DEADLINE_S + 6 * estimate_s(case, fabric))


def estimate_s(case: Case, fabric: Fabric) -> float:
    """About how long a case takes at most: its budget, or what the fabric's rate makes of its fewest iterations."""
    rate = (fabric.rate_bits_per_s or 8 * _ASSUMED_BYTES_PER_S) / 8
    messages = 64 if case.benchmark in ("bandwidth", "bibw", "message_rate") else 2
    per_iteration_s = (case.nbytes or 0) * messages / rate
    data_s = _DATA_S_PER_BYTE * (case.nbytes or 0)
    return (pacing.at_most_s(case, per_iteration_s) + data_s) * 1.15 + 0.05


def estimate_job_s(job: JobPlan) -> float:
    """About how long a job takes, its start and probe included."""
    start = _TORCH_START_S if any(case.backend != "mpi" for case in job.cases) else _MPI_START_S
    return start + _PROBE_S + sum(estimate_s(case, job.fabric) for case in job.cases)


def spec(job: JobPlan, modules: Iterable[str], pages: str, seed: int) -> dict[str, Any]:
    """What the job's rank 0 is handed on its standard input."""
    return {
        "fabric": job.fabric.as_dict(),
        "hosts": job.hosts,
        "roles": job.roles,
        "launch": job.launch,
        "seed": seed,
        "pages": pages,
        "modules": list(modules),
        "cases": [asdict(case) for case in job.cases],
    }
