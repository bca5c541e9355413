"""Every algorithm as a program, on real MPI: what each rank gets must be what the operation defines, twice."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from mpi4py import MPI

from collectives.native import lower
from collectives.schedule import INPUT, OUTPUT, Schedule
from collectives.schedules import ALGORITHMS, NEEDS_HOSTS
from fabrics.model import Fabric
from microbench.buffers import allocate
from microbench.dtypes import DTYPES, mpi_type
from microbench.engine import Engine
from microbench.job import Job

RANK, RANKS = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()
HOSTS = [rank * 2 // RANKS for rank in range(RANKS)]
COUNTS = (1, RANKS, 101, 5003)


def expected(operation: str, schedule: Schedule) -> Any:
    """By definition, of inputs that tell rank and place."""
    inputs = [given(rank, int(size)) for rank, size in enumerate(schedule.sizes[INPUT])]
    size = int(schedule.sizes[OUTPUT, RANK])
    blocks = np.array_split(np.arange(schedule.count), RANKS)
    if operation == "allreduce":
        return sum(inputs)
    if operation == "reduce_scatter":
        return sum(inputs)[blocks[RANK]]
    if operation == "broadcast":
        return inputs[0]
    if operation == "allgather":
        return np.concatenate(inputs)
    if operation == "alltoall":
        return np.concatenate([each[blocks[RANK]] for each in inputs])
    return np.zeros(size, "i4")


def given(rank: int, count: int) -> Any:
    """What a rank puts in."""
    return (np.arange(count, dtype="i4") % 97) * 8 + rank


def cases() -> Iterator[tuple[str, str, Schedule]]:
    """Every algorithm at every count that it takes."""
    for (operation, name), make in ALGORITHMS.items():
        options: dict[str, Any] = {"hosts": HOSTS} if (operation, name) in NEEDS_HOSTS else {}
        options |= {"chunk": 700} if name == "pipelined-tree" else {}
        for count in (0,) if operation == "barrier" else COUNTS:
            yield operation, name, make(RANKS, count, **options)


def wrong(job: Job, schedule: Schedule, operation: str) -> int:
    """How many elements differ after two iterations of one program."""
    kind = DTYPES["int32"]
    send, receive = (allocate(int(schedule.sizes[which, RANK]) * 4) for which in (INPUT, OUTPUT))
    send.view("i4")[:] = given(RANK, send.size // 4)
    calls = lower(job, schedule, kind, mpi_type(MPI, kind), send, receive)
    receive[:] = 0xA5
    job.engine.program(*calls).run(2)
    return int(np.count_nonzero(receive.view("i4") != expected(operation, schedule)))


def main() -> None:
    job = Job(Engine(MPI), MPI.COMM_WORLD, Fabric("here", "shm", ()), ("here",) * RANKS)
    found = {}
    for operation, name, schedule in cases():
        total = MPI.COMM_WORLD.allreduce(wrong(job, schedule, operation))
        found[f"{operation} {name} {schedule.count}"] = total
    if RANK == 0:
        json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
