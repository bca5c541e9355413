"""The ``dpu`` benchmark: hosts and DPUs side by side, and what can hide on a DPU. torch is imported when it runs."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from fabrics.errors import CannotRun, UserError
from microbench.case import Case, Outcome
from microbench.job import lowest_fault
from microbench.memory import available_bytes
from microbench.record import Metric
from microbench.registry import Benchmark
from training.characterize import arrays, hiding, links, pace, rates
from training.characterize.cores import Team, machine_cpus
from training.characterize.crew import Crew, check, resting
from training.characterize.kernels import BY_TORCH, NAMES, UNITS, VARIANTS, WHAT, Bench, base
from training.characterize.measure import Own, Turns

if TYPE_CHECKING:
    from microbench.job import Job

NAME = "dpu"
OPTIONS = ("kernels",)


def run(job: Job, case: Case) -> Outcome:
    """Characterize every host and DPU of a job with roles, and the links between them.

    ``case.options["kernels"]`` names some of the kernels (all unless given). Raises Unsupported without hosts and DPUs,
    UserError for an option that cannot be meant, CannotRun where a rank fails: each on all ranks alike.
    """
    started = time.monotonic()
    check(job.roles, job.size)
    variants = wanted(case.options)
    crew, quiet = Crew.of(job), resting(job)
    quiet.barrier()
    bench, told = _bench(job, crew, variants)
    held = [any(crew.seats[rank].quota_cores is not None for rank in turn) for turn in crew.turns]
    chosen = pace.pace(case.budget_s, len(variants), held)
    try:
        own = Turns(crew, job.rank, quiet, bench).run(variants, chosen)
    finally:
        bench.close()
    if fault := lowest_fault(job.comm, own.fault):
        raise CannotRun(f"dpu: {fault}")
    found = links.measure(job, case, crew, quiet)
    everyone: list[Own] | None = job.comm.gather(own)
    if everyone is None:
        return Outcome()
    method = {
        **told, "blocks": chosen.blocks, "block_s": chosen.free_s, "block_under_quota_s": chosen.held_s,
        "links": found.method, "measuring_s": round(time.monotonic() - started, 3),
    }  # fmt: skip
    return outcome(crew, everyone, variants, found.metrics, method, job.seed)


def wanted(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The variants of the kernels that a case's options name; UserError for what there is none of."""
    for name in options:
        if name not in OPTIONS:
            raise UserError(f"dpu has no option {name!r}: one of {', '.join(OPTIONS)}")
    names = options.get("kernels", NAMES)
    if isinstance(names, str) or not names:
        raise UserError(f"dpu: kernels is {names!r}: a list of {', '.join(NAMES)}")
    for name in names:
        if name not in NAMES:
            raise UserError(f"dpu has no kernel {name!r}: one of {', '.join(NAMES)}")
    return tuple(variant for variant in VARIANTS if base(variant) in names)


def _bench(job: Job, crew: Crew, variants: Sequence[str]) -> tuple[Bench, dict[str, Any]]:
    """This rank's kernels, and what is to be told of how they are made. Collective."""
    needed = any(base(variant) in BY_TORCH for variant in variants)
    torch = _torch() if needed else None
    mine = (torch is not None, arrays.last_level_bytes(), available_bytes(), len(machine_cpus()))
    rows = job.comm.allgather(mine)
    sizes = [_array(crew, rank, rows) for rank in range(job.size)]
    short = next((why for nbytes, why in sizes if not nbytes), "")
    if short:
        raise CannotRun(f"dpu: {short}")
    everywhere = all(row[0] for row in rows)
    bench = Bench(job.cpus[job.rank][0], Team(machine_cpus()), torch if everywhere else None, sizes[job.rank][0])
    lacking = [rank for rank, row in enumerate(rows) if needed and not row[0]]
    warnings = [f"rank {rank}: {why}" for rank, (_, why) in enumerate(sizes) if why]
    warnings += [f"no torch on ranks {', '.join(map(str, lacking))}: numpy computes, on all ranks"] if lacking else []
    return bench, {
        "last_level_cache_bytes": [row[1] for row in rows],
        "triad_array_bytes": [nbytes for nbytes, _ in sizes],
        "cores": [row[3] for row in rows],
        "torch": torch.__version__ if torch is not None and everywhere else None,
        "warnings": warnings,
    }


