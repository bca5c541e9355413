"""Collectives of torch.distributed in a real job over loopback; rank 0 prints a record a line.

``python -m tests.collectives.backends.job '[{"benchmark": "allreduce", "nbytes": 8, ...}, ...]'``, each the fields of a
case beside the usual ones, ``device``, ``kind`` (the fabric's, ``tcp``), ``interface`` (of rank 1) or ``plant``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest import mock

import psutil

from collectives.backends import bench
from collectives.library import TABLE
from fabrics.errors import CannotRun
from fabrics.model import Fabric, Proof
from microbench import mpi
from microbench.case import Case
from microbench.registry import Benchmark, Registry
from suite import session
from tests.collectives.backends import plants

JOBS: dict[str, Any] = {}
PROOFS: list[Proof] = []
USUAL = {"dtype": "float32", "min_iterations": 3, "max_iterations": 5, "budget_s": 0.005, "sync": "barrier"}


def registry(device: str) -> Registry:
    """Every collective, by torch's backends."""
    table = Registry()
    for row in TABLE:
        table.add(Benchmark(row.name, row.summary, lambda job, case: bench.run(job, case, device), min_ranks=1))
    return table


def proved(job: Any, traffic: Callable[[], None], sent_bytes: int, _received: int) -> Proof:
    """Proved if loopback carried it; what else uses loopback on this machine does not matter to that."""
    before = psutil.net_io_counters(pernic=True)["lo"].bytes_sent
    job.comm.Barrier()
    traffic()
    job.comm.Barrier()
    risen = psutil.net_io_counters(pernic=True)["lo"].bytes_sent - before
    PROOFS.append(Proof("proved" if risen >= sent_bytes * job.size else "disproved", "", sent_bytes))
    return PROOFS[-1]


def measured(MPI: Any, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N803 - the module's own name
    """One request's record, or the error that all ranks raise."""
    device, kind = request.pop("device", "cpu"), request.pop("kind", "tcp")
    interface, plant = request.pop("interface", ""), request.pop("plant", "")
    here = MPI.Get_processor_name()
    devices = {here: ("lo",)} if kind == "tcp" else {}
    if kind not in JOBS:
        JOBS[kind] = session.open_job(MPI, Fabric("lo", kind, (here,), devices))
    job = JOBS[kind]
    fields = {"backend": "gloo", "recipe": "pure", "fabric": "lo", "ranks": job.size} | USUAL | request
    with ExitStack() as stack:
        if interface and job.rank == 1:
            stack.enter_context(mock.patch.dict(os.environ, GLOO_SOCKET_IFNAME=interface))
        if plant:
            stack.enter_context(getattr(plants, plant)(job))
        try:
            outcome = session.run_case(job, Case(**fields), registry(device))
        except CannotRun as error:
            return {"raised": str(error)}
    record = session.compose(job, Case(**fields), outcome, Proof("unknown", ""), "single")
    return {**json.loads(record.to_json()), "torch": "torch" in sys.modules, "proofs": len(PROOFS)}


def main(requests: str) -> None:
    """Measure and print."""
    MPI = mpi.start("single")  # noqa: N806 - the module's own name
    with mock.patch("microbench.job.prove", proved):
        for request in json.loads(requests):
            line = measured(MPI, request)
            if MPI.COMM_WORLD.Get_rank() == 0:
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
