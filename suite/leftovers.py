"""What an ended job left in /dev/shm and in folders of a run: MPI libraries remove theirs only when they end well."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SHM = Path("/dev/shm")  # noqa: S108 - where the files are, not where we write
_PREFIXES = ("mpich_shm_", "mpich_", "ucx_shm_posix_", "vader_segment", "sm_segment", "psm2_shm", "ofi_")
_STALE_S, _OLD_S = 60.0, 3600.0
_SCRATCH = "fabricbench-"


@contextmanager
def scratch(folder: Path | None = None) -> Iterator[Path]:
    """A folder for what launchers keep while a run lasts; its name tells whose it is, should the run be killed."""
    with tempfile.TemporaryDirectory(
        prefix=f"{_SCRATCH}{os.getpid()}-", dir=folder, ignore_cleanup_errors=True
    ) as made:
        yield Path(made)


def remove_scratch(folder: Path | None = None, proc: Path = Path("/proc")) -> list[str]:
    """Remove the folders of runs that were killed; their names."""
    home = folder or Path(tempfile.gettempdir())
    gone = []
    for path in sorted(home.glob(f"{_SCRATCH}*-*")):
        pid = path.name.removeprefix(_SCRATCH).partition("-")[0]
        if pid.isdigit() and _owner(path) == os.geteuid() and not (proc / pid).exists():
            shutil.rmtree(path, ignore_errors=True)
            gone.append(path.name)
    return gone


def present(folder: Path = SHM) -> frozenset[str]:
    """Names of the MPI libraries' files that are there now."""
    if not folder.is_dir():
        return frozenset()
    return frozenset(entry.name for entry in folder.iterdir() if entry.name.startswith(_PREFIXES))


def remove_new(before: frozenset[str], folder: Path = SHM, proc: Path = Path("/proc")) -> list[str]:
    """Remove our own files that were not there ``before`` and that no process maps; their names."""
    ours = [name for name in sorted(present(folder) - before) if _owner(folder / name) == os.geteuid()]
    used = _texts(proc, "maps") if ours else ""
    gone = [name for name in ours if str(folder / name) not in used]
    for name in gone:
        (folder / name).unlink(missing_ok=True)
    return gone


def remove_stale(folder: Path = SHM, proc: Path = Path("/proc"), age_s: float = _STALE_S) -> list[str]:
    """Remove what jobs that were killed left: our own files that are old enough and that no process maps."""
    young = [name for name in present(folder) if time.time() - _changed(folder / name) < age_s]
    return remove_new(frozenset(young), folder, proc)


def remove_topologies(
    folder: Path = Path("/tmp"),  # noqa: S108 - where Hydra writes, whatever TMPDIR says
    proc: Path = Path("/proc"),
    age_s: float = _OLD_S,
) -> list[str]:
    """Remove the descriptions of this machine that Hydra leaves where its jobs are killed; their names.

    Ranks read theirs when they start MPI: after an hour only who names it in its environment may yet do so.
    """
    old = [
        path
        for path in sorted(folder.glob("hydra_hwloc_xmlfile_*"))
        if _owner(path) == os.geteuid() and time.time() - _changed(path) > age_s
    ]
    used = _texts(proc, "environ") if old else ""
    gone = [path for path in old if str(path) not in used]
    for path in gone:
        path.unlink(missing_ok=True)
    return [path.name for path in gone]


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


def _texts(proc: Path, name: str) -> str:
    """A file of every process that we may read, as one text."""
    texts = []
    for path in proc.glob(f"[0-9]*/{name}"):
        try:
            texts.append(path.read_text("utf-8", "replace"))
        except OSError:  # it has ended, or belongs to another user
            continue
    return "\n".join(texts)
