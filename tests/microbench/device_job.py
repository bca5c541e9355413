"""Ping-pongs and windows of two ranks between fake devices, staged; prints rank 0's findings as JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from fabrics.model import Fabric
from microbench import check, mpi
from microbench.called import overhead_ns, python_call
from microbench.case import Case, Unsupported
from microbench.device import cuda_support, refuse
from microbench.engine import LoopError
from microbench.measure import measure
from microbench.pt2pt import Pair
from microbench.staging import DeviceMemory
from microbench.sync import Own
from suite import session
from tests.microbench.fake_cuda import FakeCuda

JOB = session.open_job(mpi.start("single"), Fabric("here", "shm", ()))
SIZE = 4096


def staged(way: str) -> dict[str, Any]:
    """One way of a pair on staged device memory: its bytes on the device, and the copies of one iteration."""
    fake = FakeCuda()
    memory = DeviceMemory(fake, staged=True)
    pair = Pair(JOB, Case("latency", "here", nbytes=SIZE))
    pair.send, pair.receive = memory.buffer(SIZE, sent=True), memory.buffer(SIZE)
    pair.send[:] = check.pattern(SIZE, JOB.rank)
    check.poison(pair.receive)
    memory.upload()
    body = memory.calls(getattr(pair, way)())
    fake.done.clear()
    JOB.engine.program(*body).run(1)
    copies = list(fake.done)
    arrived = memory.twins[1].tensor.bytes  # on the device
    right = JOB.comm.allgather(bool(np.array_equal(arrived, check.pattern(SIZE, pair.peer))))
    got = measure(JOB, Case("latency", "here", budget_s=0.01, max_iterations=10), body, Own("ping-pong"))
    return {"right": right, "copies": {name: copies.count(name) for name in dict.fromkeys(copies)},
            "samples": got.times.shape[-1]}  # fmt: skip


def failing() -> str:
    """A copy that fails inside the loop."""
    memory = DeviceMemory(FakeCuda(fails=2), staged=True)
    buffer = memory.buffer(8, sent=True)
    try:
        JOB.engine.program(
            *memory.calls([("MPI_Send", buffer, 8, JOB.engine.MPI.BYTE, 1 - JOB.rank, 1, JOB.comm)])
        ).run(1)
    except LoopError as error:
        return str(error)
    return "nothing raised"


def raised(what: BaseException) -> str:
    """What a program says that calls a Python function which raises in its third iteration."""
    calls: list[int] = []

    def function() -> None:
        calls.append(1)
        if len(calls) == 3:
            raise what

    try:
        JOB.engine.program(("nap", 1), (python_call("a function", function),)).run(5)
    except (LoopError, KeyboardInterrupt) as error:
        return f"{type(error).__name__} after {len(calls)}: {error}"
    return "nothing raised"


def refused() -> str:
    """The twin of a buffer, offered to the real MPI library of this job."""
    memory = DeviceMemory(FakeCuda(), staged=False)
    memory.buffer(8)
    try:
        refuse(memory.twins[0], JOB.engine)
    except Unsupported as error:
        return str(error)
    return "taken"


def seen() -> str:
    """Where a watchdog sees the loop while Python runs."""
    places: list[str] = []
    JOB.engine.program((python_call("a function", lambda: places.append(JOB.engine.where())),)).run(1)
    return places[0]


def main() -> None:
    """Find, and print."""
    support = cuda_support(JOB.engine)
    found = {
        "pingpong": staged("pingpong"),
        "window": staged("window"),
        "both_ways": staged("both_ways"),
        "failing": failing(),
        "error": raised(RuntimeError("broken\nand more")),
        "interrupt": raised(KeyboardInterrupt("stop")),
        "aware": support.aware,
        "how": support.how,
        "refused": refused(),
        "seen": seen(),
        "overhead_ns": overhead_ns(JOB.engine),
    }
    if JOB.rank == 0:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
