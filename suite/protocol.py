"""Lines between a worker and its supervisor: ``@fb CRC32 JSON``.

They travel on rank 0's standard output, because hosts may share neither a file system nor a route to the
supervisor. Whatever else arrives on a worker's output is log.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench.record import finite

_MARK = b"@fb "


def encode(event: Mapping[str, Any]) -> bytes:
    """One event as a checksummed line."""
    body = json.dumps(finite(event), separators=(",", ":"), allow_nan=False).encode()
    return _MARK + b"%08x " % zlib.crc32(body) + body + b"\n"


def decode(line: bytes) -> dict[str, Any] | None:
    """The event of a line; None where it is log, or was damaged on its way."""
    if not line.startswith(_MARK):
        return None
    checksum, _, body = line[len(_MARK) :].rstrip(b"\r\n").partition(b" ")
    if checksum != b"%08x" % zlib.crc32(body):
        return None
    event = json.loads(body)
    return event if isinstance(event, dict) else None


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
