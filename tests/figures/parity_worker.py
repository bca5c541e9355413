"""One rank of the parity benchmark: native loop and C reference in turn, blocks of iterations, in one process."""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable

import numpy as np

from microbench import mpi
from microbench.buffers import allocate
from microbench.engine import Engine, Program, durations, requests, stamped, statuses
from microbench.sizes import parse_sizes
from suite.binding import bind

WINDOW = 64
SIZES = (0, 8, 64, 1024, 8192, 65536, 262144, 1 << 20, 4 << 20)
PAIRS = 41
BLOCK_NS = 20e6
BENCHMARKS = ("pingpong", "window", "allreduce")

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


def main() -> None:
    """Every cell, as JSON lines on rank 0."""
    library = ctypes.CDLL(sys.argv[1])
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else PAIRS
    sizes = parse_sizes(sys.argv[3]) if len(sys.argv) > 3 else SIZES
    make = mpi.make(MPI.Get_library_version())
    for name in BENCHMARKS:
        for n in sizes:
            native = {"pingpong": pingpong, "window": window, "allreduce": allreduce}[name](n)
            ours, theirs = compare(native.run, reference(library, name, n), pairs)
            if RANK == 0:
                cell = {
                    "mpi": make,
                    "benchmark": name,
                    "nbytes": n,
                    "native_ns": ours,
                    "reference_ns": theirs,
                }
                print(json.dumps(cell), flush=True)


if __name__ == "__main__":
    main()
