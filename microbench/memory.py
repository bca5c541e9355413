"""Does a case fit into memory? Asked before anything is allocated."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

BUFFERS = 4  # send, receive, the expected data, and what the MPI library takes (seen: 3 to 3.6 at the peak)
_KEPT = 0.9  # of what is available
_GROUPS, _OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
_FILES = {  # by version of control groups: what bounds a group, what it uses, and what of that the kernel would give up
    2: ("memory.max", "memory.current", "inactive_file"),
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def available_bytes(groups: Path = _GROUPS, own: Path = _OWN) -> int:
    """What this machine, and every control group that this process is in, have left."""
    left = [psutil.virtual_memory().available]
    left += [room for folder, version in _folders(groups, own) if (room := _room(folder, version)) is not None]
    return max(0, min(left))


def _folders(groups: Path, own: Path) -> Iterator[tuple[Path, int]]:
    """The process's own memory group and all above it, each with its version; a container may see only the top."""
    for line in own.read_text("utf-8").splitlines() if own.exists() else ():
        number, controllers, path = line.split(":", 2)
        version = 2 if number == "0" else 1
        if version == 2 or "memory" in controllers.split(","):
            top = groups if version == 2 else groups / "memory"
            inner = Path(path.lstrip("/"))
            yield from ((top / each, version) for each in (inner, *inner.parents))


def _room(folder: Path, version: int) -> int | None:
    """What a group has left, None where it has no bound: its page cache counts as used, and gives way."""
    limit, used, cache = _FILES[version]
    bound, usage = _number(folder / limit), _number(folder / used)
    if bound is None or usage is None:
        return None
    try:
        stat = dict(line.split() for line in (folder / "memory.stat").read_text("ascii").splitlines())
    except OSError:
        stat = {}
    return bound - usage + int(stat.get(cache, 0))


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
