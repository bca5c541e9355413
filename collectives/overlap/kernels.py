"""Work of a fixed count of steps that a host does while its collective is under way, never a wait for a clock.

A *register* step is a dependent multiply-add; a *memory* step adds 1 to the next word of a ring that is four times the
last-level cache, so that no step finds its word in a cache. Where the compute belongs to an accelerator, or another
host stands in for one that computes, a *nap* sleeps for the compute's time: its steps are nanoseconds.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from collectives.overlap.options import MEMORY, REGISTERS
from fabrics import sysfs
from microbench.buffers import allocate
from microbench.engine import CallSpec, Engine, durations, stamped

NAP = "nap"
WORD_BYTES = 8
CACHES = 4  # times the last-level cache
_CALIBRATION_STEPS, _CALIBRATION_RUNS = 200_000, 40
_USUAL_CACHE_BYTES = 32 << 20  # where the kernel does not tell
SLACK_NS = 1000
_SET_TIMERSLACK, _GET_TIMERSLACK = 29, 30  # linux/prctl.h
_STAMP_PAIRS = 200
_STAMPS_PER_MEASURABLE = 20  # a clock reading is then at most 5 % of the time

Calls = list[CallSpec | str]


class Kernel(Protocol):
    """A way to spend the time of a compute."""

    name: str

    def calls(self, steps: int) -> Calls:
        """The calls that do ``steps`` of it."""

    def method(self) -> dict[str, Any]:
        """What a record says of it."""


class Registers:
    """Multiply-adds in registers."""

    name = REGISTERS

    def calls(self, steps: int) -> Calls:
        """One call."""
        return [("work", steps)]

    def method(self) -> dict[str, Any]:
        """Its name."""
        return {"compute": self.name}


class Memory:
    """Words of a ring, one after the other; it goes on where the last call ended."""

    name = MEMORY

    def __init__(self, ring_bytes: int) -> None:
        self._ring = allocate(ring_bytes).view("i8")
        self._at = np.zeros(1, "i8")

    def calls(self, steps: int) -> Calls:
        """One call."""
        return [("roll", self._ring, self._ring.size, self._at, steps)]

    def method(self) -> dict[str, Any]:
        """Its name, and the size of the ring."""
        return {"compute": self.name, "compute_ring_bytes": self._ring.nbytes}


class Nap:
    """Sleep; a step is a nanosecond."""

    name = NAP

    def calls(self, steps: int) -> Calls:
        """One call."""
        return [("nap", steps)]

    def method(self) -> dict[str, Any]:
        """Its name."""
        return {"compute": "a sleep of the compute's time"}


@contextmanager
def punctual() -> Iterator[None]:
    """Let this thread's sleeps end within a microsecond of their time, not within Linux's usual 50."""
    libc = ctypes.CDLL(None, use_errno=True)
    usual = int(libc.prctl(_GET_TIMERSLACK, 0, 0, 0, 0))
    libc.prctl(_SET_TIMERSLACK, SLACK_NS, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(_SET_TIMERSLACK, max(usual, 0), 0, 0, 0)


def cache_bytes(folder: Path = sysfs.SYS / "devices/system/cpu/cpu0/cache") -> int:
    """The size of the last level of cache, as the kernel tells it; 0 where it does not."""
    sizes: dict[int, int] = {}
    for index in folder.glob("index*"):
        level, size = sysfs.number(index / "level"), _size(index / "size")
        if level is not None and size:
            sizes[level] = size
    return sizes[max(sizes)] if sizes else 0


def _size(path: Path) -> int:
    """Bytes of the kernel's ``32768K``."""
    try:
        text = path.read_text("ascii").strip()
    except OSError:
        return 0
    scale = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
    digits = text.rstrip("KMG")
    return int(digits) * scale if digits.isdigit() else 0


def ring_bytes(cache: int) -> int:
    """How large the ring of the memory kernel has to be, in whole words."""
    return CACHES * (cache or _USUAL_CACHE_BYTES) // WORD_BYTES * WORD_BYTES


@dataclass(frozen=True)
class Rate:
    """``ns_per_step`` of a kernel alone."""

    ns_per_step: float

    @classmethod
    def of(cls, engine: Engine, kernel: Kernel) -> Rate:
        """Time it, in the median of a fixed number of runs; a nap's step is a nanosecond by definition."""
        if kernel.name == NAP:
            return cls(1.0)
        program = engine.program(*stamped(kernel.calls(_CALIBRATION_STEPS)))
        settled = durations(program.run(_CALIBRATION_RUNS))[_CALIBRATION_RUNS // 4 :]
        return cls(float(np.median(settled)) / _CALIBRATION_STEPS)


def noise_ns(engine: Engine) -> float:
    """The shortest time that the clock can tell."""
    pairs: NDArray[np.int64] = durations(engine.program("stamp", "stamp").run(_STAMP_PAIRS))
    return _STAMPS_PER_MEASURABLE * float(np.median(pairs))


@dataclass(frozen=True)
class Work:
    """The compute of a case: a count of steps of the computing hosts' kernel.

    ``ns_per_step`` is the rate at which rank 0 alone was seen to do them, ``stand_in_ns_per_step`` that of the kernel
    that hosts burn which are not reported. ``noise_ns`` is the shortest time that the clock can tell; ``pure_ns`` is
    the hosts' own time of the collective, of which the compute takes ``fraction``.
    """

    fraction: float
    pure_ns: float
    steps: int
    ns_per_step: float
    noise_ns: float
    stand_in_ns_per_step: float = 1.0

    @property
    def alone_ns(self) -> int:
        """How long the count takes alone."""
        return round(self.steps * self.ns_per_step)

    def steps_of(self, ns_per_step: float) -> int:
        """How many steps of another kernel take as long."""
        return round(self.alone_ns / ns_per_step)
