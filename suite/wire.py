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


class Stream:
    """What arrives on one output: events, and lines of log.

    Launchers cut a rank's long line where another rank's event falls into it. Events of other ranks begin with a new
    line, so that the halves come as lines of their own, and are joined where the checksum says that they belong
    together.
    """

    def __init__(self) -> None:
        self._rest, self._torn = b"", b""

    def feed(self, data: bytes) -> list[dict[str, Any] | bytes]:
        """The events and lines that are whole with ``data``; without data, the end, what is left."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if not data:
            lines, self._rest = [self._rest], b""
        return [self._item(line) for line in lines if line]

    def _item(self, line: bytes) -> dict[str, Any] | bytes:
        event = unseal(line)
        if event is not None:
            return event
        if line[: len(_MARK)] == _MARK[: len(line)]:
            self._torn = line
        elif self._torn:
            self._torn += line
            event = unseal(self._torn)
            if event is not None:
                self._torn = b""
        return line if event is None else event
