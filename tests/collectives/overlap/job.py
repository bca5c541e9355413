"""The overlap bench in a real job, some of it with a planted fault; rank 0 prints a line of JSON for each case.

``python -m tests.collectives.overlap.job SPEC``: JSON with ``roles`` and ``cpus`` by rank, ``fabric`` (``Fabric``'s
arguments), the thread ``level``, and ``cases`` (``Case``'s arguments, and ``plant``).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from fabrics.model import Fabric
from microbench import mpi
from microbench.case import Case
from microbench.job import Job
from microbench.registry import load
from suite import session
from tests.collectives.overlap.host_offload import falls_back

KEPT = ("status", "reason", "method", "validation", "placement", "reported_ranks")


@contextmanager
def changed(owner: Any, name: str, value: Any) -> Iterator[None]:
    """An attribute that is another one for a while."""
    usual = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, usual)


@contextmanager
def planted(plant: str) -> Iterator[None]:
    """Break one thing."""
    from collectives.offload.channel import Channel
    from collectives.offload.exchange import Exchange
    from collectives.overlap.modes import Hosted

    serve: Callable[[Any], Any] = Channel.serve
    if plant == "no collective":  # a DPU hands back what its own host gave it
        with changed(Exchange, "begin", lambda self, places, request: []):
            yield
    elif plant == "uncounted":
        with changed(Channel, "serve", lambda self: serve(self)[:-1]):
            yield
    elif plant == "tests block":
        with changed(Hosted, "probe", Hosted.wait):
            yield
    elif plant == "posts block":
        post: Callable[[Any], Any] = Hosted.post
        with changed(Hosted, "post", lambda self: [*post(self), *self.wait()]):
            yield
    elif plant in ("falls back", "falls back and counts"):
        with falls_back(counts="counts" in plant):
            yield
    else:
        yield


def told(job: Job, case: Case, plant: str) -> dict[str, Any]:
    """What came of a case."""
    with planted(plant):
        outcome = session.run_case(job, case, load(["collectives.overlap.bench"]))
    kept = {name: getattr(outcome, name) for name in KEPT}
    kept["metrics"] = {name: asdict(metric) for name, metric in outcome.metrics.items()}
    kept["samples"] = {name: times.tolist() for name, times in outcome.samples.items()}
    return kept | {"benchmark": case.benchmark, "hosts": job.hosts}


def main(text: str) -> None:
    """Run and print."""
    spec = json.loads(text)
    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpus[min(spec["cpus"][mpi.launched_rank()], len(cpus) - 1)]})
    library = mpi.start(spec.get("level", "single"))
    devices = {host: tuple(names) for host, names in spec["fabric"].pop("devices", {}).items()}
    fabric = Fabric(**{"hosts": (), "emulated": True, "devices": devices, **spec["fabric"]})
    job = session.open_job(library, fabric, roles=tuple(spec["roles"]), seed=11)
    for given in spec["cases"]:
        plant = given.pop("plant", "")
        usual = {"fabric": fabric.name, "ranks": job.size, "dtype": "float32", "nbytes": 1 << 16, "budget_s": 0.5,
                 "min_iterations": 8, "max_iterations": 8}  # fmt: skip
        said = told(job, Case(**usual | given), plant)
        if job.rank == 0:
            print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
