"""Removing a lab in whatever state it is: its processes, mounts, namespaces and files, and nothing else."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from fabrics.errors import CannotRun
from fabrics.lab import groups, kernel
from fabrics.lab.enter import BASE, NETNS, namespace

_TERM_S, _KILL_S = 2.0, 5.0
_Namespace = tuple[int, int]


def namespaces(lab: str) -> list[Path]:
    """The pinned network namespaces of ``lab``."""
    prefix = namespace(lab, "")
    return sorted(path for path in _entries(Path(NETNS)) if path.name.startswith(prefix))


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []


def processes(lab: str) -> list[int]:
    """The ids of all processes that run in namespaces of ``lab``, this one left out."""
    with _held(lab) as wanted:
        return _inside(wanted)


def processes_of(lab: str, member: str) -> list[int]:
    """The ids of all processes that run on one host or DPU of ``lab``, this one left out."""
    with _open([Path(NETNS, namespace(lab, member))]) as wanted:  # a host and its DPU may share the others
        return _inside(wanted)


@contextmanager
def _held(lab: str) -> Iterator[set[_Namespace]]:
    with _open([*namespaces(lab), *Path(BASE, lab).glob("*/uts"), *Path(BASE, lab).glob("*/ipc")]) as wanted:
        yield wanted


@contextmanager
def _open(pins: Sequence[Path]) -> Iterator[set[_Namespace]]:
    """The identities of pinned namespaces, which no other namespace can get meanwhile: they are held open."""
    descriptors = []
    try:
        for pin in pins:
            with suppress(OSError):  # it went meanwhile
                descriptors.append(os.open(pin, os.O_RDONLY | os.O_CLOEXEC))
        yield {_identity(os.fstat(descriptor)) for descriptor in descriptors} - _namespaces_of(1)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _inside(wanted: set[_Namespace]) -> list[int]:
    if not wanted:
        return []
    ids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in ids if pid != os.getpid() and wanted & _namespaces_of(pid)]


def _namespaces_of(pid: int) -> set[_Namespace]:
    found = set()
    for kind in ("net", "uts", "ipc"):
        with suppress(OSError):  # the process has ended, or is another user's
            found.add(_identity(os.stat(f"/proc/{pid}/ns/{kind}")))  # noqa: PTH116 - a third of pathlib's time
    return found


def _identity(status: os.stat_result) -> _Namespace:
    return status.st_dev, status.st_ino


def _end(lab: str, wanted: set[_Namespace]) -> None:
    for sign, patience_s in ((signal.SIGTERM, _TERM_S), (signal.SIGKILL, _KILL_S)):
        deadline, told = time.monotonic() + patience_s, set[int]()
        while found := _inside(wanted):
            for pid in set(found) - told:
                _send(pid, sign, wanted)
            told.update(found)
            if time.monotonic() > deadline:
                break
            time.sleep(0.01)
    if found:
        raise CannotRun(f"lab {lab}: processes {', '.join(map(str, found))} do not end: see their state in /proc")


def _send(pid: int, sign: signal.Signals, wanted: set[_Namespace]) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        if wanted & _namespaces_of(pid):  # the number may have gone to another process before it was opened
            signal.pidfd_send_signal(descriptor, sign)
    except ProcessLookupError:
        pass
    finally:
        os.close(descriptor)


def remove(lab: str) -> bool:
    """Remove all of ``lab``; True when there was anything. Raises CannotRun when a process does not end."""
    home = Path(BASE, lab)
    found = bool(namespaces(lab)) or home.exists()
    with _held(lab) as wanted:
        _end(lab, wanted)
        _unmake(lab, home)
        _end(lab, wanted)  # what was just entering
    found |= groups.remove(lab)
    return found


def _unmake(lab: str, home: Path) -> None:
    for target in _mounts_below(home):
        kernel.unmount(target)
    _empty(home)
    for target in _mounts_at(home):
        kernel.unmount(target)
    if home.exists():
        shutil.rmtree(home)
    for pin in namespaces(lab):
        _unpin(pin)


def _empty(home: Path) -> None:
    # unlinking a mount point detaches it in other mount namespaces too, such as those of another lab's processes
    for entry in _entries(home):
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _mounts_below(home: Path) -> list[str]:
    return sorted((point for point in _mount_points() if point.startswith(f"{home}/")), reverse=True)


def _mounts_at(home: Path) -> list[str]:
    return [point for point in _mount_points() if point == str(home)]


def _mount_points() -> list[str]:
    return [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]


def _unpin(pin: Path) -> None:
    with suppress(OSError):  # a half-made namespace is a bare file
        kernel.unmount(str(pin))
    pin.unlink(missing_ok=True)
