"""What counters say of the libraries that exchange gradients."""

from __future__ import annotations

import numpy as np

from collectives.backends.proving import PROBE_BYTES
from collectives.backends.proving import proof_of as by_backend
from fabrics.model import Proof
from microbench.device import CPU, CUDA
from microbench.job import Job
from training.exchange.modes import GLOO, NCCL, Mode

_OWN = "allreduce by MPI"
_VERDICTS = ("proved", "unknown", "disproved")


def proof_of(here: Job, modes: tuple[Mode, ...]) -> Proof | None:
    """The worst of the libraries in use, by 64 MiB of each, once a job. Collective over the hosts.

    None where the job's own proof, which is MPI's, speaks of all of them, and in a job of the user's own.
    """
    primitives = {mode.primitive for mode in modes}
    used = [name for name in (GLOO, NCCL) if name in primitives]
    if not used or here.size == 1 or not here.fabric.devices:
        return None
    found = [by_backend(here, name, CPU if name == GLOO else CUDA) for name in used]
    if primitives - set(used):
        if _OWN not in here.proofs:
            here.proofs[_OWN] = _by_mpi(here)
        found.append(here.proofs[_OWN])
    return max((proof for proof in found if proof), key=lambda proof: _VERDICTS.index(proof.verdict))


def _by_mpi(here: Job) -> Proof:
    payload = np.ones(PROBE_BYTES // 4, np.float32)
    total, least = np.empty_like(payload), 2 * (here.size - 1) * PROBE_BYTES // here.size
    return here.prove(lambda: here.comm.Allreduce(payload, total), least, least)
