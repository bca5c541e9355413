"""The offload benchmark: how much of an allreduce hides behind a host's compute, on the host and on DPUs.

One case times six steps in interleaved blocks (:mod:`collectives.offload.schedule`) with one fixed count of work,
and judges the offload by the fastest that hosts manage without it (:mod:`collectives.offload.figures`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives.offload import figures, schedule
from collectives.offload.crew import Crew, host_count
from collectives.offload.desk import Desk, Times, Work
from collectives.offload.waiting import Quiet, Waiting, choose
from fabrics.errors import UserError
from microbench.case import Case, Invalid, Outcome
from microbench.dtypes import DTYPES
from microbench.engine import durations
from microbench.job import Job
from microbench.registry import Benchmark

_SPANS = {"post": (0, 1), "work": (1, 2)}  # between which stamps of a timed program
_DISTURBED = 1.05  # of the calibrated time


def run(job: Job, case: Case) -> Outcome:
    """Measure one case on every rank of a job of hosts and their DPUs.

    ``case.options["compute_fraction"]`` sizes the compute by the hosts' own time of the allreduce; it is 1 unless
    given. ``case.options["waiting"] = "spin"`` makes emulated DPUs spin too. Raises CannotRun for other roles than
    hosts and one DPU each; wrong data or a wrong tally make an invalid outcome without times.
    """
    started = time.monotonic()
    fraction = float(case.options.get("compute_fraction", 1.0))
    if not 0 <= fraction <= 100:
        raise UserError(f"compute_fraction {fraction:g}: 0 to 100 times the allreduce's own time")
    hosts = host_count(job.roles, job.size)
    waiting = choose(job, str(case.options.get("waiting", "auto")))
    crew = Crew(job, case, waiting)
    desk = Desk(job, crew, Quiet(job, waiting), job.fabric.emulated)
    try:
        work = desk.prepare(fraction, case.budget_s)
        blocks, account = desk.rounds(case, started)
        shares = _dpu_account(desk, hosts)
    except Invalid as error:  # raised by all ranks alike, so all can give the communicator back
        crew.close()
        return Outcome("invalid", str(error))
    crew.close()
    if job.rank:
        return Outcome()
    return _outcome(job, _samples(blocks), {**account, **shares, **_method(job, waiting, work)}, work, desk)


def _dpu_account(desk: Desk, hosts: int) -> dict[str, Any]:
    """What the DPUs did, gathered on every rank: their collectives, and their processors' time.

    Raises Invalid on every rank alike when a DPU's tally is not the number of collectives that were asked for.
    """
    idle = [step for step in schedule.STEPS if not schedule.offloaded(step)]
    busy = [step for step in schedule.STEPS if schedule.offloaded(step)]
    row = [float(desk.crew.tally[0]), float(desk.asked)]
    row += [sum(spent[step] for step in steps) for steps in (idle, busy) for spent in (desk.cpu_s, desk.wall_s)]
    rows = desk.quiet.gather(np.array(row))
    asked, dpus = int(rows[0, 1]), rows[hosts:]
    tally = [int(count) for count in dpus[:, 0]]
    check_tally(tally, asked)
    return {
        "tally": {"asked": asked, "done": tally},
        "idle_dpu_cpu_share": [round(float(cpu / wall), 4) for cpu, wall in dpus[:, 2:4]],
        "busy_dpu_cpu_s_per_operation": [float(cpu / asked) for cpu in dpus[:, 4]],
    }


def check_tally(done: Sequence[int], asked: int) -> None:
    """Raise Invalid unless every DPU did as many collectives as were asked for."""
    if any(count != asked for count in done):
        told = ", ".join(map(str, done))
        raise Invalid(f"offload not used: {asked} collectives were asked for, the DPUs did {told}")


def _samples(blocks: Mapping[str, Sequence[Times]]) -> dict[str, NDArray[np.int64]]:
    """Times in ns, each of shape (rounds, iterations); the first iteration of a block is its lead-in."""
    found: dict[str, NDArray[np.int64]] = {}
    for step, stamps in blocks.items():
        found[step] = np.stack([durations(block) for block in stamps])
        if schedule.overlapped(step):
            for name, (begin, end) in _SPANS.items():
                spans = np.stack([block[:, end] - block[:, begin] for block in stamps])
                found[f"{schedule.mode(step)}.{name}"] = spans
    return found


def _outcome(
    job: Job, samples: Mapping[str, NDArray[np.int64]], method: dict[str, Any], work: Work, desk: Desk
) -> Outcome:
    # the probes within probes16's work belong to the library: they would count as dilation
    timed = {name: times[:, 1:] for name, times in samples.items() if name != "probes16.work"}
    medians = figures.medians(timed)
    warnings = crowding(job.hosts, job.cpus, job.fabric.emulated) + disturbance(medians["compute"], work.alone_ns)
    lead_in = {f"lead_in.{name}": samples[name][:, :1] for name in schedule.STEPS}
    return Outcome(
        metrics=figures.metrics(timed, work.noise_ns, job.seed),
        method={
            **method,
            "best_host": figures.best_host(medians),
            "preemptions": desk.preemptions,
            "warnings": warnings,
        },
        validation={**desk.validation, "checked_bytes": desk.checked_bytes},
        samples={name: times.reshape(1, -1) for name, times in {**timed, **lead_in}.items()},
        reported_ranks=(0,),
        placement=placement(job.hosts, job.cpus, job.fabric.emulated),
    )


def _method(job: Job, waiting: Waiting, work: Work) -> dict[str, Any]:
    emulated = job.fabric.emulated
    stands_in = "other hosts sleep for the compute's time when staged" if emulated else "every host computes"
    return {
        "sync": "barrier of the hosts",
        "clock": "CLOCK_MONOTONIC",
        "pages": job.pages,
        "batched": 1,
        "timer_noise_s": work.noise_ns * 1e-9,
        "compute_steps": work.steps,
        "compute_ns_per_step": work.ns_per_step,
        "compute_fraction": work.fraction,
        "calibration": "rank 0 alone, all other ranks waiting as below; a fixed count of multiply-adds in registers",
        "waiting": waiting.as_dict(),
        "peers": stands_in,
        "staged": "sends finished before the compute; whole messages",
        "probes": schedule.PROBES,
        "pure_of": {"probes16": "host.pure"},
        "intervals": figures.INTERVALS,
        "emulated": emulated,
    }


def _shares_core(a: int, b: int, hosts: Sequence[str], cpus: Sequence[Sequence[int]], emulated: bool) -> bool:
    return (emulated or hosts[a] == hosts[b]) and bool(set(cpus[a]) & set(cpus[b]))


def crowding(hosts: Sequence[str], cpus: Sequence[Sequence[int]], emulated: bool) -> list[str]:
    """What is wrong with where the ranks are: rank 0, which is reported, must have its cores to itself."""
    with_0 = [rank for rank in range(1, len(hosts)) if _shares_core(0, rank, hosts, cpus, emulated)]
    if not with_0:
        return []
    return [f"rank 0 shares its cores with ranks {', '.join(map(str, with_0))}: compute and communication compete"]


def disturbance(compute_ns: float, alone_ns: float) -> list[str]:
    """Whether the work took longer in the rounds than when it was calibrated."""
    if compute_ns <= _DISTURBED * alone_ns:
        return []
    ratio = compute_ns / max(alone_ns, 1.0)
    return [f"compute took {ratio:.2f} times its calibrated time: other work shared the core of rank 0"]


def placement(hosts: Sequence[str], cpus: Sequence[Sequence[int]], emulated: bool) -> str:
    """``split`` where the reported host has cores of its own, else ``shared``, and each rank's host and cores."""
    where = " ".join(f"{host}:{','.join(map(str, c))}" for host, c in zip(hosts, cpus, strict=True))
    return f"{'shared' if crowding(hosts, cpus, emulated) else 'split'} {where}"


BENCHMARKS = (
    Benchmark(
        "offload_allreduce",
        "allreduce behind a host's compute, on hosts and offloaded to DPUs",
        run,
        min_ranks=4,
        dtypes=tuple(DTYPES),
    ),
)
