"""A line between a worker and its supervisor: ``@fb CRC32 TEXT``. Standard library alone."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

_MARK = b"@fb "


def seal(event: Mapping[str, Any]) -> bytes:
    """One event as a checksummed line; ValueError for a number that JSON has not."""
    body = json.dumps(event, separators=(",", ":"), allow_nan=False).encode()
    return _MARK + b"%08x " % zlib.crc32(body) + body + b"\n"


def unseal(line: bytes) -> dict[str, Any] | None:
    """The event of a line; None where it is log, or was damaged on its way."""
    if not line.startswith(_MARK):
        return None
    checksum, _, body = line[len(_MARK) :].rstrip(b"\r\n").partition(b" ")
    if checksum != b"%08x" % zlib.crc32(body):
        return None
    event = json.loads(body)
    return event if isinstance(event, dict) else None
