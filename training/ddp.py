"""Data-parallel training over gloo: how long a step takes, and how much of that is exposed communication."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import torch

from collectives.backends.proving import prove, use_threads
from collectives.backends.rendezvous import CONNECT_TIMEOUT_S, process_group
from microbench.case import Case, Outcome
from training import checks, paired
from training.hooks import Average, average_over_ranks
from training.memory import shortage
from training.models import Model
from training.replica import LEARNING_RATE, MOMENTUM, Replica
from training.workload import Job, Workload

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

THREADS = 1
WARM_UP_STEPS = 4  # the first runs with a single bucket; DDP rebuilds its buckets after it
LARGEST_CHECK = 8 << 20  # elements: about the largest bucket of ResNet-50


class Diverged(Exception):
    """The loss is no longer a number; raised by every rank alike."""


@dataclass
class Clock:
    """Takes steps that all ranks begin together, and keeps each one's local time."""

    comm: Intracomm
    replica: Replica
    steps: int = 0

    def step(self, exchange: bool) -> int:
        """One step after a barrier, in ns on this rank. Raises Diverged on every rank alike."""
        self.comm.Barrier()
        step = self.replica.step(exchange)
        self.steps += 1
        if self.comm.allreduce(int(not math.isfinite(step.loss))):
            raise Diverged(f"the loss of step {self.steps} is not finite")
        return step.ns


def measure(job: Job, case: Case, model: Model, workload: Workload, average: Average = average_over_ranks) -> Outcome:
    """Time training steps with and without the exchange of gradients, once its results are checked.

    Collective over ``job.comm``. ``average`` is the exchange under test. Raises CannotRun on every rank
    alike where the ranks cannot meet over the fabric.
    """
    use_threads(THREADS)
    if reason := shortage(job, model, workload):
        return Outcome("skipped", reason)
    with process_group(job, timeout_s=max(CONNECT_TIMEOUT_S, case.deadline_s / 2)):
        fault = checks.allreduce_fault(job.comm, _counts(model))
        if fault:
            return Outcome("invalid", fault)
        proof = prove(job)
        replica = Replica(model, workload, job.seed, job.rank, average)
        return replace(_validate_and_time(job, case, workload, replica), proof=proof)


def _counts(model: Model) -> tuple[int, ...]:
    return 1, 1000, min(model.parameters, LARGEST_CHECK)


def _validate_and_time(job: Job, case: Case, workload: Workload, replica: Replica) -> Outcome:
    clock = Clock(job.comm, replica)
    try:
        warm_up = [clock.step(exchange=True) for _ in range(WARM_UP_STEPS)]
        fault = _gradient_fault(job.comm, replica)
        if fault:
            return Outcome("invalid", fault)
        warm_up.append(clock.step(exchange=False))
        plan = _plan(job.comm, case, warm_up)
        timed = _time_pairs(clock, plan, case.precision)
    except Diverged as error:
        return Outcome("failed", str(error))
    fault = checks.agreement_fault(job.comm, replica.last_gradients())  # the last step of all exchanged them
    if fault:
        return Outcome("invalid", f"{fault}, after {clock.steps} steps")
    mine = {"step": timed.step_ns, "step_noop": timed.noop_ns, "warmup": warm_up}
    samples = {name: np.stack(job.comm.allgather(np.array(ns, dtype=np.int64))) for name, ns in mine.items()}
    return Outcome(
        metrics=paired.metrics(samples["step"], samples["step_noop"], workload.batch * job.size, timed.level),
        method={
            **_method(job, replica),
            "stop_reason": timed.stop_reason,
            "look_level": timed.level,
            "target_half_width": case.precision,
        },
        validation={"allreduce": "exact", "gradients": "mean of ranks", "tolerance": checks.TOLERANCE},
        samples=samples,
        reported_ranks=tuple(range(job.size)),
    )


def _gradient_fault(comm: Intracomm, replica: Replica) -> str:
    """Check one exchange of all buckets, from weights that all ranks share."""
    local = replica.gradients(exchange=False)
    averaged = replica.gradients(exchange=True)
    return checks.agreement_fault(comm, averaged) or checks.mean_fault(comm, local, averaged)


def _plan(comm: Intracomm, case: Case, warm_up: list[int]) -> paired.Budget:
    """Rank 0's decision how many pairs to time, from the warm-up steps after the first."""
    pair_s = (float(np.median(warm_up[1:-1])) + warm_up[-1]) * 1e-9
    plan: paired.Budget = comm.bcast(paired.budget(pair_s, case.budget_s, case.max_iterations))
    return plan


@dataclass(frozen=True)
class _Timed:
    """Local times in ns of steps with the exchange, and of as many without; the level of a look at them."""

    step_ns: list[int]
    noop_ns: list[int]
    stop_reason: str
    level: float


def _time_pairs(clock: Clock, plan: paired.Budget, precision: float) -> _Timed:
    """Pairs of steps until the time of a step is known well enough, or as many as were planned."""
    times: dict[bool, list[int]] = {True: [], False: []}
    rule = paired.rule(plan, precision)
    for look in rule.looks:
        for pair in range(len(times[True]), look):
            for exchange in paired.exchanges(pair):
                times[exchange].append(clock.step(exchange))
        rows = clock.comm.gather(times[True])
        enough = rows is not None and precision > 0 and rule.enough(np.max(rows, axis=0))
        if clock.comm.bcast(enough):
            return _Timed(times[True], times[False], "precision", rule.level)
    return _Timed(times[True], times[False], plan.stop_reason, rule.level)


def _method(job: Job, replica: Replica) -> dict[str, Any]:
    tensors, elements = replica.parameters
    rss = max(job.comm.allgather(psutil.Process().memory_info().rss))
    return {
        "sync": "MPI barrier before each step; max over ranks of local times",
        "clock": "perf_counter_ns",
        "order": "ABBA, step by step",
        "noop": "same replica, the hook hands buckets back; the ranks' weights then differ, at no cost",
        "exposed_includes": "division by the number of ranks",
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "cpus_allowed": len(os.sched_getaffinity(0)),
        "parameters": elements,
        "tensors": tensors,
        "dropout": replica.dropout,
        "bucket_bytes": replica.bucket_bytes(),
        "broadcast_buffers": False,
        "warmup_steps": WARM_UP_STEPS + 1,
        "optimizer": f"SGD, learning rate {LEARNING_RATE}, momentum {MOMENTUM}",
        "data": "synthetic, fixed per rank",
        "seed": job.seed,
        "torch": torch.__version__,
        "rss_bytes": rss,
    }
