"""The vortex in blocks of 4 ranks, in every mode; rank 0 prints how many values differ from one rank's.

``python -m tests.training.cfd.split_job``, under mpiexec. Smaller jobs are made of the first ranks.
"""

from __future__ import annotations

import json

import numpy as np

from fabrics.model import Fabric
from microbench import mpi
from suite import session
from training.cfd import blocks
from training.cfd.halo import Halo
from training.cfd.solver import Solver

BOX = (13, 11, 5)
STEPS = 6
SPLITS = ((2, 1), (1, 2), (3, 1), (2, 2), (4, 1))
MODES = {"blocking": {}, "overlapped": {"overlap": True}, "probes": {"overlap": True, "probes": True}}


def main() -> None:
    """Solve and print."""
    job = session.open_job(mpi.start("single"), Fabric("here", "shm", ()))
    alone = Solver(BOX, blocks.block(BOX, (1, 1), 0), 0.6)
    sums = sum(alone.step() for _ in range(STEPS))
    for split in SPLITS:
        ranks = split[0] * split[1]
        comm = job.comm.Split(int(job.rank < ranks), job.rank)
        for mode, how in MODES.items() if job.rank < ranks else ():
            block = blocks.block(BOX, split, job.rank)
            halo = Halo(job.engine, comm, block)
            solver = Solver(BOX, block, 0.6, halo)
            mine = sum(solver.step(**how) for _ in range(STEPS))
            (x, y, _), (nx, ny, _) = block.first, block.cells
            wrong = int((solver.own.view("u8") != alone.own[:, x : x + nx, y : y + ny].view("u8")).sum())
            told = comm.gather((wrong, block.count, list(mine)))
            halo.close()
            if told:
                wrong, cells, parts = zip(*told, strict=True)
                off = float(np.abs(np.sum(parts, axis=0) / sums - 1).max())
                print(
                    json.dumps({"split": split, "mode": mode, "wrong": wrong, "cells": cells, "off": off}), flush=True
                )


if __name__ == "__main__":
    main()
