"""Programs: an iteration as a constant list of calls, run natively.

A benchmark is built once, here, as ``(name, argument, ...)`` tuples of MPI functions and leaf calls, and run by
the loop of ``loop.c``, which knows neither MPI nor Python. Only the suite's own modules build programs: a wrong
number of arguments is refused, a wrong type crashes.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import platform
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fabrics.errors import CannotRun
from microbench.page import Page

MACHINES = ("x86_64", "aarch64", "ppc64le", "riscv64")
LEAVES = {
    "stamp": 0,
    "spent": 0,
    "work": 1,
    "stream": 3,
    "roll": 4,
    "copy": 3,
    "nap": 1,
    "lag": 1,
    "deadline": 2,
    "wait_until": 2,
    "probe": 2,
    "test_until": 6,
    "ring": 1,
    "hear": 7,
    "look": 1,
}
_COLUMNS = ("stamp", "wait_until", "spent")  # each gives a column: a time, how early the first look was, a processor's
_CALL = np.dtype([("fn", "u8"), ("n", "i8"), ("a", "u8", 14)])
_STATUS_WORDS = 8  # 64 bytes, more than any MPI's MPI_Status

CallSpec = tuple[Any, ...]


def check_platform(
    system: str = sys.platform, machine: str = "", bits: int = 8 * ctypes.sizeof(ctypes.c_void_p)
) -> None:
    """Raise CannotRun where a 64-bit word is not how every argument travels."""
    machine = machine or platform.machine()
    if system != "linux" or bits != 64 or machine not in MACHINES:
        raise CannotRun(
            f"the native loop needs 64-bit Linux on {', '.join(MACHINES)}: this is {bits}-bit {system} on {machine}"
        )


@dataclass(frozen=True, eq=False)
class Function:
    """A function of another library than MPI, or of Python, as a call: it takes words, and returns 0 on success.

    ``explain`` words what it returned else; ``keeps`` is what must live as long as the function.
    """

    name: str
    address: int
    arity: int
    explain: Callable[[int], str]
    keeps: Any = None

    def __str__(self) -> str:
        return self.name


class LoopError(Exception):
    """A call of a program failed: which, in which iteration, on which rank, and what MPI says of it."""


def word(value: Any) -> int:
    """The 64-bit word that C receives: an integer, an MPI handle, or the address of an array."""
    if isinstance(value, np.ndarray):
        return int(value.ctypes.data)
    return int(getattr(value, "handle", value)) % 2**64


def requests(n: int, MPI: ModuleType) -> NDArray[np.uint8]:  # noqa: N803 - the module's own name
    """Room for ``n`` MPI_Request, one a row, all MPI_REQUEST_NULL."""
    size = MPI._sizeof(MPI.Request)
    null = word(MPI.REQUEST_NULL).to_bytes(8, sys.byteorder)[:size]
    return np.tile(np.frombuffer(null, "u1"), (n, 1))


def statuses(n: int) -> NDArray[np.int64]:
    """Room for ``n`` MPI_Status of any MPI."""
    return np.zeros((n, _STATUS_WORDS), "i8")


def arities(pxd: str) -> dict[str, int]:
    """The number of arguments of every MPI function in mpi4py's own prototypes."""
    found = re.findall(r"\bint (MPI_\w+)\s*\(([^()]*)\)", pxd)
    return {name: 0 if args.strip() in ("", "void") else args.count(",") + 1 for name, args in found}


