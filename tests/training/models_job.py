"""A small MPI job over loopback that trains small networks, and writes rank 0's gradients and weights.

``mpiexec -n 2 python models_job.py FOLDER '[["vgg", "right"], ...]'``: networks, and the exchange of their gradients.
Rank 0 writes ``FOLDER/vgg-right.npz``, and prints what the ranks disagree on, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from collectives.backends.proving import use_threads
from collectives.backends.rendezvous import process_group
from microbench import mpi
from microbench.job import Job
from tests.training.ddp_job import Plants, loopback
from tests.training.small_networks import SEED, STEPS, WORKLOADS, loader, network, weights
from training import checks
from training.exchange.modes import USUAL_CAP_BYTES
from training.exchange.ways import ByTorch
from training.replica import Replica


class Wrong(Plants):
    """Exchanges that are wrong in one way more each."""

    def left_out(self, gradients):
        """The last rank has no part in the mean."""
        last = mpi.launched_rank() == mpi.launched_size() - 1
        return self.right(gradients.zero_() if last else gradients)


def trained(job: Job, name: str, plant: str, folder: Path) -> str:
    """Exchange one set of gradients in the buckets that DDP rebuilds, take steps, and tell a disagreement."""
    way, cap = ByTorch(getattr(Wrong(0.0), plant)), USUAL_CAP_BYTES
    built = network(name).build(SEED, WORKLOADS[name].dropout)
    replica = Replica(built, loader(name, job.rank, job.size), SEED, job.rank, [cap])
    replica.gradients(way, cap)
    gradients = replica.gradients(way, cap)
    for _ in range(STEPS):
        replica.step(way, cap)
    after = weights(replica.network)
    if job.rank == 0:
        arrays = {f"gradient{i}": g for i, g in enumerate(gradients)} | {f"weight{i}": w for i, w in enumerate(after)}
        np.savez(folder / f"{name}-{plant}.npz", buckets=replica.wings[cap].bucket_bytes(), **arrays)
    return checks.agreement_fault(job.comm, gradients) or checks.agreement_fault(job.comm, after)


def main() -> None:
    folder, wanted = Path(sys.argv[1]), json.loads(sys.argv[2])
    use_threads(1)
    job = loopback(mpi.start())
    with process_group(job, timeout_s=60):
        faults = {f"{name}-{plant}": trained(job, name, plant, folder) for name, plant in wanted}
    if job.rank == 0:
        print(json.dumps(faults))


if __name__ == "__main__":
    main()
