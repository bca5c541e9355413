"""The DPUs' part of a case of ``train``: they add gradients up, and need no torch for that."""

from __future__ import annotations

import numpy as np

from collectives.offload.service import serve
from microbench.case import Outcome
from training.cast import Cast


def served(cast: Cast) -> Outcome:
    """Serve the hosts until they have measured, where they measure at all; on every DPU's rank."""
    if cast.crew is None:
        raise ValueError("there are no DPUs in this case")
    (begins,) = cast.crew.quiet.decide(0.0)
    if begins:
        done = serve(cast.crew)
        cast.crew.quiet.gather(np.array([float(done)]))
    return Outcome()
