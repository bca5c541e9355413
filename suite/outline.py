"""What a dry run prints, and how a plan's cases are told in a few words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tabulate import tabulate

from fabrics.model import Fabric
from microbench.case import Case
from microbench.device import CPU
from microbench.registry import LIBRARY, MPI
from reports.units import count
from suite.plan import Plan, estimate_job_s

_WIDEST = 72
_SEVERAL = "; "


def outline(plan: Plan, fabrics: Sequence[Fabric]) -> str:
    """A line for each job, what is left out with its status and reason, and about how long all of it takes."""
    rows = [
        (job.number, job.launch, job.fabric.name, len(job.hosts), len(job.cases), told(job.cases),
         f"{estimate_job_s(job):.0f}")
        for job in plan.jobs
    ]  # fmt: skip
    heads = ("job", "launch", "fabric", "ranks", "cases", "what is measured, and by what", "about s")
    table = tabulate(rows, headers=heads, maxcolwidths=[None, None, None, None, None, _WIDEST, None])
    left_out = [f"{s.status}: {s.case.id}: {s.reason}" for s in plan.skips]
    left_out += [f"unusable: fabric {f.name}: {f.unusable}" for f in fabrics if not f.usable]
    total = f"plan {plan.name}: {count(len(plan.jobs), 'job')}, at most about {plan.estimate_s / 60:.1f} minutes"
    return "\n".join([table, *left_out, *plan.notes, total])


def told(cases: Iterable[Case]) -> str:
    """How many cases each benchmark has, and by what they are: ``3 allreduce (library; ring; gloo), 2 latency``."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(case.benchmark, []).append(case)
    parts = []
    for benchmark, same in found.items():
        named = list(dict.fromkeys(way for case in same for way in ways(case)))
        parts.append(f"{len(same)} {benchmark}" + ("" if named == [LIBRARY] else f" ({_SEVERAL.join(named)})"))
    return ", ".join(parts)


def ways(case: Case) -> list[str]:
    """By what a case is measured: ``library``, ``ring``, ``gloo``, ``library, in-place``, ``library on cuda``.

    Of what overlaps, the modes that it compares and what is unusual of its compute; of training, what is trained.
    """
    if case.workload or "compare" in case.options:
        return [text for text in ("/".join(case.options.get("compare", ())), case.workload) if text]
    name = case.algorithm if case.backend == MPI else case.backend
    called = f"{name}, {case.mode}" if case.mode else name
    return [called if case.device == CPU else f"{called} on {case.device}"]
