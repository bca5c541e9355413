"""The DPUs' part of a case of ``train``: they add gradients up, and need no torch for that."""

from __future__ import annotations

import numpy as np

from collectives.offload.service import serve
from collectives.offload.tune import Tuned, choose_chunk
from microbench.case import Outcome
from microbench.dtypes import dtype
from training.cast import Cast
from training.exchange.modes import USUAL_CAP_BYTES
from training.models import MODELS


def tuned(cast: Cast) -> Tuned:
    """In pieces of what size the DPUs add a usual bucket up, by trying; collective over hosts and DPUs.

    A bucket in one piece would be read, sent and written one after the other.
    """
    if cast.crew is None:
        raise ValueError("there are no DPUs in this case")
    kind = dtype(cast.setup.dtype)
    count = min(MODELS[cast.setup.workload.model].parameters, USUAL_CAP_BYTES // kind.nbytes)
    return choose_chunk(cast.crew, "allreduce", kind, count, cast.transport)


def served(cast: Cast) -> Outcome:
    """Serve the hosts until they have measured, where they measure at all; on every DPU's rank."""
    if cast.crew is None:
        raise ValueError("there are no DPUs in this case")
    (begins,) = cast.crew.quiet.decide(0.0)
    if begins:
        tuned(cast)
        done = serve(cast.crew)
        cast.crew.quiet.gather(np.array([float(done)]))
    return Outcome()
