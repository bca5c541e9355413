"""Two runs on one machine measure each other: the second is told, and its report says so."""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WARNING = "another run of fabricbench is measuring on this machine: the two disturb each other"


@contextmanager
def alone(folder: Path | None = None) -> Iterator[bool]:
    """Whether no other run of any user is on; meanwhile this one counts as being on."""
    path = (folder or Path(tempfile.gettempdir())) / "fabricbench-running"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError:  # a folder that cannot be written: nothing is known of others
        yield True
        return
    try:
        free = _lock(descriptor)
        if not free:
            print(f"fabricbench: warning: {WARNING}", file=sys.stderr)
        yield free
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
