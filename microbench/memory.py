"""Does a case fit into memory? Asked before anything is allocated."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import psutil

BUFFERS = 4  # send, receive, the expected data, and what the MPI library takes (seen: 3 to 3.6 at the peak)
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
    return max(0, min(left))


def allowed_bytes() -> int | None:
    """What this process alone may still have under its limit (``ulimit -v``); None where it has none."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else max(0, soft - psutil.Process().memory_info().vms)


def _number(path: Path) -> int | None:
    try:
        text = path.read_text("ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None  # "max" is no bound


def shortage(nbytes: int, hosts: Sequence[str], one_machine: bool, available: int, allowed: int | None = None) -> str:
    """Why messages of ``nbytes`` do not fit, with both figures; empty where they do.

    ``hosts`` has an entry per rank; with ``one_machine`` (a lab) all of them share one memory, of which ``available``
    bytes are left. ``allowed`` is what one process may have, None without a limit.
    """
    ranks = len(hosts) if one_machine else max(Counter(hosts).values())
    each = BUFFERS * nbytes
    if allowed is not None and each > _KEPT * allowed:
        return f"needs {each / 1e9:.2f} GB a rank, of which a process's limit (ulimit -v) leaves {allowed / 1e9:.2f} GB"
    if ranks * each > _KEPT * available:
        need = f"needs {ranks * each / 1e9:.2f} GB for {ranks} ranks on a host"
        return f"{need}, of which {available / 1e9:.2f} GB are available"
    return ""
