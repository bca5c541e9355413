"""The ``cfd`` benchmark: a flow in a box, split among ranks whose halos are exchanged in every step."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from microbench.case import Case, Outcome, Unsupported
from microbench.memory import available_bytes
from microbench.registry import LIBRARY, MPI, Benchmark
from training.cfd import figures, schedule
from training.cfd.blocks import Split, block, choose, fits
from training.cfd.desk import CHECKED_STEPS, Desk
from training.cfd.flow import Unstable
from training.cfd.gas import N
from training.cfd.options import Options, told
from training.cfd.solver import TILE_CELLS, needed_bytes

if TYPE_CHECKING:
    from microbench.job import Job

NAME = "cfd"


def run(job: Job, case: Case) -> Outcome:
    """Measure the flow of ``case.options`` (:class:`training.cfd.options.Options`) on every rank.

    Raises UserError for an option that cannot be, Unsupported where the ranks cannot share the grid, Invalid where bits
    differ or something is not conserved; a flow that breaks up makes a failed outcome that says when and where.
    """
    started = time.monotonic()
    if case.backend != MPI or case.algorithm != LIBRARY:
        raise Unsupported(f"cfd exchanges halos by MPI's own messages, not by {case.backend} {case.algorithm}")
    options = Options.of(case.options)
    split = split_of(options, job.size)
    if reason := shortage(job, options, split):
        return Outcome("skipped", reason)
    desk = Desk(job, options, split)
    try:
        validation = desk.check()
        ns, account = desk.rounds(case, started)
        off = desk.flow.check_conserved()
    except Unstable as error:
        return Outcome("failed", str(error))
    finally:
        desk.close()
    validation |= {"conserved_within": off, "checked_steps": CHECKED_STEPS}
    samples = {part: np.array(job.comm.allgather(ns[part]), "i8") for part in desk.parts}
    return outcome(desk, samples, account, validation)


def split_of(options: Options, ranks: int) -> Split:
    """How the ranks share the grid; Unsupported where they cannot."""
    if options.split is None:
        if found := choose(options.grid, ranks):
            return found
        raise Unsupported(f"{options.label}: {ranks} ranks would have fewer than two layers of cells in x and in y")
    if options.split[0] * options.split[1] != ranks:
        raise Unsupported(f"{options.label}: the job has {ranks} ranks")
    if not fits(options.grid, options.split):
        raise Unsupported(f"{options.label}: some rank would have fewer than two layers of cells")
    return options.split


def shortage(job: Job, options: Options, split: Split) -> str:
    """Why the ranks of some machine do not fit in its memory, the same on all ranks, or nothing.

    The hosts of an emulated fabric are one machine.
    """
    need: Counter[str] = Counter()
    names = ["this machine" if job.fabric.emulated else host for host in job.hosts]
    for rank, name in enumerate(names):
        boxes = [block(options.grid, split, rank).cells] * 2  # its part of the flow, and the same alone
        boxes += [options.grid] if rank == 0 and options.strong else []
        need[name] += sum(map(needed_bytes, boxes))
    free: list[int] = job.comm.allgather(available_bytes())
    for name, available in zip(names, free, strict=True):
        if need[name] > available:
            return (
                f"{options.label} needs about {need[name] / 2**20:.0f} MiB on {name},"
                f" where {available / 2**20:.0f} MiB are available"
            )
    return ""


def outcome(
    desk: Desk, samples: Mapping[str, NDArray[np.int64]], account: Mapping[str, Any], validation: Mapping[str, Any]
) -> Outcome:
    """What is reported of blocks in ns, of shape (ranks, rounds) by part: a block lasts as long as on its slowest."""
    options, job, flow = desk.options, desk.job, desk.flow
    step_s = {part: ns.max(axis=0) * 1e-9 / options.steps for part, ns in samples.items()}
    size = figures.Size(options.cells, block(options.grid, desk.split, 0).count, job.size)
    return Outcome(
        metrics=figures.metrics(step_s, size, job.seed),
        method={
            **account,
            **options.as_dict(),
            "workload": options.label,
            "sync": "MPI barrier before each block of steps; max over ranks of local times",
            "clock": "CLOCK_MONOTONIC",
            "batched": options.steps,
            "lead_in": schedule.LEAD_IN,
            "split": told(desk.split),
            "cells": options.cells,
            "halo_bytes": flow.halo.sent_bytes,
            "halo_bytes_busiest": _halo_bytes(options, desk.split, job.size),
            "exchanges_per_step": schedule.STAGES,
            "residual": f"an allreduce of {N} doubles a step, blocking in every mode",
            "scheme": "MUSCL (Fromm, no limiter), Rusanov, Heun; perfect gas, isentropic vortex",
            "time_step": flow.solver.dt,
            "tile_cells": TILE_CELLS,
            "left_out": _left_out(options, job.size),
            "intervals": figures.INTERVALS,
        },
        validation=dict(validation),
        samples={f"{part}.block": ns for part, ns in samples.items()},
        reported_ranks=tuple(range(job.size)),
    )


def _halo_bytes(options: Options, split: Split, ranks: int) -> int:
    """What the busiest rank sends in one exchange."""
    return 8 * N * max(block(options.grid, split, rank).halo_cells for rank in range(ranks))


def _left_out(options: Options, ranks: int) -> dict[str, str]:
    left: Sequence[str] = options.compare[1:] if ranks == 1 else ()
    return dict.fromkeys(left, "one rank has nobody to exchange halos with")


BENCHMARKS: tuple[Benchmark, ...] = (
    Benchmark(
        NAME, "3-D compressible flow: time per step, cells/s, communication, scaling", run, min_ranks=1, sized=False,
        kind="cfd",
    ),
)  # fmt: skip
