"""One rank of the parity benchmark: native loop and C reference in turn, blocks of iterations, in one process."""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable
from functools import partial

import numpy as np

from collectives.native import lower
from collectives.schedules import ALGORITHMS
from fabrics.model import Fabric
from microbench import mpi
from microbench.buffers import allocate
from microbench.dtypes import DTYPES, mpi_type
from microbench.engine import Engine, Program, durations, requests, stamped, statuses
from microbench.job import Job
from microbench.sizes import parse_sizes
from suite.binding import bind

WINDOW = 64
SIZES = (0, 8, 64, 1024, 8192, 65536, 262144, 1 << 20, 4 << 20)
PAIRS = 41
BLOCK_NS = 20e6
FLOAT32 = DTYPES["float32"]

bind("+0:+1", mpi.launched_rank())
MPI = mpi.start("single")
COMM = MPI.COMM_WORLD
RANK, PEER = COMM.Get_rank(), 1 - COMM.Get_rank()
ENGINE = Engine(MPI)
SEND, RECEIVE, ACK = allocate(SIZES[-1]), allocate(SIZES[-1]), allocate(4)
STATUS, REQUESTS = statuses(WINDOW), requests(WINDOW, MPI)


def pingpong(n: int) -> Program:
    """The calls of the reference's function of that name."""
    there = ("MPI_Send", SEND, n, MPI.BYTE, PEER, 1, COMM)
    back = ("MPI_Recv", RECEIVE, n, MPI.BYTE, PEER, 1, COMM, STATUS)
    return ENGINE.program(*stamped((there, back) if RANK == 0 else (back, there)))


def window(n: int) -> Program:
    """The same."""
    post, buffer = ("MPI_Isend", SEND) if RANK == 0 else ("MPI_Irecv", RECEIVE)
    posts = [(post, buffer, n, MPI.BYTE, PEER, 1, COMM, REQUESTS[i]) for i in range(WINDOW)]
    ack = ("MPI_Send", ACK, 4, MPI.BYTE, PEER, 2, COMM)
    if RANK == 0:
        ack = ("MPI_Recv", ACK, 4, MPI.BYTE, PEER, 2, COMM, STATUS)
    return ENGINE.program(*stamped([*posts, ("MPI_Waitall", WINDOW, REQUESTS, STATUS), ack]))


def allreduce(n: int) -> Program:
    """The same."""
    call = ("MPI_Allreduce", SEND, RECEIVE, n // 4, MPI.FLOAT, MPI.SUM, COMM)
    return ENGINE.program(("MPI_Barrier", COMM), *stamped([call]))


def scheduled(algorithm: str, n: int) -> Program:
    """An allreduce of our own, lowered from its schedule."""
    job = Job(ENGINE, COMM, Fabric("here", "shm", ()), ("here",) * COMM.Get_size())
    schedule = ALGORITHMS["allreduce", algorithm](COMM.Get_size(), n // 4)
    calls = lower(job, schedule, FLOAT32, mpi_type(MPI, FLOAT32), SEND[:n], RECEIVE[:n])
    return ENGINE.program(("MPI_Barrier", COMM), *stamped(calls))


PARITY: dict[str, Callable[[int], Program]] = {"pingpong": pingpong, "window": window, "allreduce": allreduce}
SCHEDULES: dict[str, Callable[[int], Program]] = {
    "ring": partial(scheduled, "ring"),
    "doubling": partial(scheduled, "recursive-doubling"),
}


def reference(library: ctypes.CDLL, name: str, n: int) -> Callable[[int], np.ndarray]:
    """The C function of that name, as something that runs iterations and returns stamps."""
    function = getattr(library, name)
    function.argtypes = [ctypes.c_ssize_t, *[ctypes.c_void_p] * 2, *[ctypes.c_int] * 3, ctypes.c_void_p]
    handle = COMM.handle if COMM.handle < 2**63 else COMM.handle - 2**64

    def run(iterations: int) -> np.ndarray:
        stamps = np.full((iterations, 2), -1, "i8")
        rc = function(handle, SEND.ctypes.data, RECEIVE.ctypes.data, n, RANK, iterations, stamps.ctypes.data)
        if rc:
            raise RuntimeError(f"the reference's {name} failed: {rc}")
        return stamps

    return run


def compare(
    native: Callable[[int], np.ndarray], other: Callable[[int], np.ndarray], pairs: int
) -> tuple[list[float], list[float]]:
    """Medians in ns of alternating blocks: (native, reference), in an order that changes from pair to pair."""
    for run in (native, other, native, other):
        run(20)
    each_ns = COMM.allreduce(float(np.median(durations(native(20)))), op=MPI.MAX)
    iterations = int(np.clip(BLOCK_NS / max(each_ns, 1.0), 10, 5000))
    medians: dict[int, list[float]] = {0: [], 1: []}
    runs = (native, other)
    for pair in range(pairs):
        for which in (0, 1) if pair % 2 == 0 else (1, 0):
            COMM.Barrier()
            medians[which].append(float(np.median(durations(runs[which](iterations)))))
    return medians[0], medians[1]


def cell(library: ctypes.CDLL, name: str, n: int, pairs: int) -> None:
    """Compare one benchmark at one size; rank 0 prints a line of JSON."""
    ours, theirs = compare((PARITY | SCHEDULES)[name](n).run, reference(library, name, n), pairs)
    if RANK == 0:
        make = mpi.make(MPI.Get_library_version())
        print(json.dumps({"mpi": make, "benchmark": name, "nbytes": n, "native_ns": ours, "reference_ns": theirs}),
              flush=True)  # fmt: skip


def main() -> None:
    """Every cell: LIBRARY [PAIRS [SIZES [NAMES]]]."""
    library = ctypes.CDLL(sys.argv[1])
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else PAIRS
    sizes = parse_sizes(sys.argv[3]) if len(sys.argv) > 3 else SIZES
    for name in sys.argv[4].split(",") if len(sys.argv) > 4 else PARITY:
        for n in sizes:
            cell(library, name, n, pairs)


if __name__ == "__main__":
    main()
