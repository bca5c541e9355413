"""The processes of one job: started, listened to, and ended with all their descendants."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

import psutil

from suite.watchdog import end_with_parent

TERM_S = 1.0  # SIGTERM may take so long to work, and SIGKILL again
_TICK_S = 0.25
_LOOK_S = 0.01
_LARGEST_READ = 1 << 16


class Children:
    """A started job and all its descendants; leaving the block ends whatever of them is left, stopped or not."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
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
            until = time.monotonic() + TERM_S
            self.wait(TERM_S)
            while self._alive() and time.monotonic() < until:
                time.sleep(_LOOK_S)
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
        try:
            return pid in self._known and self._known[pid].status() == psutil.STATUS_STOPPED
        except psutil.NoSuchProcess:
            return False

    def _alive(self) -> list[psutil.Process]:
        return [process for process in self._known.values() if _lives(process)]

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


def _lives(process: psutil.Process) -> bool:
    """Whether it still runs; a dead one that its new parent has not yet collected does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _signal(process: psutil.Process, act: signal.Signals) -> None:
    """Signal, then continue what is stopped, so that it meets the signal before anything else."""
    try:
        process.send_signal(act)
        process.send_signal(signal.SIGCONT)
    except psutil.NoSuchProcess:
        return


class Lines:
    """Lines of a job's outputs as they come; None at least every quarter of a second, so that deadlines are seen."""

    def __init__(self, children: Children) -> None:
        self._selector = selectors.DefaultSelector()
        self._rest: dict[int, bytes] = {}
        self._pipes = 0
        self._gone: list[int] = []
        for pipe in (children.process.stdout, children.process.stderr):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._selector.register(pipe, selectors.EVENT_READ)
                self._pipes += 1

    def __enter__(self) -> Lines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for key in list(self._selector.get_map().values()):
            if key.data is not None:
                os.close(key.fd)
        self._selector.close()

    def __iter__(self) -> Iterator[bytes | None]:
        while self._pipes:
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

    def _read(self, fd: int, pipe: Any) -> list[bytes]:
        data = os.read(fd, _LARGEST_READ)
        *lines, self._rest[fd] = (self._rest.get(fd, b"") + data).split(b"\n")
        if not data:
            self._selector.unregister(pipe)
            self._pipes -= 1
            lines += [self._rest.pop(fd)] if self._rest.get(fd) else []
        return lines