class Engine:
    """The loop bound to the process's MPI: makes programs, and tells where the running one is."""

    def __init__(self, MPI: ModuleType, page: Page | None = None) -> None:  # noqa: N803 - the module's own name
        check_platform()
        self.MPI = MPI
        self.page = page or Page()
        self.lib = ctypes.CDLL(_loop_path())
        self.lib.fb_loop.argtypes = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
        self._mpi = _mpi_library(MPI)
        import mpi4py  # noqa: PLC0415 - only where MPI has been started

        self._arity = arities(Path(mpi4py.__file__).with_name("libmpi.pxd").read_text("utf-8"))

    def function(self, name: str | Function) -> int:
        """The address of an MPI function, a leaf or another library's; Unsupported names are CannotRun."""
        if isinstance(name, Function):
            return name.address
        try:
            symbol = getattr(self.lib, f"fb_{name}") if name in LEAVES else getattr(self._mpi, name)
        except AttributeError:
            raise CannotRun(f"this MPI library has no {name}") from None
        return int(ctypes.cast(symbol, ctypes.c_void_p).value or 0)

    def has(self, name: str) -> bool:
        """Whether this MPI library, and mpi4py's prototypes, have ``name``."""
        return name in self._arity and hasattr(self._mpi, name)

    def arity(self, name: str | Function) -> int:
        """How many arguments ``name`` takes; KeyError for what is neither MPI nor a leaf."""
        if isinstance(name, Function):
            return name.arity
        return LEAVES[name] if name in LEAVES else self._arity[name]

    def program(self, *calls: CallSpec | str) -> Program:
        """A program of these calls; ``"stamp"`` takes the time. TypeError for a wrong number of arguments."""
        return Program(self, [(c,) if isinstance(c, str) else c for c in calls])

    def where(self) -> str:
        """The call and iteration in progress, for another thread: ``MPI_Recv (call 2) in iteration 17 of 100``."""
        return self.page.loop() or "outside the loop"


class Program:
    """A list of calls, ready to run any number of times."""

    def __init__(self, engine: Engine, calls: list[CallSpec]) -> None:
        self.engine, self.calls = engine, calls
        self._names = "\n".join(str(call[0]) for call in calls).encode()
        self.stamps = sum(call[0] in _COLUMNS for call in calls)
        self._next = np.zeros(1, "u8")
        self._code = np.zeros(len(calls), _CALL)
        for op, (name, *args) in zip(self._code, calls, strict=True):
            if len(args) != engine.arity(name):
                raise TypeError(f"{name} takes {engine.arity(name)} arguments: {len(args)} given")
            words = [word(argument) for argument in self._leaf_arguments(name, args)]
            op["fn"], op["n"] = engine.function(name), len(words)
            op["a"][: len(words)] = words

    def _leaf_arguments(self, name: str | Function, args: list[Any]) -> list[Any]:
        if name in _COLUMNS:
            return [*args, self._next]
        if name in ("probe", "test_until"):
            return [self.engine.function("MPI_Test"), *args]
        return args

    def run(self, iterations: int) -> NDArray[np.int64]:
        """Run, and return what every call of ``_COLUMNS`` told, in ns: shape (iterations, stamps).

        Raises LoopError at the first call that fails.
        """
        times = np.full((iterations, self.stamps), -1, "i8")  # written now, so that no page fault is timed
        self._next[0] = times.ctypes.data
        page = self.engine.page
        page.show(self._names, iterations)
        rc = self.engine.lib.fb_loop(self._code.ctypes.data, len(self._code), iterations, page.address)
        if rc:
            reason = self._explain(rc)
            page.clear()
            raise LoopError(reason)
        return times

    def _explain(self, rc: int) -> str:
        call, iteration = self.engine.page.at
        called = self.calls[call][0]
        if isinstance(called, Function):
            text = called.explain(rc)
        elif rc < 0:
            text = os.strerror(-rc)
        else:
            text = "; ".join(line.strip() for line in self.engine.MPI.Get_error_string(rc).splitlines())
        rank = self.engine.MPI.COMM_WORLD.Get_rank()
        return f"{called} (call {call}) failed in iteration {iteration} on rank {rank}: {text}"


def _loop_path() -> str:
    spec = importlib.util.find_spec("microbench._loop")
    if spec is None or spec.origin is None:
        raise CannotRun("the native loop is not built: install fabricbench with pip, which needs a C compiler")
    return spec.origin


def _mpi_library(MPI: ModuleType) -> ctypes.CDLL:  # noqa: N803
    """The process's own symbols first, so that a preloaded profiler is honoured; then mpi4py's library."""
    for library in (ctypes.CDLL(None), ctypes.CDLL(MPI.__file__)):
        if hasattr(library, "MPI_Send"):
            return library
    raise CannotRun("mpi4py's library does not lead to MPI_Send: reinstall mpi4py for the MPI in use")


def stamped(pairs: Iterable[CallSpec | str]) -> list[CallSpec | str]:
    """``pairs`` between two stamps."""
    return ["stamp", *pairs, "stamp"]


def durations(times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Last stamp minus first, in ns, per iteration."""
    return times[:, -1] - times[:, 0]
