"""How long a collective keeps a CUDA device busy, by events on its stream: beside the host's time, not instead of it.

The host's time ends when the device is synchronised, and so includes what it takes to launch and to wait; a wait for
torch's handle alone would end before the data is there. Not verified on hardware.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from microbench.record import Metric
from microbench.stats import metric, quantile
from microbench.sync import Barrier

if TYPE_CHECKING:
    from collectives.backends.measured import Ready
    from microbench.job import Job

ITERATIONS = 50
MakeEvent = Callable[[], Any]


def _event() -> Any:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # no annotations in torch


def device_ns(job: Job, ready: Ready, make: MakeEvent = _event, iterations: int = ITERATIONS) -> NDArray[np.int64]:
    """Times between an event before the call and one after it, in ns: of shape (ranks, iterations) on rank 0.

    Events are recorded on the current stream, which the call has made to wait for the backend's own.
    """
    start = job.engine.program(*ready.placing, *Barrier(job).calls())
    times = np.zeros(iterations, "i8")
    for i in range(iterations):
        start.run(1)
        begin, end = make(), make()
        begin.record()
        ready.function()
        end.record()
        end.synchronize()
        times[i] = round(begin.elapsed_time(end) * 1e6)  # it tells ms
    return job.gather(times)


def metric_of(times_ns: NDArray[np.int64]) -> Metric:
    """The median over iterations of the slowest rank's, in s."""
    return metric(quantile(times_ns.max(axis=0) * 1e-9, series=True), "s")
