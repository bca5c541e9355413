"""A rank's page: where it is, in memory that another process reads when the rank itself no longer speaks.

The native loop writes its progress straight into the page's first two words, so that telling costs the timed path
nothing. Standard library alone: the watchdog that reads it must start fast.
"""

from __future__ import annotations

import ctypes
from typing import Any

SIZE_BYTES = 4096
_STAGE_BYTES = 64


class _Layout(ctypes.Structure):
    _fields_ = (
        ("at", ctypes.c_int64 * 2),
        ("iterations", ctypes.c_int64),
        ("case", ctypes.c_int64),
        ("deadline_ns", ctypes.c_int64),
        ("stage", ctypes.c_char * _STAGE_BYTES),
        ("names", ctypes.c_char * (SIZE_BYTES - 5 * 8 - _STAGE_BYTES)),
    )


class Page:
    """One rank's page, in ``memory`` of 4096 bytes that is shared, or in memory of its own."""

    def __init__(self, memory: Any = None) -> None:
        self._data = _Layout.from_buffer(bytearray(SIZE_BYTES) if memory is None else memory)
        self._shown = b""
        if memory is None:
            self.reset()

    def reset(self) -> None:
        """As it is before anything has run."""
        self._data.at[0] = self._data.case = -1

    @property
    def address(self) -> int:
        """Where the loop writes: the call in progress, -1 when none is, and the iteration."""
        return ctypes.addressof(self._data)

    @property
    def at(self) -> tuple[int, int]:
        """The call in progress, -1 when none is, and the iteration."""
        return self._data.at[0], self._data.at[1]

    def show(self, names: bytes, iterations: int) -> None:
        """A program is about to run: its calls' names, one a line, and how many iterations."""
        self._data.iterations = iterations
        if names is not self._shown:
            self._data.names = names[: _Layout.names.size - 1]
            self._shown = names

    def clear(self) -> None:
        """No program is running, though the last one did not come to its end."""
        self._data.at[0] = -1

    def enter(self, stage: str, case: int, deadline_ns: int) -> None:
        """What the rank does now, of which case (-1: none), and until when on the monotonic clock (0: no limit)."""
        self._data.stage = stage.encode()[: _STAGE_BYTES - 1]
        self._data.case, self._data.deadline_ns = case, deadline_ns

    @property
    def stage(self) -> str:
        """What the rank does, apart from its loop; empty before it has said anything."""
        return bytes(self._data.stage).decode()

    @property
    def case(self) -> int:
        """The number of the case, -1 between cases."""
        return int(self._data.case)

    @property
    def deadline_ns(self) -> int:
        """When the stage should be over, on the monotonic clock; 0 where it has no limit."""
        return int(self._data.deadline_ns)

    def loop(self) -> str:
        """The call and iteration in progress: ``MPI_Recv (call 2) in iteration 17 of 100``; empty outside the loop."""
        call, iteration = self.at
        if call < 0:
            return ""
        names = bytes(self._data.names).decode().split("\n")
        name = names[call] if call < len(names) else "a call"
        return f"{name} (call {call}) in iteration {iteration} of {self._data.iterations}"
