"""Clocks and synchronised starts in a real job; rank 0 prints what it found as JSON. ``own`` gives every rank a clock.

Usage: python -m tests.microbench.sync_job ITERATIONS [own] [NAME...]
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np

from fabrics.model import Fabric
from microbench import mpi, sync
from microbench.clocks import timeline
from microbench.clocksync import Clocks
from microbench.engine import Program, stamped
from microbench.job import Job
from suite.session import open_job

NAP_NS = 2_000_000


class Trial:
    """An allreduce started by ``how``; ``nap_ns`` makes the last rank late."""

    def __init__(self, job: Job, how: sync.Sync, nap_ns: int = 0) -> None:
        self.job, self.how = job, how
        MPI = job.engine.MPI  # noqa: N806 - the module's own name
        self.send, self.receive = np.full(2, job.rank + 1.0), np.zeros(2)
        operation = ("MPI_Allreduce", self.send, self.receive, 2, MPI.DOUBLE, MPI.SUM, job.comm)
        nap = [("nap", nap_ns)] if nap_ns and job.rank == job.size - 1 else []
        self.program: Program = job.engine.program(*how.calls(), *nap, *stamped([operation]))

    def run(self, n: int) -> dict[str, Any]:
        """Run ``n`` iterations: is the sum right, how far are entries apart, who is last, how many are valid."""
        self.how.before_block()
        rows = self.job.gather(self.program.run(n))
        models, clocks = self.job.clocks.gather(), self.job.clocks
        discrepancy_ns = self.job.max(abs(clocks.measure()[0]))
        right = self.job.sum(int(np.all(self.receive == self.job.size * (self.job.size + 1) / 2)))
        if self.job.rank:
            return {}
        line = timeline(rows[:, :, -2], rows[:, :, -1], models)
        margins = rows[:, :, 0] if self.how.columns else np.ones(rows.shape[:2], "i8")
        return {
            "ranks_right": right,
            "shape": list(rows.shape),
            "skew_ns": float(np.median(line.entry_skew_ns)),
            "last": np.bincount(line.starts.argmax(axis=0), minlength=self.job.size).tolist(),
            "ordered": bool(np.all(line.makespan_ns - line.last_exit_ns == line.entry_skew_ns)),
            "shortest_ns": int(line.makespan_ns.min()),
            "valid": float(sync.valid(margins).mean()),
            "method": self.how.method(),
            "discrepancy_ns": discrepancy_ns,
        }


def clocks_found(job: Job) -> dict[str, Any]:
    """Each rank's clock against the first one's, learned and measured again."""
    clocks = job.clocks
    learned = clocks.model
    discrepancy_ns, bound_ns = clocks.measure()
    rows = job.comm.gather(
        {"offset_ns": learned.offset_ns, "bound_ns": learned.bound_ns, "drift": learned.drift,
         "discrepancy_ns": discrepancy_ns, "bound_again_ns": bound_ns, "learned_s": clocks.learned_s}
    )  # fmt: skip
    return {"leaders": clocks.leaders, "clocks": rows, "models": len(clocks.gather())}


def main() -> None:
    """Learn the clocks, then try each way to start."""
    iterations, words = int(sys.argv[1]), sys.argv[2:]
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[mpi.launched_rank() % len(cores)]})
    job = open_job(mpi.start(), Fabric("as launched", "shm", ()))
    if "own" in words:
        words.remove("own")
        job.clocks = Clocks.learn(job, f"clock {job.rank}")
    findings = clocks_found(job)
    for name in words:
        how = sync.choose(job, name)
        how.settle(job.engine.program(*how.calls()).run if how.columns else lambda _: np.zeros((0, 0), "i8"))
        findings[name] = {"used": how.name, **Trial(job, how).run(iterations)}
        findings[f"{name} and a nap"] = Trial(job, how, NAP_NS).run(20)
    if job.rank == 0:
        print(json.dumps(findings))


if __name__ == "__main__":
    main()
