"""A thread that makes MPI progress while the host computes: the library's own where it lets one be started.

MPICH has had ``MPIX_Start_progress_thread`` since 4.1; with its checks of arguments on, some versions refuse the null
stream, which stands for all communication. Then a thread of ours does the same: it tests a request that stays open
until it is to end. Either runs in its mode's blocks alone, for it spins on the host's core. Both take the same time
(MPICH 5.0.2, allreduce of 4 MiB over 1 Gbit/s beside equal compute: 75 and 74 ms), so no job turns the checks off.
"""

from __future__ import annotations

import ctypes
import threading

import numpy as np

from fabrics.errors import CannotRun
from microbench.engine import Engine, requests, statuses

_START, _STOP = "MPIX_Start_progress_thread", "MPIX_Stop_progress_thread"
_NULL_STREAM = 0x3C000000  # MPIX_STREAM_NULL of MPICH's own ABI; a handle of no kind in all of its versions
_FOR_EVER = 2**62
_JOIN_S = 30.0
_TAG = 7


def why_not(engine: Engine) -> str:
    """Why no thread can make progress here, or nothing."""
    MPI = engine.MPI  # noqa: N806 - the module's own name
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        return "MPI was not started for threads (MPI_THREAD_MULTIPLE)"
    return ""


class ProgressThread:
    """The thread of one rank, started and stopped any number of times."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.refusal = _refusal(engine)
        self._own: _Tester | None = None

    def start(self) -> None:
        """Start it."""
        if not self.refusal:
            _call(self.engine, _START)
            return
        self._own = _Tester(self.engine)

    def stop(self) -> None:
        """Stop it. Raises CannotRun where it does not end."""
        if not self.refusal:
            _call(self.engine, _STOP)
        elif self._own is not None:
            self._own.stop()
            self._own = None

    def method(self) -> dict[str, str]:
        """Whose thread it is, and why it is not the library's."""
        if self.refusal:
            checks = "the library's checks of arguments stay on, as in every other job"
            return {"thread": "a second thread in MPI_Test", "why_not_the_librarys": self.refusal, "checks": checks}
        return {"thread": f"the library's ({_START})"}


def _refusal(engine: Engine) -> str:
    """Why the library's own thread cannot be used, seen by starting and stopping it; nothing where it can."""
    try:
        if error := _called(engine, _START):
            return f"{_START} refuses MPIX_STREAM_NULL: {error}"
        _call(engine, _STOP)
    except CannotRun as error:
        return str(error)
    return ""


def _call(engine: Engine, name: str) -> None:
    if error := _called(engine, name):
        raise CannotRun(f"{name}: {error}")


def _called(engine: Engine, name: str) -> str:
    """What the library says of a call that failed, in its last line; nothing where it succeeded."""
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(engine.function(name))
    code = int(function(_NULL_STREAM))
    if not code:
        return ""
    lines = engine.MPI.Get_error_string(code).strip().splitlines()
    return lines[-1].strip().rpartition(": ")[2] if lines else f"error {code}"


class _Tester:
    """A thread in MPI_Test, natively and without the interpreter's lock, for a message of the process to itself."""

    def __init__(self, engine: Engine) -> None:
        MPI = engine.MPI  # noqa: N806 - the module's own name
        self._comm = MPI.COMM_SELF.Dup()
        self._got, self._slot, self._status = np.zeros(1, "u1"), requests(1, MPI), statuses(1)
        receive = ("MPI_Irecv", self._got, 1, MPI.BYTE, 0, _TAG, self._comm, self._slot)
        engine.program(receive).run(1)
        self._thread = threading.Thread(target=self._test, args=(engine,), daemon=True)
        self._thread.start()

    def _test(self, engine: Engine) -> None:
        """Outside the engine's loop, whose page tells where the rank's main thread is."""
        words = (engine.function("MPI_Test"), self._slot.ctypes.data, self._status.ctypes.data, _FOR_EVER, 0, 0, 0)
        engine.lib.fb_test_until(*(ctypes.c_void_p(word) for word in words))

    def stop(self) -> None:
        """Send the message, and wait for the end. Raises CannotRun where it does not come."""
        self._comm.Send(np.zeros(1, "u1"), 0, _TAG)
        self._thread.join(_JOIN_S)
        if self._thread.is_alive():
            raise CannotRun(f"the thread that makes MPI progress did not end within {_JOIN_S:g} s")
        self._comm.Free()
