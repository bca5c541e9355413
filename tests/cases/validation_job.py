"""A real job with planted faults of data and of buffers; prints what was said of them as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from collectives.library import TABLE, Prepared, run
from collectives.operands import Operands
from fabrics.model import Fabric
from microbench import mpi
from microbench.case import Case, Invalid
from microbench.engine import CallSpec, LoopError
from microbench.measure import measure
from microbench.sync import Barrier
from suite import session
from tests.cases.plants import BROKEN_FROM, RANGE

JOB = session.open_job(mpi.start("single"), Fabric("here", "shm", ()))
ROWS = {row.name: row for row in TABLE}
CASE = Case(
    "planted", "here", nbytes=4, dtype="int8", ranks=JOB.size, min_iterations=5, max_iterations=5, budget_s=0.01
)


def said(act: Callable[[], Any]) -> str:
    """What it raises, or that it does not."""
    try:
        act()
    except (Invalid, LoopError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def one_buffer() -> str:
    """One buffer to send and to receive, without MPI_IN_PLACE."""
    buffer, library = np.zeros(5), JOB.engine.MPI
    call = ("MPI_Allreduce", buffer, buffer, 5, library.DOUBLE, library.SUM, JOB.comm)
    return said(lambda: JOB.engine.program(call).run(1))


def flipped(name: str) -> list[str]:
    """A right result, and the same with one bit flipped on the last rank that has one."""
    row = ROWS[name]
    ready = Prepared(JOB, CASE, row)
    ready.validate()
    right = said(ready.exact)
    holders = [rank for rank, mine in enumerate(JOB.comm.allgather(row.result(ready.o) is not None)) if mine]
    if holders[-1] == JOB.rank and ready.o.receive.size:
        ready.o.receive[-1] ^= 1
    return [right, said(ready.exact)]


def elsewhere() -> str:
    """Garbage in the receive buffers of ranks for which a reduce to one rank defines nothing."""
    ready = Prepared(JOB, CASE, ROWS["reduce"])
    ready.validate()
    if JOB.rank:
        ready.o.send[:] = 77  # as a library may leave partial sums
    return said(ready.exact)


def not_refilled() -> str:
    """Sums in place that are never refilled: they grow."""
    ready = Prepared(JOB, replace(CASE, mode="in-place", nbytes=64, dtype="float32"), ROWS["allreduce"])
    ready.validate()
    measure(JOB, CASE, ready.body, Barrier(JOB))
    return said(ready.exact)


def short(o: Operands) -> CallSpec:
    """An allreduce that forgets the last element of messages above a size."""
    name, *arguments = ROWS["allreduce"].call(o)
    arguments[2] -= o.send.size >= BROKEN_FROM
    return (name, *arguments)


def above_one_size() -> dict[int, str]:
    """What is said of each size."""
    row = replace(ROWS["allreduce"], call=short)
    return {size: said(lambda size=size: run(JOB, replace(CASE, nbytes=size, dtype="float32"), row)) for size in RANGE}


def main() -> None:
    """All findings."""
    found = {
        "one buffer": one_buffer(),
        "flipped": {name: flipped(name) for name, row in ROWS.items() if row.moves_data},
        "elsewhere": elsewhere(),
        "not refilled": not_refilled(),
        "above one size": above_one_size(),
    }
    if JOB.rank == 0:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
