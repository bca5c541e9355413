"""Two ranks, a payload one way, and what every host's counters say: one JSON line per rank on standard output."""

import json
import os
import socket
import sys
import time
from collections.abc import Callable

import numpy as np

from fabrics import counters

QUIET_S = 0.1
CHUNK_BYTES = 1 << 20


def mpi_rank(payload_bytes: int) -> tuple[int, Callable[[], None], Callable[[], None]]:
    """Rank, barrier and traffic over MPI."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    chunk = np.ones(CHUNK_BYTES, dtype=np.uint8)

    def traffic() -> None:
        for _ in range(payload_bytes // CHUNK_BYTES):
            if world.rank == 0:
                world.Send(chunk, 1)
            else:
                world.Recv(chunk, 0)

    return world.rank, world.Barrier, traffic


def gloo_rank(payload_bytes: int) -> tuple[int, Callable[[], None], Callable[[], None]]:
    """Rank, barrier and traffic over torch's gloo; RANK and MASTER_ADDR come from the environment."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", world_size=2, rank=int(os.environ["RANK"]))
    chunk = torch.ones(CHUNK_BYTES, dtype=torch.uint8)

    def traffic() -> None:
        for _ in range(payload_bytes // CHUNK_BYTES):
            if dist.get_rank() == 0:
                dist.send(chunk, 1)
            else:
                dist.recv(chunk, 0)

    return dist.get_rank(), dist.barrier, traffic


def main() -> None:
    library, payload = sys.argv[1], int(sys.argv[2])
    rank, barrier, traffic = {"mpich": mpi_rank, "gloo": gloo_rank}[library](payload)
    barrier()
    before, start = counters.read(), time.monotonic()
    time.sleep(QUIET_S)
    idle, idle_s = counters.delta(before, counters.read()), time.monotonic() - start
    barrier()
    before, start = counters.read(), time.monotonic()
    barrier()
    traffic()
    barrier()
    rises, took_s = counters.delta(before, counters.read()), time.monotonic() - start
    row = {
        "host": socket.gethostname(),
        "sent": payload if rank == 0 else 0,
        "received": payload if rank == 1 else 0,
        "delta": rises,
        "background": counters.scaled(idle, took_s / idle_s),
        "took_s": took_s,
    }
    os.write(1, (json.dumps(row) + "\n").encode())  # one write: lines of two ranks do not mix


main()
