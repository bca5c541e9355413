"""A process that does fixed native work when it is told to: ``python -m microbench.burner CPU``.

It is bound to processor CPU, reads numbers of steps from standard input, a line each, and answers each with two times
in ns: how long the work took, and how much of the processor. Run in a control group, it tells what a quota leaves.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from typing import TextIO

from microbench.kernels import Kernels


def serve(lines: Iterable[str], out: TextIO) -> None:
    """Do the work of every line, and answer it."""
    kernels = Kernels()
    for line in lines:
        used = time.thread_time_ns()
        wall = kernels.work(int(line))
        print(wall, time.thread_time_ns() - used, file=out, flush=True)


if __name__ == "__main__":
    os.sched_setaffinity(0, {int(sys.argv[1])})
    serve(sys.stdin, sys.stdout)
