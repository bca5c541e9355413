"""From a plan file and the fabrics here to jobs: pure arithmetic, so that a dry run tells what a run would do."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

from collectives.overlap.options import NODE, Options
from fabrics.model import Fabric
from microbench import pacing
from microbench.case import Case
from microbench.device import CPU
from microbench.message_rate import unpaired
from microbench.record import Status
from microbench.registry import BLOCKING, LIBRARY, case_mode
from reports.units import count
from suite import flows, overlaps, trained
from suite.placement import FEWEST_HOSTS, HERE, Place, Seats, Target, beside, flavour, most_hosts, place, why_not
from suite.planfile import PlanFile, Section
from suite.twice import Planned
from training.characterize import pace
from training.characterize.kernels import VARIANTS, base

_MPI_START_S, _TORCH_START_S, _PROBE_S = 1.5, 6.0, 1.5
_ASSUMED_BYTES_PER_S = 1e9
_DATA_S_PER_BYTE = 4e-9  # to get buffers, write them, and check them twice: a rank on a core of its own
_LEAST_COLLECTIVE_S = 2e-4  # of a small one, with waits that sleep
_DEADLINE_S = 30.0
_LONGEST_DEADLINE_S = 1e8  # three years: 64 bits hold it in ns


@dataclass(frozen=True)
class JobPlan:
    """One MPI job: the same fabric, ranks and roles; ``hosts``, ``roles`` and ``cpus`` have an entry per rank.

    ``torch`` tells whether its cases load torch.
    """

    number: int
    launch: int
    fabric: Fabric
    hosts: tuple[str, ...]
    roles: tuple[str, ...]
    cpus: tuple[tuple[int, ...], ...]
    cases: tuple[Case, ...]
    thread_level: str = "single"
    torch: bool = False

    @property
    def flavour(self) -> str:
        """Of the recipe that its placement takes."""
        return flavour(self.hosts, self.fabric)

    @property
    def libraries(self) -> tuple[str, ...]:
        """The libraries beside MPI that its cases call."""
        return tuple(dict.fromkeys(name for case in self.cases for name in overlaps.libraries(case)))

    def summary(self) -> dict[str, Any]:
        """What ``run.json`` keeps of the plan."""
        return {
            "job": self.number,
            "launch": self.launch,
            "fabric": self.fabric.name,
            "hosts": self.hosts,
            "roles": self.roles,
            "cpus": self.cpus,
            "thread_level": self.thread_level,
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

    Cases that are placed alike share a job, unless one loads torch and the other does not, or their MPI starts at
    another thread level; what works on device memory loads torch. ``cpus`` are the processors of this machine.
    UserError where a case stands in the plan twice: only one of its definitions could hold.
    """
    usable = [fabric for fabric in fabrics if fabric.usable]
    groups: dict[_Group, list[Case]] = {}
    skips: list[Skip] = []
    planned = Planned(file.name)
    for fabric, (number, section) in product(usable, enumerate(file.sections)):
        if not section.takes(fabric):
            continue
        for seats, plain in section_cases(section, fabric, len(cpus), target):
            status, reason = why_not(plain, seats, fabric, len(cpus), target)
            where = None if status == "skipped" else place(fabric, seats, cpus, target)
            case = plain if where is None else replace(plain, recipe=flavour(where.hosts, fabric))
            planned.add(case, number)
            if status == "ok" and section.pairs and (alone := unpaired(seats.ranks)):
                status, reason = "skipped", alone
            if status != "ok" or where is None:
                skips.append(Skip(case, fabric, status, reason))
            else:
                torch = bool(overlaps.libraries(case)) or section.kind == "dpu" or case.device != CPU
                group = _Group(fabric.name, where, torch, overlaps.thread_level(case))
                groups.setdefault(group, []).append(case)
    by_name = {fabric.name: fabric for fabric in usable}
    return Plan(file.name, file.launches, tuple(_jobs(groups, by_name, file.launches, seed)), tuple(skips))


@dataclass(frozen=True)
class _Group:
    """What cases have in common that share a job."""

    fabric: str
    where: Place
    torch: bool
    thread_level: str


def _jobs(
    groups: Mapping[_Group, Sequence[Case]], fabrics: Mapping[str, Fabric], launches: int, seed: int
) -> Iterator[JobPlan]:
    """Every launch's jobs, shuffled so that drift does not always meet the same fabric.

    The first launch goes in the plan's order of cases, the others in one of their own: a sweep may leave traces.
    """
    number = 0
    for launch in range(1, launches + 1):
        order = list(groups.items())
        rng = random.Random(f"{seed}-{launch}")  # noqa: S311 - an order, no secret
        rng.shuffle(order)
        for group, cases in order:
            number += 1
            inner = tuple(cases if launch == 1 else rng.sample(cases, len(cases)))
            where, fabric, how = group.where, fabrics[group.fabric], (group.thread_level, group.torch)
            yield JobPlan(number, launch, fabric, where.hosts, where.roles, where.cpus, inner, *how)


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
    why = "; ".join(unusable) or "no network joins hosts"
    return f"plan {plan.name} has nothing that can be measured here: {why}"


