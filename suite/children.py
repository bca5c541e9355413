"""The processes of one job: started, listened to, and ended with all their descendants."""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

import psutil

from suite.watchdog import end_with_parent
from suite.wire import Stream

TERM_S = 1.0  # SIGTERM may take so long to work, and SIGKILL again
_TICK_S = 0.25
_LOOK_S = 0.01
_LARGEST_READ = 1 << 16
_PR_SET_CHILD_SUBREAPER = 36


class Children:
    """A started job and all its descendants; leaving the block ends whatever of them is left, stopped or not."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        adopt_orphans(True)
        self.process = subprocess.Popen(
            command,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=lambda: end_with_parent(signal.SIGTERM),  # noqa: PLW1509 - the supervisor has no threads
        )
        self._known: dict[int, psutil.Process] = {}

    def __enter__(self) -> Children:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.note()
        for act in (signal.SIGTERM, signal.SIGKILL):
            for process in self._alive():
                _signal(process, act)
            if self.wait(0) is None:
                self.process.send_signal(act)
            self._wait_for(self._alive)
        self._wait_for(self._uncollected)
        adopt_orphans(False)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):  # of what a job that has died was still to be told
                    pipe.close()

    def note(self) -> None:
        """Remember the descendants there are now: they are ended even if their parent goes first."""
        try:
            family = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return
        self._known.update((p.pid, p) for p in family if p.pid not in self._known)

    def here(self, pid: int) -> bool:
        """Whether this process is a descendant on this machine, as far as noted."""
        return pid in self._known

    def stopped(self, pid: int) -> bool:
        """Whether a noted descendant is stopped."""
        return pid in self._known and _status(self._known[pid]) == psutil.STATUS_STOPPED

    def _wait_for(self, left: Callable[[], list[psutil.Process]]) -> None:
        until = time.monotonic() + TERM_S
        self.wait(TERM_S)
        while left() and time.monotonic() < until:
            time.sleep(_LOOK_S)

    def _alive(self) -> list[psutil.Process]:
        return [process for process in self._known.values() if _status(process) not in ("", psutil.STATUS_ZOMBIE)]

    def _uncollected(self) -> list[psutil.Process]:
        """The dead that are still in the table of processes; of those whose parents died before them we take care."""
        left = [process for process in self._known.values() if _status(process)]
        for process in left:
            with suppress(ChildProcessError):  # its own parent lives, and takes care
                os.waitpid(process.pid, os.WNOHANG)
        return left

    def wait(self, wait_s: float) -> int | None:
        """The launcher's exit code; None where it has not ended within ``wait_s``."""
        try:
            return self.process.wait(timeout=wait_s)
        except subprocess.TimeoutExpired:
            return None

    def send(self, line: str) -> None:
        """Write a line to rank 0; a job that has died is told by its end."""
        pipe = self.process.stdin
        if pipe is None:
            raise RuntimeError("the job has no standard input")
        try:
            pipe.write(line.encode() + b"\n")
            pipe.flush()
        except BrokenPipeError:
            return


def _status(process: psutil.Process) -> str:
    """What psutil calls its state; empty where it is gone."""
    try:
        return str(process.status()) if process.is_running() else ""
    except psutil.NoSuchProcess:
        return ""


def adopt_orphans(adopt: bool) -> None:
    """Whether processes below this one become its own children when their parents die, not those of init."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(adopt))


def _signal(process: psutil.Process, act: signal.Signals) -> None:
    """Signal, then continue what is stopped, so that it meets the signal before anything else."""
    try:
        process.send_signal(act)
        process.send_signal(signal.SIGCONT)
    except psutil.NoSuchProcess:
        return


class Lines:
    """Events and lines of a job's outputs as they come; None at least every quarter of a second, for deadlines."""

    def __init__(self, children: Children) -> None:
        self._selector = selectors.DefaultSelector()
        self._streams: dict[int, Stream] = {}
        self._gone: list[int] = []
        for pipe in (children.process.stdout, children.process.stderr):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._selector.register(pipe, selectors.EVENT_READ)
                self._streams[pipe.fileno()] = Stream()

    def __enter__(self) -> Lines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for key in list(self._selector.get_map().values()):
            if key.data is not None:
                os.close(key.fd)
        self._selector.close()

    def __iter__(self) -> Iterator[dict[str, Any] | bytes | None]:
        while self._streams:
            for key, _ in self._selector.select(_TICK_S):
                if key.data is None:
                    yield from self._read(key.fd, key.fileobj)
                else:
                    self._selector.unregister(key.fd)
                    os.close(key.fd)
                    self._gone.append(key.data)
            yield None

    def follow(self, pid: int) -> None:
        """Notice the end of a process that is nobody's child here."""
        try:
            self._selector.register(os.pidfd_open(pid), selectors.EVENT_READ, pid)
        except ProcessLookupError:
            self._gone.append(pid)

    def gone(self) -> list[int]:
        """Which of the followed processes have ended since the last call, in the order of their ends."""
        gone, self._gone = self._gone, []
        return gone

    def _read(self, fd: int, pipe: Any) -> list[dict[str, Any] | bytes]:
        data = os.read(fd, _LARGEST_READ)
        items = self._streams[fd].feed(data)
        if not data:
            self._selector.unregister(pipe)
            del self._streams[fd]
        return items
