"""Planted faults: benchmarks that fail in every way a real one can. Loaded with ``--module tests.plant``."""

from __future__ import annotations

import os
import sys
import time

import numpy as np

from microbench.case import Case, Invalid, Outcome, Unsupported
from microbench.job import Job
from microbench.record import Metric
from microbench.registry import Benchmark

LAST = -1


def _ok(job: Job, case: Case) -> Outcome:
    times = job.gather(np.arange(10, dtype="i8") + 100)
    return Outcome(metrics={"time": Metric(1e-7, "s", 10, 1e-7, 1e-7)}, samples={"time": times})


def _last(job: Job) -> bool:
    return job.rank == job.size - 1


def _raise(job: Job, case: Case) -> Outcome:
    if _last(job):
        raise RuntimeError("planted: this rank raises")
    job.comm.Barrier()
    return Outcome()


def _raise_all(job: Job, case: Case) -> Outcome:
    raise RuntimeError("planted: every rank raises")


def _die(job: Job, case: Case) -> Outcome:
    if _last(job):
        os._exit(3)
    job.comm.Barrier()
    return Outcome()


def _hang(job: Job, case: Case) -> Outcome:
    if _last(job):
        time.sleep(3600)
    job.comm.Barrier()
    return Outcome()


def _wrong(job: Job, case: Case) -> Outcome:
    raise Invalid("planted: wrong data")


def _unsupported(job: Job, case: Case) -> Outcome:
    raise Unsupported("planted: not here")


def _loop_error(job: Job, case: Case) -> Outcome:
    buffer = np.zeros(8, "u1")
    bad = ("MPI_Send", buffer, -5, job.engine.MPI.BYTE, 1 - job.rank, 1, job.comm)
    job.engine.program(("work", 10), bad).run(3)
    return Outcome()


def _chatter(job: Job, case: Case) -> Outcome:
    for line in range(1000):
        print(f"planted chatter {line} of rank {job.rank}")
    sys.stdout.flush()
    return _ok(job, case)


BENCHMARKS = tuple(
    Benchmark(f"plant_{name}", "a planted fault", run, min_ranks=1, sized=False)
    for name, run in (
        ("ok", _ok), ("raise", _raise), ("raise_all", _raise_all), ("die", _die), ("hang", _hang), ("wrong", _wrong),
        ("unsupported", _unsupported), ("loop_error", _loop_error), ("chatter", _chatter),
    )
)  # fmt: skip
