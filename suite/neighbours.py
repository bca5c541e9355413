"""Two runs on one machine measure each other: the reports of both say so."""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WARNING = "another run of fabricbench is measuring on this machine: the two disturb each other"


class Watch:
    """Whether another run was on when this one began, or began meanwhile."""

    def __init__(self, descriptor: int | None) -> None:
        """Take the lock of ``descriptor``; None where nothing can be known of others."""
        self._descriptor = descriptor
        self._free = descriptor is None or _lock(descriptor)
        if descriptor is not None and not self._free:
            os.write(descriptor, b".")  # a mark that the other run finds
        self._marks = 0 if descriptor is None else os.fstat(descriptor).st_size

    @property
    def disturbed(self) -> bool:
        """Whether there was another run, up to now."""
        if self._descriptor is None:
            return False
        return not self._free or os.fstat(self._descriptor).st_size > self._marks


@contextmanager
def watch(folder: Path | None = None) -> Iterator[Watch]:
    """Look out for other runs on this machine; meanwhile this one counts as being on."""
    path = (folder or Path(tempfile.gettempdir())) / "fabricbench-running"
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor: int | None = os.open(path, flags, 0o666)
    except OSError:  # a folder that cannot be written, or another user's file
        descriptor = None
    try:
        found = Watch(descriptor)
        if found.disturbed:
            print(f"fabricbench: warning: {WARNING}", file=sys.stderr)
        yield found
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
