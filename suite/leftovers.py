"""Shared-memory files that an ended job left in /dev/shm: MPI libraries remove theirs only when they end well."""

from __future__ import annotations

import os
import time
from pathlib import Path

SHM = Path("/dev/shm")  # noqa: S108 - where the files are, not where we write
_PREFIXES = ("mpich_shm_", "mpich_", "ucx_shm_posix_", "vader_segment", "sm_segment", "psm2_shm", "ofi_")
_STALE_S = 60.0


def present(folder: Path = SHM) -> frozenset[str]:
    """Names of the MPI libraries' files that are there now."""
    if not folder.is_dir():
        return frozenset()
    return frozenset(entry.name for entry in folder.iterdir() if entry.name.startswith(_PREFIXES))


def remove_new(before: frozenset[str], folder: Path = SHM, proc: Path = Path("/proc")) -> list[str]:
    """Remove our own files that were not there ``before`` and that no process maps; their names."""
    ours = [name for name in sorted(present(folder) - before) if _owner(folder / name) == os.geteuid()]
    used = _mapped(proc) if ours else ""
    gone = [name for name in ours if str(folder / name) not in used]
    for name in gone:
        (folder / name).unlink(missing_ok=True)
    return gone


def remove_stale(folder: Path = SHM, proc: Path = Path("/proc"), age_s: float = _STALE_S) -> list[str]:
    """Remove what jobs that were killed left: our own files that are old enough and that no process maps."""
    young = [name for name in present(folder) if time.time() - _changed(folder / name) < age_s]
    return remove_new(frozenset(young), folder, proc)


def remove_own(folder: Path = SHM) -> None:
    """Unlink the files that this process maps: it is about to abort, and its library will not."""
    maps = Path("/proc/self/maps").read_text()
    for name in present(folder):
        if str(folder / name) in maps:
            (folder / name).unlink(missing_ok=True)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return time.time()


def _owner(path: Path) -> int:
    try:
        return path.stat().st_uid
    except FileNotFoundError:
        return -1


def _mapped(proc: Path) -> str:
    """The maps of every process that we may read, as one text."""
    texts = []
    for maps in proc.glob("[0-9]*/maps"):
        try:
            texts.append(maps.read_text())
        except OSError:  # it has ended, or belongs to another user
            continue
    return "\n".join(texts)
