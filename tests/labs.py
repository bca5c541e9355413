"""Labs of a test's or a figure's own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from fabrics.lab import cluster
from fabrics.lab.check import why_not
from fabrics.lab.config import LabConfig


@contextmanager
def made(name: str, **config: Any) -> Iterator[cluster.Lab]:
    """A lab under a name of this process, removed at the end."""
    own = f"{name}{os.getpid()}"
    try:
        yield cluster.up(LabConfig(own, **config))
    finally:
        cluster.down(own)


@contextmanager
def or_skip(name: str, **config: Any) -> Iterator[cluster.Lab]:
    """The same for a test, which skips with the reason where no lab can be made."""
    if reason := why_not():
        pytest.skip(reason)
    with made(name, **config) as lab:
        yield lab
