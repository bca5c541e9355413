"""The control group that holds a lab host or DPU to a share of a core, in version 1 or 2 of control groups.

The period is 10 ms: at the kernel's usual 100 ms the medians of MPI benchmarks show nothing of the quota.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fabrics.errors import CannotRun
from fabrics.lab.enter import namespace

PERIOD_US = 10_000
_SMALLEST_QUOTA_US = 1000  # the kernel's own limit
_REMOVE_S = 2.0
_WITHOUT = "a CPU quota needs the cpu controller of control groups, which is not mounted here"


@dataclass(frozen=True)
class Controller:
    """Where the cpu controller is mounted, and its version (1 or 2): their files differ."""

    root: Path
    version: int

    def folder(self, lab: str, member: str) -> Path:
        """The control group of a member."""
        return self.root / namespace(lab, member)

    def write(self, folder: Path, quota_us: int | None) -> None:
        """Set the quota of a period (None: no limit); raises OSError where the kernel says that it refuses."""
        if self.version == 1:
            (folder / "cpu.cfs_period_us").write_text(f"{PERIOD_US}")
            (folder / "cpu.cfs_quota_us").write_text("-1" if quota_us is None else f"{quota_us}")
        else:
            (folder / "cpu.max").write_text(f"{'max' if quota_us is None else quota_us} {PERIOD_US}")

    def read(self, folder: Path) -> tuple[int | None, int]:
        """Quota (None: no limit) and period, us, as the kernel has them."""
        if self.version == 1:
            words = [(folder / name).read_text().strip() for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")]
        else:
            words = (folder / "cpu.max").read_text().split()
        return None if words[0] in {"-1", "max"} else int(words[0]), int(words[1])


def controller(mounts: str | None = None) -> Controller | None:
    """The cpu controller of this machine, or None; ``mounts`` stands in for /proc/self/mountinfo."""
    found = None
    for line in (mounts if mounts is not None else Path("/proc/self/mountinfo").read_text()).splitlines():
        before, _, after = line.partition(" - ")
        kind, *_, options = after.split()
        root = Path(before.split()[4])
        if kind == "cgroup" and "cpu" in options.split(","):
            found = Controller(root, 1)
        elif kind == "cgroup2" and _offers_cpu(root):
            found = Controller(root, 2)
    return found


def _offers_cpu(root: Path) -> bool:
    with suppress(OSError):
        return "cpu" in (root / "cgroup.controllers").read_text().split()
    return False


def own_cores(there: Controller | None = None, own: Path = Path("/proc/self/cgroup")) -> float | None:
    """The cores that this process's control groups leave it, the tightest of all above it; None without a quota.

    ``there`` and ``own`` stand in for this machine's controller and this process's groups.
    """
    there = there or controller()
    if there is None or not own.exists():
        return None
    shares = []
    for line in own.read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if (there.version == 2 and number == "0") or (there.version == 1 and "cpu" in controllers.split(",")):
            inner = Path(path.lstrip("/"))
            shares += [share for each in (inner, *inner.parents) if (share := _share(there, there.root / each))]
    return min(shares, default=None)


def _share(there: Controller, folder: Path) -> float | None:
    try:
        quota_us, period_us = there.read(folder)
    except (OSError, ValueError):
        return None  # the top group has no quota, nor has one that is not to be seen from here
    return None if quota_us is None else quota_us / period_us


def folders(lab: str) -> list[Path]:
    """The control groups of ``lab``; ``*`` for those of all labs."""
    there = controller()
    return sorted(there.root.glob(namespace(lab, "*"))) if there else []


def limit(lab: str, member: str, cores: float | None) -> Path:
    """Hold ``member`` to ``cores`` (None: no limit); the file that takes its processes.

    Raises CannotRun when the kernel refuses: some refusals are silent, so the quota is read back.
    """
    there = controller()
    if there is None:
        raise CannotRun(_WITHOUT)
    quota_us = None if cores is None else round(cores * PERIOD_US)
    folder = there.folder(lab, member)
    try:
        _make(there, folder)
        _set(there, folder, quota_us)
    except OSError as error:
        raise CannotRun(f"lab host {member}: {error.filename or folder}: {error.strerror}") from None
    return folder / "cgroup.procs"


def _make(there: Controller, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    control = there.root / "cgroup.subtree_control"
    if there.version == 2 and "cpu" not in control.read_text().split():
        control.write_text("+cpu")


def _set(there: Controller, folder: Path, quota_us: int | None) -> None:
    with suppress(OSError):  # what the kernel took is read back below, whether it complained or not
        there.write(folder, quota_us)
    if (seen := there.read(folder)) != (quota_us, PERIOD_US):
        asked = "no CPU quota" if quota_us is None else f"a CPU quota of {quota_us} us in {PERIOD_US} us"
        least = f"at least {_SMALLEST_QUOTA_US} us, {100 * _SMALLEST_QUOTA_US / PERIOD_US:g} % of a core"
        raise CannotRun(f"{folder.name}: {asked} is refused by the kernel, which has {_spelled(seen)}: {least}")


def _spelled(seen: tuple[int | None, int]) -> str:
    return "no limit" if seen[0] is None else f"{seen[0]} us in {seen[1]} us"


def remove(lab: str) -> bool:
    """Remove the control groups of ``lab``, moving what runs in them to the root; True when there was any.

    Raises CannotRun when one does not go.
    """
    there, found = controller(), folders(lab)
    for folder in found if there else []:
        deadline = time.monotonic() + _REMOVE_S
        while not _removed(folder):
            if time.monotonic() > deadline:
                raise CannotRun(f"lab {lab}: {folder} cannot be removed: see its cgroup.procs")
            time.sleep(0.005)
    return bool(found)


def _removed(folder: Path) -> bool:
    try:
        for pid in (folder / "cgroup.procs").read_text().split():
            with suppress(OSError):  # it ended meanwhile
                (folder.parent / "cgroup.procs").write_text(pid)
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False  # what has just ended is in it for a moment
    return True
