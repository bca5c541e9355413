"""A planted fault of the start: rank 1 is stopped while it loads its benchmarks."""

from __future__ import annotations

import os
import signal

from microbench.registry import Benchmark

BENCHMARKS: tuple[Benchmark, ...] = ()

if os.environ.get("PMI_RANK") == "1":
    os.kill(os.getpid(), signal.SIGSTOP)
