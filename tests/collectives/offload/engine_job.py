"""The engine in a real job: every operation and transport, compared with what MPI's own would leave, bit by bit.

``python -m tests.collectives.offload.engine_job HOSTS WORKERS TRANSPORTS COUNTS`` prints a line of JSON on rank 0.
Ranks after the hosts are DPUs'. Each channel is posted several times, with other data each time.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from collectives.offload.channel import OPERATIONS, Channel, why_not
from collectives.offload.layout import layout_of
from collectives.offload.party import Crew
from collectives.offload.pieces import Task
from collectives.operands import offsets, shares
from fabrics.model import Fabric
from microbench import mpi
from microbench.case import Unsupported
from microbench.check import poison
from microbench.dtypes import dtype
from suite import session

TIMES = 3
CPUS = sorted(os.sched_getaffinity(0))


def data(task: Task, kind: Any, host: int, time: int) -> np.ndarray:
    """What a host sends: small integers, whose sums are exact."""
    return kind.encode((np.arange(task.count) * 7 + host * 3 + time * 5) % 11)


def expected(task: Task, kind: Any, host: int, time: int) -> np.ndarray | None:
    """What its receive buffer must hold; None at the root of a broadcast."""
    sent = [data(task, kind, other, time) for other in range(task.hosts)]
    if task.operation == "allreduce":
        return kind.encode(sum(kind.decode(row) for row in sent))
    if task.operation == "broadcast":
        return None if host == task.root else sent[task.root]
    if task.operation == "allgather":
        return np.concatenate(sent)
    sizes = [shares(task.count, task.hosts, other) for other in range(task.hosts)]
    starts = [offsets(row) for row in sizes]
    return np.concatenate([sent[o][starts[o][host] :][: sizes[o][host]] for o in range(task.hosts)])


def wrong(crew: Crew, channel: Channel, kind: Any) -> int:
    """Bytes that differ on this rank over several operations in a row."""
    engine, found = crew.job.engine, 0
    if crew.is_dpu:
        engine.program(*channel.serve()).run(TIMES)
        return abs(int(channel.tally[0]) - TIMES)
    post = engine.program(*channel.post(), ("work", 1000), *channel.probe())
    wait = engine.program(*channel.wait(gentle=not crew.is_busy))
    for time in range(TIMES):
        channel.send.view(kind.numpy)[:] = data(channel.task, kind, crew.host, time)
        poison(channel.receive)
        post.run(1)
        wait.run(1)
        right = expected(channel.task, kind, crew.host, time)
        if right is not None:
            found += int(np.count_nonzero(channel.receive != right.view("u1")))
    engine.program(*channel.probe()).run(1)
    return found + sum(not lane for lane in channel.finished())


def together(crew: Crew, transport: str, count: int) -> int:
    """Four channels posted one after the other, then awaited in the other order; bytes that differ."""
    kind, engine, found = dtype("float32"), crew.job.engine, 0
    channels = [Channel(crew, "allreduce", kind, count, transport) for _ in range(4)]
    if crew.is_dpu:
        engine.program(*(call for channel in channels for call in channel.serve())).run(2)
    else:
        post = engine.program(*(call for channel in channels for call in channel.post()))
        wait = engine.program(*(call for channel in reversed(channels) for call in channel.wait()))
        for time in range(2):
            for number, channel in enumerate(channels):
                channel.send.view(kind.numpy)[:] = data(channel.task, kind, crew.host, 4 * time + number)
                poison(channel.receive)
            post.run(1)
            wait.run(1)
            for number, channel in enumerate(channels):
                right = expected(channel.task, kind, crew.host, 4 * time + number)
                found += int(np.count_nonzero(channel.receive != right.view("u1")))
    for channel in channels:
        channel.close()
    return found


def variants(operation: str, count: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Whole, in small pieces, and in small pieces with little memory; types that only some operations are told of."""
    small = {"chunk_bytes": max(4, count)}
    yield "float32", {}
    yield "int32", small
    yield "float64", {**small, "memory_bytes": 1 << 10}
    if operation == "allreduce":
        yield from ((kind, small) for kind in ("int8", "float16", "bfloat16"))


def descriptors() -> int:
    """How many pipes and windows this process has open."""
    gc.collect()
    found = 0
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # that of this very listing
            found += str(entry.readlink()).startswith(("pipe:", "/memfd:fabricbench-window"))
    return found


def main(hosts: str, workers: str, transports: str, counts: str) -> None:
    """Run and tell."""
    os.sched_setaffinity(0, {CPUS[min(mpi.launched_rank(), 1, len(CPUS) - 1)]})
    MPI = mpi.start("single")  # noqa: N806 - the module's own name
    ranks = mpi.launched_size()
    roles = ("host",) * int(hosts) + ("dpu",) * (ranks - int(hosts))
    job = session.open_job(MPI, Fabric("here", "tcp", (), emulated=True), roles=roles)
    crew = Crew(job, layout_of(job.roles, job.hosts, int(workers)))
    found: dict[str, Any] = {"served": crew.layout.served, "waiting": crew.waiting.strategy, "wrong": {}, "method": {}}
    before = descriptors()
    for transport in transports.split(","):
        found["why_not"] = {**found.get("why_not", {}), transport: why_not(crew, transport)}
        if found["why_not"][transport]:
            continue
        for operation in OPERATIONS:
            for count in map(int, counts.split(",")):
                for number, (named, options) in enumerate(variants(operation, count)):
                    kind = dtype(named)
                    try:
                        channel = Channel(crew, operation, kind, count, transport, root=int(hosts) - 1, **options)
                    except Unsupported as error:  # by this MPI, and so on all ranks
                        found["unsupported"] = str(error)
                        continue
                    name = f"{transport} {operation} {count} {number}"
                    found["wrong"][name] = job.sum(wrong(crew, channel, kind))
                    found["method"][name] = channel.method()
                    channel.close()
        found["wrong"][f"{transport} together"] = job.sum(together(crew, transport, 3001))
    del channel  # its buffers are the window's
    left = descriptors() - before
    found["descriptors_left"] = job.max(left)
    crew.close()
    if job.rank == 0:
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
