"""A small MPI job over loopback that measures training once per request, with a fault planted in some.

``mpiexec -n 2 python ddp_job.py '[{"options": {...}, "plant": "..."}, ...]'``: rank 0 prints one list of
JSON, an entry per request: the outcome, or the error.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[2]))

import psutil

from fabrics.errors import CannotRun, UserError
from fabrics.model import Fabric, Proof
from microbench import mpi
from microbench.case import Case, Unsupported
from microbench.engine import Engine
from microbench.job import Job
from training.bench import run

CPUS = sorted(os.sched_getaffinity(0))
RANK = mpi.launched_rank()


def loopback(
    MPI: Any,  # noqa: N803 - the module's own name
    roles: tuple[str, ...] = (),
    emulated: bool = False,
    kind: str = "tcp",
    left_s: float | None = None,
) -> Job:
    """The job of all ranks, each on a core, with a fabric that is the loopback; what is proved is counted here."""
    comm = MPI.COMM_WORLD.Dup()
    fabric = Fabric("fabric", kind, ("here",), {"here": ("lo",)}, emulated=emulated)
    cpus = tuple(comm.allgather(tuple(sorted(os.sched_getaffinity(0)))))
    engine = Engine(MPI)
    if left_s is not None:
        engine.page.enter("a case", 0, time.monotonic_ns() + int(left_s * 1e9))
    return LoopbackJob(engine, comm, fabric, ("here",) * comm.Get_size(), roles, cpus, seed=7)


class LoopbackJob(Job):
    """A job whose counters are the loopback's."""

    def prove(self, traffic, sent_bytes, received_bytes):
        before = psutil.net_io_counters(pernic=True)["lo"]
        self.comm.Barrier()
        traffic()
        self.comm.Barrier()
        after = psutil.net_io_counters(pernic=True)["lo"]
        risen = after.bytes_sent - before.bytes_sent
        return Proof("proved" if risen >= sent_bytes * self.size else "disproved", "", sent_bytes)


class Plants:
    """Exchanges that are wrong in one way each, and one that is slow."""

    def __init__(self, delay_s: float) -> None:
        self.delay_s = delay_s
        self.calls = 0

    def right(self, gradients):
        from training.exchange.ways import average_over_ranks

        self.calls += 1
        return average_over_ranks(gradients)

    def slow(self, gradients):
        time.sleep(self.delay_s)
        return self.right(gradients)

    def kept_local(self, gradients):
        import torch

        done = torch.futures.Future()
        done.set_result(gradients)
        return done

    def sum_only(self, gradients):
        import torch

        return torch.distributed.all_reduce(gradients, async_op=True).get_future().then(lambda f: f.value()[0])

    def one_element_off(self, gradients):
        def spoil(done):
            done.value()[0] += 0.01
            return done.value()

        return self.right(gradients).then(spoil)

    def breaks_later(self, gradients):
        return self.right(gradients) if self.calls < 12 else self.kept_local(gradients)

    def infinite(self, gradients):
        return self.kept_local(gradients.fill_(float("inf")))


def wrong_library(tensor):
    """An allreduce that is off by one in one element on rank 1 only."""
    import torch

    torch.distributed.all_reduce(tensor)
    if tensor.numel() == 1000 and RANK == 1:
        tensor[3] += 1


def slow_loader(delay_s: float) -> Any:
    """A loader that keeps every step waiting."""
    from training.data import Loader

    fast = Loader.next

    def slow(self):
        time.sleep(delay_s)
        return fast(self)

    return slow


def faults(request: dict[str, Any], plants: Plants) -> ExitStack:
    """What the request plants, in force until the stack is closed."""
    stack = ExitStack()
    if "plant" in request:
        from training import ddp

        measure, average = ddp.measure, getattr(plants, request["plant"])
        stack.enter_context(mock.patch.object(ddp, "measure", lambda *args: measure(*args, average)))
    if request.get("wrong_library"):
        fake = SimpleNamespace(all_reduce=wrong_library, get_backend=lambda: "gloo")
        stack.enter_context(mock.patch("training.checks.dist", fake))
    if "device_of_rank_1" in request and RANK == 1:
        stack.enter_context(mock.patch.dict(os.environ, GLOO_SOCKET_IFNAME=request["device_of_rank_1"]))
    if request.get("slow_loader_of_rank") == RANK:
        stack.enter_context(mock.patch("training.data.Loader.next", slow_loader(request["delay_s"])))
    if "available_bytes" in request:
        stack.enter_context(mock.patch("training.memory.available_bytes", lambda: request["available_bytes"]))
    return stack


def measured(MPI: Any, request: dict[str, Any]) -> dict[str, Any]:  # noqa: N803 - the module's own name
    """The outcome of one request as plain data, on every rank."""
    plants = Plants(request.get("delay_s", 0.0))
    told = {name: request[name] for name in ("emulated", "kind", "left_s") if name in request}
    job = loopback(MPI, tuple(request.get("roles", ())), **told)
    case = Case("train", "fabric", backend="gloo", options=request["options"], **request.get("case", {}))
    with faults(request, plants):
        try:
            line = asdict(run(job, case))
        except (CannotRun, UserError, Unsupported) as error:
            line = {"raised": type(error).__name__, "reason": str(error), "samples": {}}
    line["samples"] = {name: array.tolist() for name, array in line["samples"].items()}
    return {**line, "exchanges": plants.calls, "torch": "torch" in sys.modules}


def main(requests: str, thread_level: str = "single") -> None:
    """Measure all, and print."""
    os.sched_setaffinity(0, {CPUS[RANK % len(CPUS)]})
    MPI = mpi.start(thread_level)  # noqa: N806 - the module's own name
    lines = [measured(MPI, request) for request in json.loads(requests)]
    if RANK == 0:
        print(json.dumps(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
