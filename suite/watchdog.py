"""The watchdog of a rank: a small process that starts the worker, waits, and tells what the worker no longer can.

``python -m suite.watchdog --start-deadline S ARGUMENT...`` hands its arguments on to ``suite.worker``. It stands
between the launcher and the worker, so that it learns the worker's exit status, which launchers mix with those of
the ranks that they end themselves; and it sleeps unless the worker ends, is stopped, or begins a stage. Nothing runs
inside the measuring process but the loop that writes its page.

Standard library alone, and none of it that is slow to import: every rank of every job comes through here.
"""

from __future__ import annotations

import argparse
import ctypes
import mmap
import os
import re
import select
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from fabrics import launched
from microbench.page import SIZE_BYTES, Page
from suite.wire import seal

START_S, BETWEEN_S = 90.0, 10.0  # what the start may take, and what comes between two cases, or after the last
ASK = signal.SIGUSR1  # the worker answers with its stack, even from native code
BETWEEN, SHUTDOWN = "the wait for the next case", "the shutdown"
_ANSWER_S = 0.3
_LOOK_S = 0.01
_LONGEST_STACK = 1 << 16
_PR_SET_PDEATHSIG = 1
_FRAME = re.compile(r'^  File "(.+)", line (\d+) in (.+)$', re.M)
_HOME = Path(__file__).resolve().parent.parent
_OURS = ("fabrics", "microbench", "collectives", "training", "suite")


def end_with_parent(act: signal.Signals) -> None:
    """Ask the kernel to send ``act`` to this process when its parent dies, however it dies."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, act)


def frame(stack: str) -> str:
    """The innermost frame of a stack, as faulthandler prints it, that is neither Python's nor a library's."""
    for path, line, function in _FRAME.findall(stack):
        if _is_ours(Path(path)):
            return f"{function} ({'/'.join(Path(path).parts[-2:])}:{line})"
    return ""


def _is_ours(path: Path) -> bool:
    if path.is_relative_to(_HOME) and path.relative_to(_HOME).parts[0] in _OURS:
        return True
    frozen = str(path).startswith("<")
    return not frozen and not any(path.is_relative_to(prefix) for prefix in (sys.prefix, sys.base_prefix))


class Watchdog:
    """The watchdog of the worker that it starts with ``arguments``."""

    def __init__(self, rank: int, start_deadline_s: float, arguments: Sequence[str]) -> None:
        self._who = {"rank": rank, "host": socket.gethostname()}
        self._shared = os.memfd_create("fabricbench-page", 0)  # the worker's stacks follow the page
        os.ftruncate(self._shared, SIZE_BYTES)
        self._page = Page(mmap.mmap(self._shared, SIZE_BYTES))
        self._page.reset()
        self._page.enter("", -1, time.monotonic_ns() + int(start_deadline_s * 1e9))
        self._bell, ring = os.pipe()
        for end in (self._bell, ring):
            os.set_blocking(end, False)
        os.set_inheritable(ring, True)
        self._heard_bytes, self._told_ns, self._stopped = SIZE_BYTES, 0, False
        signal.signal(signal.SIGCHLD, lambda number, at: None)
        signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
        self._worker = _start([*arguments, "--page", str(self._shared), "--bell", str(ring)])
        signal.signal(signal.SIGTERM, self._end)
        self._tell("rank", pid=os.getpid(), worker=self._worker)

    def watch(self) -> int:
        """Wait for the worker's end, telling what happens to it; its exit code, 128 and the number for a signal."""
        while True:
            select.select([self._bell], [], [], self._left_s())
            self._hush()
            pid, status = os.waitpid(self._worker, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
            if pid and (os.WIFEXITED(status) or os.WIFSIGNALED(status)):
                return self._ended(os.waitstatus_to_exitcode(status))
            if pid:
                self._stopped = os.WIFSTOPPED(status)
                self._tell("stopped" if self._stopped else "continued", where=self._where())
            elif self._left_s() == 0:
                self._told_ns = self._page.deadline_ns
                if not self._stopped:
                    self._tell("stuck", where=self._page.loop() or self._ask() or self._where())

    def _tell(self, event: str, **facts: Any) -> None:
        """An event on a line of its own, whatever a dead worker has left of its last one."""
        data: Mapping[str, Any] = {"event": event, **self._who, "case": self._page.case, **facts}
        os.write(1, b"\n" + seal(data))

    def _left_s(self) -> float | None:
        """Until the worker's deadline; None where there is none, or its passing was told."""
        due = self._page.deadline_ns
        return None if due in (0, self._told_ns) else max(0.0, (due - time.monotonic_ns()) * 1e-9)

    def _hush(self) -> None:
        try:
            os.read(self._bell, _LONGEST_STACK)
        except BlockingIOError:
            return

    def _where(self) -> str:
        return self._page.loop() or self._page.stage or "the start of Python"

    def _ask(self) -> str:
        """Where in Python the worker is; nothing where it cannot answer yet."""
        if not self._page.stage:
            return ""
        os.kill(self._worker, ASK)
        until = time.monotonic() + _ANSWER_S
        stack = b""
        while time.monotonic() < until:
            time.sleep(_LOOK_S)
            before, stack = stack, os.pread(self._shared, _LONGEST_STACK, self._heard_bytes)
            if stack and stack == before:
                break
        self._heard_bytes += len(stack)
        return frame(stack.decode("utf-8", "replace"))

    def _end(self, number: int, at: object) -> NoReturn:
        """The supervisor ends the job: so ends the worker, stopped or not, and is collected."""
        if self._worker:
            os.kill(self._worker, signal.SIGKILL)
            os.waitpid(self._worker, 0)
        os._exit(128 + number)

    def _ended(self, code: int) -> int:
        self._worker = 0
        if code or self._page.stage != SHUTDOWN:
            self._tell("died", code=code, where=self._where())
            time.sleep(launched.FORWARDING_S)
        return code if code >= 0 else 128 - code


def _start(arguments: Sequence[str]) -> int:
    """The worker as a child that ends with this process, and inherits all that the launcher gave it."""
    pid = os.fork()
    if pid:
        return pid
    try:
        end_with_parent(signal.SIGKILL)
        os.execv(sys.executable, [sys.executable, "-m", "suite.worker", *arguments])  # noqa: S606 - no shell is wanted
    finally:
        os._exit(127)


def main() -> NoReturn:
    """Watch one worker."""
    parser = argparse.ArgumentParser(prog="python -m suite.watchdog")
    parser.add_argument("--start-deadline", type=float, default=START_S, metavar="S")
    args, arguments = parser.parse_known_args()
    sys.exit(Watchdog(launched.rank(), args.start_deadline, arguments).watch())


if __name__ == "__main__":
    main()
