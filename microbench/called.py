"""A Python function as a call of a program: the loop enters it, between its own stamps.

What a library offers to Python alone is so measured by the loop that measures MPI: ranks start together natively,
warm-up, looks and stopping are the same, and a watchdog sees the call in progress. The time includes what it takes to
enter Python and to come back, which :func:`overhead_ns` measures.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from microbench.engine import Function, durations, stamped

if TYPE_CHECKING:
    from microbench.engine import Engine

_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int)
_READINGS = 1000


def python_call(name: str, function: Callable[[], object]) -> Function:
    """``function`` as a call without arguments; what it raises ends the loop, and is told in its first line.

    A KeyboardInterrupt is raised again once the loop has ended.
    """
    raised: list[BaseException] = []

    def enter() -> int:
        try:
            function()
        except BaseException as error:  # the loop has to end first: what is raised here, ctypes would drop
            raised[:] = [error]
            return 1
        return 0

    def explain(_rc: int) -> str:
        (error,) = raised
        if not isinstance(error, Exception):
            raise error
        lines = str(error).strip().splitlines()
        return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__

    entry = _ENTRY(enter)
    return Function(name, ctypes.cast(entry, ctypes.c_void_p).value or 0, 0, explain, entry)


def overhead_ns(engine: Engine) -> float:
    """What a call of an empty function takes between two stamps, in the median."""
    empty = engine.program(*stamped([(python_call("nothing", _nothing),)]))
    return float(np.median(durations(empty.run(_READINGS))))


def _nothing() -> None:
    pass
