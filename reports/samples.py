"""The series that a record's median is of, from its samples, which are at hand, in ns, or read back.

The headline of each iteration is made as ARCHITECTURE.md tells of a printed interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.record import Record
from reports.load import mapping
from reports.view import number

Samples = Mapping[str, NDArray[Any]]
_TYPES = ("<i8", "<f8")


def counted(record: Record, samples: Samples) -> NDArray[np.float64]:
    """Local durations in s of every rank and every iteration that counts, of shape (ranks, n), per single operation."""
    times = samples["time"]
    if "valid" in samples:
        times = times[:, samples["valid"][0] == 1]
    return np.asarray(times, float) * 1e-9 / (number(record.method.get("batched")) or 1.0)


def headline(record: Record, samples: Samples) -> NDArray[np.float64]:
    """That of each iteration in s: half of rank 0's round trip, else the longest of the reported ranks' durations."""
    times = counted(record, samples)
    if record.benchmark == "latency":
        return np.asarray(times[0] / 2)
    ranks = [rank for rank in record.reported_ranks if rank < len(times)]
    return np.asarray(times[ranks or slice(None)].max(axis=0))


def series(directory: Path, record: Record) -> NDArray[np.float64] | None:
    """The headline of every iteration that counts, in s, in the order of time; None where samples do not tell it.

    Files that are missing, cut off or damaged tell nothing.
    """
    times = _read(directory, mapping(record.samples.get("time")))
    if times is None or times.ndim != 2 or not times.size:
        return None
    samples = {"time": times if np.issubdtype(times.dtype, np.integer) else times * 1e9}  # stored reals are seconds
    valid = _read(directory, mapping(record.samples.get("valid")))
    if valid is not None and valid.shape == (1, times.shape[1]):
        samples["valid"] = valid
    found = headline(record, samples)
    return found if found.size else None


def _read(directory: Path, cited: Mapping[str, Any]) -> NDArray[Any] | None:
    name, offset, shape, dtype = (cited.get(key) for key in ("file", "offset", "shape", "dtype"))
    shape = shape if isinstance(shape, list | tuple) and all(isinstance(n, int) and n > 0 for n in shape) else None
    if not isinstance(name, str) or not isinstance(offset, int) or offset < 0 or shape is None or dtype not in _TYPES:
        return None
    path = directory / name
    if not path.resolve().is_relative_to(directory.resolve()) or not path.is_file():
        return None
    count = math.prod(shape)
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read(count * 8)
    return np.frombuffer(data, dtype).reshape(shape) if len(data) == count * 8 else None
