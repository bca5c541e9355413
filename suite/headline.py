"""The series that a record's median is of, from its samples: what ARCHITECTURE.md tells of a printed interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.record import Record

Samples = Mapping[str, NDArray[Any]]


def counted(record: Record, samples: Samples) -> NDArray[np.float64]:
    """Local durations in s of every rank and every iteration that counts, of shape (ranks, n), per single operation."""
    times = np.asarray(samples["time"], float) * 1e-9 / float(record.method.get("batched") or 1)
    if "valid" in samples:
        times = times[:, np.asarray(samples["valid"])[0].astype(bool)]
    return times


def series(record: Record, samples: Samples) -> NDArray[np.float64]:
    """The headline of each iteration in s: half of a round trip, else the longest of the reported ranks' durations."""
    times = counted(record, samples)
    if record.benchmark == "latency":
        return np.asarray(times[0] / 2)
    return np.asarray(times[list(record.reported_ranks)].max(axis=0))
