"""Events between a worker and its supervisor, as lines of :mod:`suite.wire`.

They travel on rank 0's standard output, because hosts may share neither a file system nor a route to the
supervisor. Whatever else arrives on a worker's output is log.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.record import finite
from suite.wire import seal


def encode(event: Mapping[str, Any]) -> bytes:
    """One event as a checksummed line."""
    return seal(finite(event))


def pack(samples: Mapping[str, NDArray[Any]]) -> dict[str, dict[str, Any]]:
    """Arrays as JSON data."""
    return {
        name: {
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "data": base64.b64encode(array.tobytes()).decode(),
        }
        for name, array in samples.items()
    }


def unpack(data: Mapping[str, Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    """What :func:`pack` packed."""
    return {
        name: np.frombuffer(base64.b64decode(a["data"]), a["dtype"]).reshape(a["shape"]) for name, a in data.items()
    }
