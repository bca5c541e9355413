"""Ranks of a job that run the dpu benchmark: ``python job.py ROLES KERNELS BUDGET_S [FAULT]``; rank 0 prints.

Short blocks, small batches and a small cache are planted: what is shown does not need the usual ones.
"""

from __future__ import annotations

import json
import os
import sys


def main(roles: str, names: str, budget_s: str, fault: str = "") -> None:
    from microbench import mpi

    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpus[mpi.launched_rank() % len(cpus)]})
    MPI = mpi.start("single")  # noqa: N806 - the module's own name
    from fabrics.errors import CannotRun, UserError
    from fabrics.model import Fabric, Proof
    from microbench.case import Case
    from microbench.registry import load
    from suite import session
    from training.characterize import arrays, kernels, pace
    from training.characterize import bench as module

    pace.FREE_S, kernels.FORWARD_BATCH = 0.004, 2
    arrays.last_level_bytes = lambda: 1 << 20

    job = session.open_job(MPI, Fabric("test", "tcp", ()), roles=tuple(filter(None, roles.split(","))))
    if fault == "no torch" and job.rank == job.size - 1:
        module._torch = lambda: None
    if fault == "raises" and job.rank == 1:
        module.Bench._triad = lambda *_: 1 / 0
    options = {"kernels": names.split(",")} if names else {}
    case = Case("dpu", "test", ranks=job.size, budget_s=float(budget_s), options=options)
    try:
        outcome = session.run_case(job, case, load(["training.characterize.bench"]))
    except (CannotRun, UserError) as error:
        if job.rank == 0:
            print(json.dumps({"raised": type(error).__name__, "said": str(error)}))
        return
    bound = job.comm.gather(sorted(os.sched_getaffinity(0)))
    if job.rank == 0:
        record = json.loads(session.compose(job, case, outcome, Proof("unknown", "no probe"), "single").to_json())
        print(json.dumps(record | {"bound": bound, "shapes": {k: v.shape for k, v in outcome.samples.items()}}))


if __name__ == "__main__":
    main(*sys.argv[1:])
