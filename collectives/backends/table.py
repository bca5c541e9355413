"""Which backends of torch.distributed there are, what each measures, and why one cannot. No torch until one is asked.

MPI's own backend is called ``mpi``; torch's use of an MPI library is ``torch-mpi``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from microbench.device import CPU, CUDA
from microbench.registry import MPI

OPERATIONS = ("allreduce", "broadcast", "allgather", "reduce_scatter", "alltoall", "barrier")


@dataclass(frozen=True)
class Backend:
    """``torch`` is its name there, ``devices`` whose memory it takes."""

    name: str
    torch: str
    devices: tuple[str, ...] = (CPU, CUDA)


BACKENDS: Mapping[str, Backend] = MappingProxyType(
    {
        backend.name: backend
        for backend in (
            Backend("gloo", "gloo"),
            Backend("nccl", "nccl", (CUDA,)),
            Backend("ucc", "ucc"),
            Backend("torch-mpi", "mpi"),
        )
    }
)


def backends(operation: str) -> tuple[str, ...]:
    """Those that measure a collective, MPI's own first."""
    return (MPI, *BACKENDS) if operation in OPERATIONS else (MPI,)


def why_not(name: str, device: str = CPU, distributed: Any = None) -> str:
    """Why this torch has no such backend for this device's memory, or nothing.

    ``distributed`` stands for torch.distributed. A group of a backend that is not built is never formed: it would be
    of one rank, and tell a time.
    """
    if name not in BACKENDS:
        return f"there is no backend {name}: {', '.join((MPI, *BACKENDS))}"
    backend = BACKENDS[name]
    if device not in backend.devices:
        return f"{name} takes {' and '.join(backend.devices)} memory alone: --device {backend.devices[0]} measures it"
    version, dist = _torch(distributed)
    if not dist.is_available():
        return f"torch {version} is built without torch.distributed"
    built: Callable[[], bool] = getattr(dist, f"is_{backend.torch}_available", lambda: False)
    return "" if built() else f"torch {version} is built without {backend.torch}"


def capabilities(device: str = CPU) -> dict[str, str]:
    """Of each backend why it is not there for this device's memory, empty where it is."""
    return {name: why_not(name, device) for name in BACKENDS}


def _torch(distributed: Any) -> tuple[str, Any]:
    import torch  # noqa: PLC0415 - it takes seconds
    import torch.distributed as dist  # noqa: PLC0415 - likewise

    return torch.__version__, dist if distributed is None else distributed


def load() -> dict[str, Any]:
    """Import torch: how long that took, and whether the process may still run where it might before."""
    cpus, start = os.sched_getaffinity(0), time.perf_counter()
    import torch  # noqa: F401, PLC0415 - for its effect: it is there when something is timed

    return {"import_torch_s": time.perf_counter() - start, "affinity_kept": os.sched_getaffinity(0) == cpus}