def _torch() -> ModuleType | None:
    """torch, or None where there is none; the process runs where it ran before."""
    cpus = os.sched_getaffinity(0)
    try:
        import torch  # noqa: PLC0415 - it takes seconds
    except ImportError:
        return None
    finally:
        os.sched_setaffinity(0, cpus)
    return torch


def _array(crew: Crew, rank: int, rows: Sequence[tuple[bool, int | None, int, int]]) -> tuple[int, str]:
    """Bytes of a triad's array of a rank, and what must be told of it; 0 and why where none fits."""
    here = [other for other, machine in enumerate(crew.machines) if machine == crew.machines[rank]]
    try:
        return arrays.array_bytes(rows[rank][1], min(rows[other][2] for other in here), len(here))
    except ValueError as error:
        return 0, f"rank {rank}: {error}"


def outcome(
    crew: Crew, everyone: Sequence[Own], variants: Sequence[str], between: Mapping[str, Metric],
    method: Mapping[str, Any], seed: int,
) -> Outcome:  # fmt: skip
    """What rank 0 reports: rates of hosts and DPUs, their ratios, links, and what can hide."""
    ranks = {role: crew.ranks(role) for role in rates.ROLES}
    table = {variant: rows(everyone, variant) for variant in variants}
    known = {**rates.metrics(table, ranks, seed), **between}
    found = hiding.metrics(known)
    metrics = known | found
    per_rank = rates.per_rank(table)
    measured = [variant for variant in variants if not table[variant].missing]
    return Outcome(
        metrics=metrics,
        method={
            **method,
            "per_rank": per_rank,
            "kernels": {name: WHAT[name] for name in dict.fromkeys(map(base, variants))},
            "all_cores": "a thread on each of the machine's cores; torch's own threads where torch computes",
            "units_per_block": {v: [own.units[v] for own in everyone] for v in measured},
            "facts": [own.facts for own in everyone],
            "findings": [finding.as_dict() for finding in hiding.findings(found)],
            "sync": "turns: one rank of a machine at a time, the others asleep",
            "clock": "CLOCK_MONOTONIC",
            "intervals": f"{rates.INTERVALS}; {hiding.INTERVALS}",
            **_emulation(crew, metrics),
        },
        samples={v: np.array([own.ns[v] for own in everyone], "i8") for v in measured},
        reported_ranks=tuple(range(len(everyone))),
    )


def rows(everyone: Sequence[Own], variant: str) -> rates.Rows:
    """All ranks' seconds per unit of a kernel."""
    blocks = max((len(own.ns.get(variant, ())) for own in everyone), default=0)
    seconds = np.full((len(everyone), blocks), np.nan)
    for rank, own in enumerate(everyone):
        if variant in own.ns:
            seconds[rank] = np.array(own.ns[variant]) * 1e-9 / own.units[variant]
    missing = {rank: own.missing[variant] for rank, own in enumerate(everyone) if variant in own.missing}
    return rates.Rows(UNITS[base(variant)], seconds, missing)


def _emulation(crew: Crew, metrics: Mapping[str, Metric]) -> dict[str, Any]:
    """What of an emulated DPU is emulation: the quota of each rank, and the speed that was measured under it."""
    quotas = [seat.quota_cores for seat in crew.seats]
    kept: dict[str, Any] = {"emulated": crew.emulated, "quota_cores": quotas, "speeds": [s.speed for s in crew.seats]}
    if not crew.emulated:
        return kept
    speed = metrics.get("ratio.work")
    seen = "" if speed is None or speed.value is None else f": measured speed {speed.value:.3g} of a host's"
    dpus = sorted({q for rank in crew.ranks("dpu") if (q := quotas[rank]) is not None})
    quota = f"CPU quota {', '.join(f'{100 * q:.4g} %' for q in dpus)} of a core" if dpus else "no CPU quota"
    return kept | {"emulation": f"EMULATED: DPUs are this machine's own cores{seen}; {quota}"}


BENCHMARKS = (
    Benchmark(
        NAME, "DPUs beside their hosts: cores, memory, links, and what can hide", run, min_ranks=2, sized=False,
        kind="dpu",
    ),
)  # fmt: skip
