"""Does a case fit into memory? Asked before anything is allocated."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import psutil

BUFFERS = 5  # send, receive, the expected data, and what comparing them takes
_KEPT = 0.9  # of what is available
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_USED = ("/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory/memory.usage_in_bytes")


def available_bytes() -> int:
    """What this machine, and the control group that this process is in, have left."""
    left = [psutil.virtual_memory().available]
    for limit, used in zip(_LIMITS, _USED, strict=True):
        bounds = [_number(Path(limit)), _number(Path(used))]
        if None not in bounds:
            left.append(int(bounds[0] or 0) - int(bounds[1] or 0))
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        left.append(soft - psutil.Process().memory_info().vms)
    return max(0, min(left))


def _number(path: Path) -> int | None:
    try:
        text = path.read_text("ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None  # "max" is no bound


def shortage(nbytes: int, hosts: Sequence[str], one_machine: bool, available: int) -> str:
    """Why messages of ``nbytes`` do not fit, with both figures; empty where they do.

    ``hosts`` has an entry per rank; with ``one_machine`` (a lab) all of them share one memory.
    """
    ranks = len(hosts) if one_machine else max(Counter(hosts).values())
    need = BUFFERS * nbytes * ranks
    if need <= _KEPT * available:
        return ""
    return f"needs {need / 1e9:.2f} GB for {ranks} ranks on a host, of which {available / 1e9:.2f} GB are available"
