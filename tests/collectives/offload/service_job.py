"""Requests in a real job: ``python -m tests.collectives.offload.service_job HOSTS WORKERS TRANSPORT SCENARIO``.

Rank 0 prints a line of JSON. Scenarios: ``sums`` of several sizes and types, several under way; ``stopped``: the first
DPU stops in mid-operation; ``differing``: the hosts of a DPU ask for different things.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

import numpy as np

from collectives.offload import service
from collectives.offload.layout import layout_of
from collectives.offload.party import Crew
from collectives.offload.request import Offload
from fabrics.errors import CannotRun
from fabrics.model import Fabric
from microbench import mpi
from suite import session

SIZES = (1, 1001, 70_000)
CPUS = sorted(os.sched_getaffinity(0))


def array(size: int, kind: str, host: int, step: int) -> np.ndarray:
    """What a host adds."""
    return ((np.arange(size) * 5 + host * 3 + step) % 17).astype(kind)


def total(size: int, kind: str, hosts: int, step: int) -> np.ndarray:
    """The sum of all."""
    return np.sum([array(size, kind, host, step) for host in range(hosts)], axis=0).astype(kind)


def laid_out(offload: Offload, crew: Crew) -> int:
    """How many elements are wrong of arrays that do not lie in C order, given or asked for."""
    hosts, right = len(crew.layout.hosts), total(12, "float32", len(crew.layout.hosts), 0).reshape(3, 4)
    mine = array(12, "float32", crew.host, 0).reshape(3, 4)
    turned, spread = np.zeros((4, 3), "f4").T, np.zeros((6, 8), "f4")[::2, ::2]
    fortran = np.asfortranarray(mine)
    wrong = 0
    for given, out in ((fortran, None), (mine, turned), (mine, spread), (fortran, fortran)):
        got = offload.allreduce(given, out).wait()
        wrong += int(np.count_nonzero(got != right)) + int(got is not out and out is not None)
    one = offload.allreduce(np.full((), crew.host, "f4")).wait()
    return wrong + int(one != sum(range(hosts)))


def sums(offload: Offload, crew: Crew) -> dict[str, Any]:
    """Three steps of six requests under way at once, fetched in another order than they were started in."""
    hosts, wrong, tested = len(crew.layout.hosts), 0, 0
    for step in range(3):
        begun = []
        for slot, (size, kind) in enumerate((size, kind) for size in SIZES for kind in ("float32", "int32")):
            mine = array(size, kind, crew.host, step)
            begun.append((offload.allreduce(mine, mine, slot=slot), size, kind))
        two = [offload.allreduce(array(9, "float64", crew.host, step + n).reshape(3, 3)) for n in range(2)]
        while not begun[0][0].test():
            tested += 1
        for request, size, kind in reversed(begun):
            wrong += int(np.count_nonzero(request.wait() != total(size, kind, hosts, step)))
        for n, request in enumerate(two):
            right = total(9, "float64", hosts, step + n).reshape(3, 3)
            wrong += int(np.count_nonzero(request.wait(5.0) != right))
    return {"wrong": wrong + laid_out(offload, crew), "tested": tested, "operations": 3 * 8 + 5}


def stopped(offload: Offload, crew: Crew) -> dict[str, Any]:
    """What a host is told when its DPU no longer answers."""
    offload.allreduce(array(5, "float32", crew.host, 0)).wait()
    began = time.monotonic()
    try:
        offload.allreduce(array(200_000, "float32", crew.host, 1)).wait(1.5)
    except CannotRun as error:
        return {"error": str(error), "after_s": time.monotonic() - began}
    return {"error": "", "after_s": time.monotonic() - began}


def stop_at_second(crew: Crew) -> None:
    """Make the first DPU stop, or end, once it has done an operation."""
    original, left = service.Service._order, [3]  # make, run, make

    def order(self: service.Service) -> service.Order:
        found = original(self)
        left[0] -= 1
        if left[0] < 0 and crew.dpu == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
        return found

    service.Service._order = order  # type: ignore[method-assign]


def main(hosts: str, workers: str, transport: str, scenario: str) -> None:
    """Run and tell."""
    os.sched_setaffinity(0, {CPUS[min(mpi.launched_rank(), 1, len(CPUS) - 1)]})
    MPI = mpi.start("single")  # noqa: N806 - the module's own name
    roles = ("host",) * int(hosts) + ("dpu",) * (mpi.launched_size() - int(hosts))
    job = session.open_job(MPI, Fabric("here", "tcp", (), emulated=True), roles=roles)
    crew = Crew(job, layout_of(job.roles, job.hosts, int(workers)))
    found: dict[str, Any] = {}
    if crew.is_dpu:
        if scenario == "stopped":
            stop_at_second(crew)
        cpu, wall = time.process_time(), time.monotonic()
        try:
            found["done"] = service.serve(crew)
        except CannotRun as error:
            found["error"] = str(error)
        found["cpu_share"] = (time.process_time() - cpu) / (time.monotonic() - wall)
    else:
        offload = Offload(crew, transport, chunk_bytes=100_000, deadline_s=2.0)
        if scenario == "differing":
            try:
                offload.allreduce(array(5 + crew.host, "float32", 0, 0)).wait()
            except CannotRun as error:
                found["error"] = str(error)
        else:
            found |= {"sums": sums, "stopped": stopped}[scenario](offload, crew)
        if scenario == "sums":
            time.sleep(1.0)  # the DPUs have nothing to do
            offload.close()
    if scenario != "sums":
        print(json.dumps({**found, "rank": job.rank}), flush=True)
        time.sleep(1.0)
        MPI.COMM_WORLD.Abort(5)
    rows = job.comm.gather(found, root=0)
    crew.close()
    if job.rank == 0:
        print(json.dumps(rows), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
