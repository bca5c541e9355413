"""What counters say of the libraries that exchange gradients."""

from __future__ import annotations

import numpy as np

from collectives.backends.proving import PROBE_BYTES, prove
from fabrics.model import Proof
from microbench.job import Job
from training.exchange.modes import GLOO, Mode

_VERDICTS = ("proved", "unknown", "disproved")


def proof_of(here: Job, modes: tuple[Mode, ...]) -> Proof | None:
    """The worst of the libraries in use, by 64 MiB of each. Collective over the hosts.

    None where the job's own proof, which is MPI's, speaks of all of them, and in a job of the user's own.
    """
    primitives = {mode.primitive for mode in modes}
    if GLOO not in primitives or here.size == 1 or not here.fabric.devices:
        return None
    found = [prove(here)]
    if primitives != {GLOO}:
        payload = np.ones(PROBE_BYTES // 4, np.float32)
        total, least = np.empty_like(payload), 2 * (here.size - 1) * PROBE_BYTES // here.size
        found.append(here.prove(lambda: here.comm.Allreduce(payload, total), least, least))
    return max(found, key=lambda proof: _VERDICTS.index(proof.verdict))
