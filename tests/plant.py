"""Planted faults: benchmarks that fail in every way a real one can. Loaded with ``--module tests.plant``."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

import numpy as np

from microbench.case import Case, Invalid, Outcome, Unsupported
from microbench.engine import statuses
from microbench.job import Job
from microbench.record import Metric
from microbench.registry import Benchmark, Run

LAST = -1


def _ok(job: Job, case: Case) -> Outcome:
    times = job.gather(np.arange(10, dtype="i8") + 100)
    return Outcome(metrics={"time": Metric(1e-7, "s", 10, 1e-7, 1e-7)}, samples={"time": times})


def _unsure(job: Job, case: Case) -> Outcome:
    """The same in every launch, none of which is sure of it."""
    return Outcome(metrics={"time": Metric(1e-7, "s", 10, 0.5e-7, 2e-7)})


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


def _slow(job: Job, case: Case) -> Outcome:
    time.sleep(1.0)
    return _ok(job, case)


def _loop(job: Job, case: Case) -> Outcome:
    """A long native loop of all ranks together."""
    job.engine.program(("nap", 1_000_000), ("MPI_Barrier", job.comm)).run(1_000_000)
    return Outcome()


def _later(job: Job, act: Callable[[], None]) -> None:
    """Act on the last rank when its loop has come to iteration 10."""

    def wait() -> None:
        while job.engine.page.at[0] < 0 or job.engine.page.at[1] < 10:  # not in the loop, or not there yet
            time.sleep(0.001)
        act()

    if _last(job):
        threading.Thread(target=wait, daemon=True).start()


def _in_loop(act: Callable[[], None]) -> Run:
    def run(job: Job, case: Case) -> Outcome:
        _later(job, act)
        return _loop(job, case)

    return run


def _signal(number: signal.Signals) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


def _stop_all(job: Job, case: Case) -> Outcome:
    """The last rank is stopped with the watchdog beside it, as by a signal to the whole process group."""
    if _last(job):
        os.kill(os.getppid(), signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
    return _loop(job, case)


def _kill_watchdog(job: Job, case: Case) -> Outcome:
    if _last(job):
        os.kill(os.getppid(), signal.SIGKILL)
    return _loop(job, case)


def _deaf(job: Job, case: Case) -> Outcome:
    """The last rank waits in a native call for a message that nobody sends, the others in Python for the last."""
    if _last(job):
        status = statuses(1)
        receive = ("MPI_Recv", np.zeros(8, "u1"), 8, job.engine.MPI.BYTE, 0, 9, job.comm, status)
        job.engine.program(("work", 10), receive).run(3)
    job.comm.Barrier()
    return Outcome()


def _raise_at_10(job: Job, case: Case) -> Outcome:
    for iteration in range(20):
        if job.rank == 1 and iteration == 10:
            raise RuntimeError("planted: rank 1 raises in iteration 10")
        job.comm.allreduce(1)
    return Outcome()


def _mismatch(job: Job, case: Case) -> Outcome:
    job.agree("allreduce", count=8 if job.rank == 0 else 4, dtype="float32")
    return Outcome()


def _hang_when_large(job: Job, case: Case) -> Outcome:
    return _hang(job, case) if case.nbytes == 4 << 20 else _ok(job, case)


def _late(job: Job, case: Case) -> Outcome:
    """The last rank does not come to its end."""
    if _last(job):
        atexit.register(time.sleep, 3600)
    return _ok(job, case)


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


_FAULTS: dict[str, Run] = {
    "ok": _ok,
    "unsure": _unsure,
    "slow": _slow,
    "chatter": _chatter,
    "raise": _raise,
    "raise_all": _raise_all,
    "raise_at_10": _raise_at_10,
    "die": _die,
    "hang": _hang,
    "deaf": _deaf,
    "stop": _in_loop(_signal(signal.SIGSTOP)),
    "stop_all": _stop_all,
    "kill": _in_loop(_signal(signal.SIGKILL)),
    "kill_watchdog": _kill_watchdog,
    "exit": _in_loop(lambda: os._exit(3)),
    "late": _late,
    "mismatch": _mismatch,
    "wrong": _wrong,
    "unsupported": _unsupported,
    "loop_error": _loop_error,
}
BENCHMARKS = (
    *(Benchmark(f"plant_{name}", "a planted fault", run, min_ranks=1, sized=False) for name, run in _FAULTS.items()),
    Benchmark("plant_sized", "hangs at 4M", _hang_when_large, min_ranks=1),
)
