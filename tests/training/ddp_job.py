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
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[2]))

import psutil
from mpi4py import MPI

from fabrics.errors import CannotRun, UserError
from fabrics.model import Fabric, Proof
from microbench.case import Case, Unsupported
from training.bench import run

RANK = MPI.COMM_WORLD.Get_rank()


@dataclass
class LoopbackJob:
    comm: MPI.Intracomm
    fabric: Fabric
    hosts: tuple[str, ...]
    seed: int = 7

    @property
    def rank(self) -> int:
        return self.comm.Get_rank()

    @property
    def size(self) -> int:
        return self.comm.Get_size()

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
        from training.hooks import average_over_ranks

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


def faults(request: dict[str, Any], plants: Plants) -> ExitStack:
    """What the request plants, in force until the stack is closed."""
    stack = ExitStack()
    if "plant" in request:
        from training import ddp

        measure, average = ddp.measure, getattr(plants, request["plant"])
        stack.enter_context(mock.patch.object(ddp, "measure", lambda *args: measure(*args, average)))
    if request.get("wrong_library"):
        fake = SimpleNamespace(all_reduce=wrong_library)
        stack.enter_context(mock.patch("training.checks.dist", fake))
    if "device_of_rank_1" in request and RANK == 1:
        stack.enter_context(mock.patch.dict(os.environ, GLOO_SOCKET_IFNAME=request["device_of_rank_1"]))
    if "available_bytes" in request:
        stack.enter_context(mock.patch("training.memory.available_bytes", lambda: request["available_bytes"]))
    return stack


def measured(request: dict[str, Any]) -> dict[str, Any]:
    """The outcome of one request as plain data, on every rank."""
    comm, plants = MPI.COMM_WORLD, Plants(request.get("delay_s", 0.0))
    fabric = Fabric("fabric", request.get("kind", "tcp"), ("here",), {"here": ("lo",)})
    job = LoopbackJob(comm, fabric, ("here",) * comm.Get_size())
    case = Case("train", "fabric", backend="gloo", options=request["options"], **request.get("case", {}))
    with faults(request, plants):
        try:
            line = asdict(run(job, case))
        except (CannotRun, UserError, Unsupported) as error:
            line = {"raised": type(error).__name__, "reason": str(error), "samples": {}}
    line["samples"] = {name: array.tolist() for name, array in line["samples"].items()}
    return {**line, "exchanges": plants.calls, "torch": "torch" in sys.modules}


if __name__ == "__main__":
    lines = [measured(request) for request in json.loads(sys.argv[1])]
    if RANK == 0:
        print(json.dumps(lines))