def section_cases(
    section: Section, fabric: Fabric, cores: int = 1, target: Target = HERE
) -> Iterator[tuple[Seats, Case]]:
    """The cases of one benchmark on one fabric, and what places they take; ``cores`` are those of this machine."""
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
    for model, ranks in product(section.models, section.ranks):
        options = {key: value for key, value in model.items() if key != "budget_s"}
        seats, case = trained.case_of(base, options, ranks, fabric, target)
        case = replace(case, budget_s=float(model.get("budget_s", section.budget_s)))
        yield seats, with_deadline(case, fabric, section.deadline_s)
    if section.models:
        return
    if section.kind == flows.KIND:
        for case in flows.cases(section, base):
            yield Seats(case.ranks), with_deadline(case, fabric, section.deadline_s)
        return
    numbers = section.ranks or (_usual_ranks(section, fabric, cores, target),)
    swept = product(numbers, section.devices, section.dtypes or ("",), section.sizes or (None,))
    for ranks, device, dtype, nbytes in swept:
        for way in _ways(section):
            seats, own = _seated(section, way, ranks, fabric, target)
            case = replace(base, ranks=seats.ranks, device=device, dtype=dtype, nbytes=nbytes, **own)
            yield seats, with_deadline(case, fabric, section.deadline_s)


def _usual_ranks(section: Section, fabric: Fabric, cores: int, target: Target) -> int:
    """Two ranks; of collectives that DPUs take part in, one on every host that has a DPU."""
    return most_hosts(fabric, cores, target) if section.overlaps and section.with_dpus else FEWEST_HOSTS


def _seated(
    section: Section, way: dict[str, Any], ranks: int, fabric: Fabric, target: Target
) -> tuple[Seats, dict[str, Any]]:
    """The places of a case with so many host ranks, and what its options make of it."""
    if not section.with_dpus and not section.overlaps:
        return Seats(ranks), way
    there = beside(fabric, ranks, target) if section.with_dpus else 0
    if not section.overlaps:
        return Seats(ranks, there, how=NODE), {"options": {"kernels": list(section.kernels)}}
    options: Options = way["options"]
    wanted = section.dpus or there
    seats = Seats(ranks, wanted, options.workers, options.placed(fabric.emulated))
    fewer = f"{ranks} hosts on {count(wanted, 'DPU')}" if wanted != there else ""
    label = ", ".join(filter(None, (options.label, fewer)))
    return seats, {"options": overlaps.as_case(options, section.with_dpus), "workload": label}


def _ways(section: Section) -> Iterable[dict[str, Any]]:
    """What is set beside each other at one size: backends, the MPI library's modes, and algorithms of our own.

    No product is formed of these. Of what overlaps: every combination of its options.
    """
    if section.overlaps:
        yield from ({"options": options} for options in overlaps.combinations(section))
        return
    yield from ({"backend": backend} for backend in section.backends if backend != "mpi")
    if "mpi" in section.backends:
        yield from ({"mode": _mode(section.sync, mode)} for mode in section.modes if LIBRARY in section.algorithms)
        yield from ({"algorithm": algorithm} for algorithm in section.algorithms if algorithm != LIBRARY)


def _mode(sync: str, mode: str = BLOCKING) -> str:
    """What a case's mode says: nothing of the usual ones, so that ids of cases stay as they were."""
    return " ".join(filter(None, (case_mode(mode), f"{sync} sync" if sync else "")))


def with_deadline(case: Case, fabric: Fabric, deadline_s: float | None = None) -> Case:
    """The case with the moment at which a supervisor gives it up: the plan's, or well beyond its estimate."""
    return replace(case, deadline_s=deadline_s or min(_LONGEST_DEADLINE_S, _DEADLINE_S + 6 * estimate_s(case, fabric)))


def estimate_s(case: Case, fabric: Fabric) -> float:
    """About how long a case takes at most: its budget, or what the fabric's rate makes of its fewest iterations."""
    rate = (fabric.rate_bits_per_s or 8 * _ASSUMED_BYTES_PER_S) / 8
    if options := overlaps.options_of(case):
        collective_s = max(_LEAST_COLLECTIVE_S, (case.nbytes or 0) / rate)
        return overlaps.at_most_s(case, options, collective_s) * 1.15 + 0.05
    if trained.is_training(case):
        return trained.at_most_s(case, rate)
    if flow_s := flows.at_most_s(case, rate):
        return flow_s * 1.15 + 0.05
    if kernels := case.options.get("kernels"):
        variants = sum(base(variant) in kernels for variant in VARIANTS)
        return pace.at_most_s(case.budget_s, variants, case.ranks, fabric.emulated)
    messages = {"bandwidth": 64, "bibw": 64, "message_rate": 64, "loggp": 32, "reduce_local": 0}.get(case.benchmark, 2)
    per_iteration_s = (case.nbytes or 0) * messages / rate
    data_s = _DATA_S_PER_BYTE * (case.nbytes or 0)
    return (pacing.at_most_s(case, per_iteration_s) + data_s) * 1.15 + 0.05


def estimate_job_s(job: JobPlan) -> float:
    """About how long a job takes, its start and probe included."""
    start = _TORCH_START_S if job.torch else _MPI_START_S
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
