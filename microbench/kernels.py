"""Native work outside programs: the triad that memory bandwidth is measured by, and a fixed amount of computing.

Both drop the interpreter's lock, so threads run them side by side.
"""

from __future__ import annotations

import ctypes
import importlib.util
import time

import numpy as np
from numpy.typing import NDArray

from fabrics.errors import CannotRun

TRIAD_BYTES = 24  # per element: STREAM counts two reads and one write of 8 bytes, no write-allocate
SCALAR = 3.0


class Kernels:
    """The native kernels of this installation; CannotRun where they are not built."""

    def __init__(self) -> None:
        self._triad = _library("microbench._kernels").fb_triad
        self._triad.argtypes = *(ctypes.c_void_p,) * 3, ctypes.c_int64, ctypes.c_int64
        self._triad.restype = None
        self._work = _library("microbench._loop").fb_work
        self._work.argtypes = (ctypes.c_int64,)

    def triad(self, a: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.float64], passes: int = 1) -> None:
        """``a = b + 3 c``, ``passes`` times; ValueError for arrays that are not contiguous, of one length, float64."""
        if not all(x.dtype == np.float64 and x.flags.c_contiguous and x.size == a.size for x in (a, b, c)):
            raise ValueError("the triad takes three contiguous arrays of float64, of one length")
        self._triad(a.ctypes.data, b.ctypes.data, c.ctypes.data, a.size, passes)

    def work(self, steps: int) -> int:
        """Do ``steps`` multiply-adds in registers; how long that took, in ns of CLOCK_MONOTONIC."""
        start = time.monotonic_ns()
        self._work(steps)
        return time.monotonic_ns() - start


def _library(name: str) -> ctypes.CDLL:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise CannotRun(f"{name} is not built: install fabricbench with pip, which needs a C compiler")
    return ctypes.CDLL(spec.origin)
