"""Device memory: is there any, and may MPI be handed it. Not verified on hardware: tested with fakes.

``cuda`` is device memory as such, ``cuda-staged`` the same copied through host memory around every message.

A library that knows nothing of CUDA takes a device address for one of its own, and ends the process or sends what lies
there. So whether it knows is asked before the first call, and a buffer that it cannot read is refused.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fabrics.errors import CannotRun, UserError
from microbench.case import Unsupported
from microbench.job import lowest_fault
from microbench.mpi import make

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

    from microbench.engine import Engine

CPU, CUDA, STAGED = "cpu", "cuda", "cuda-staged"
DEVICES = (CPU, CUDA, STAGED)
NOT_VERIFIED = "not verified on hardware"
_DRIVER = "libcuda.so.1"
_QUERY = "MPIX_Query_cuda_support"
_SWITCH, _OFF = "MPIR_CVAR_ENABLE_GPU", ("0", "no", "false", "off", "disable")

Ask = Callable[[], str]


def why_none(device: str, asked: Sequence[Ask] | None = None) -> str:
    """Why this host has no such device, or nothing; UserError for a name that is none.

    ``asked`` are what is asked in turn, the driver before torch, which takes seconds to import.
    """
    if device not in DEVICES:
        raise UserError(f"unknown device {device!r}: one of {', '.join(DEVICES)}")
    if device == CPU:
        return ""
    for ask in (driver, torch_build) if asked is None else asked:
        if reason := ask():
            return f"no CUDA device: {reason}"
    return ""


def require(device: str) -> None:
    """Raise CannotRun where this host has no such device."""
    if reason := why_none(device):
        raise CannotRun(reason)


def missing(comm: Intracomm, device: str) -> str:
    """Why a rank has no such device, the same on all ranks, or nothing."""
    return "" if device == CPU else lowest_fault(comm, why_none(device))


def driver(name: str = _DRIVER) -> str:
    """Why NVIDIA's driver has no device, or nothing; it is asked without torch."""
    try:
        library = ctypes.CDLL(name)
    except OSError:
        return f"the driver's library {name} is not here"
    if rc := library.cuInit(0):
        return f"the driver does not start (cuInit returned {rc})"
    count = ctypes.c_int(0)
    if rc := library.cuDeviceGetCount(ctypes.byref(count)):
        return f"the driver does not tell its devices (cuDeviceGetCount returned {rc})"
    return "" if count.value else "the driver finds none"


def torch_build() -> str:
    """Why torch cannot use the driver's devices, or nothing."""
    import torch  # noqa: PLC0415 - it takes seconds, and is asked last

    if torch.version.cuda is None:
        return f"torch {torch.__version__} is built without CUDA"
    return "" if torch.cuda.is_available() else f"torch {torch.__version__} finds none"


@dataclass(frozen=True)
class Support:
    """Whether an MPI library takes device addresses, and how that is known."""

    aware: bool
    how: str


def cuda_support(engine: Engine, environment: Mapping[str, str] = os.environ) -> Support:
    """What the library itself says; one that does not say is taken not to.

    ``MPIX_Query_cuda_support``: Open MPI's manual, and MPICH's ``MPIX_Query_cuda_support(3)``; Intel MPI has it too.
    """
    library = make(engine.MPI.Get_library_version())
    if environment.get(_SWITCH, "").lower() in _OFF and "Open MPI" not in library:
        return Support(False, f"{library} is told not to take it ({_SWITCH}={environment[_SWITCH]})")
    try:
        address = engine.function(_QUERY)
    except CannotRun:
        return Support(False, f"{library} does not say that it takes it (it has no {_QUERY})")
    aware = bool(ctypes.CFUNCTYPE(ctypes.c_int)(address)())
    return Support(aware, f"{library} {'takes' if aware else 'does not take'} it ({_QUERY})")


def claims_cuda(buffer: Any) -> bool:
    """Whether an object says that its bytes are in device memory, as mpi4py would believe it."""
    return hasattr(buffer, "__cuda_array_interface__")


def refuse(buffer: Any, engine: Engine) -> None:
    """Raise Unsupported for a buffer that says it is in device memory, where MPI takes no such memory.

    To be asked before the call: a library that does not know of devices would read the address as the host's.
    """
    if claims_cuda(buffer) and not (support := cuda_support(engine)).aware:
        raise Unsupported(f"device memory, and {support.how}: {STAGED} copies it through host memory")
