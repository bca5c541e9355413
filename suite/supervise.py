"""Watching one job: its events, its deadlines, its end. The supervisor itself never touches MPI."""

from __future__ import annotations

import ctypes
import json
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import psutil

from suite.protocol import decode

_END_S = 10.0
_TERM_S = 3.0
_TICK_S = 0.25
_LARGEST_READ = 1 << 16
_PR_SET_PDEATHSIG = 1
_BOILERPLATE = re.compile(  # what launchers print around the one line that matters
    r"^[\s=|]*$|BAD TERMINATION|EXIT CODE|CLEANING UP|YOU CAN IGNORE|RUNNING AT|exit string|FAQ page|PID \d+"
)


@dataclass(frozen=True)
class Ending:
    """How a job ended: ``case`` is the one in flight, None where none was; ``status`` is ok, failed or timeout."""

    status: str
    reason: str = ""
    case: int | None = None


@dataclass
class _Progress:
    """What the events so far say."""

    case: int | None = None
    described: bool = False
    ended: bool = False
    raised: str = ""
    noise: list[str] = field(default_factory=list)


def _end_with_parent() -> Callable[[], None]:
    """What the launcher does before it starts: ask the kernel for SIGTERM when the supervisor dies, even by SIGKILL."""
    prctl = ctypes.CDLL(None).prctl

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

    return ask


class Children:
    """A started job and all its descendants; leaving the block ends whatever of them is left."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            command,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=_end_with_parent(),  # noqa: PLW1509 - the supervisor has no threads
        )
        self._known: dict[int, psutil.Process] = {}

    def __enter__(self) -> Children:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.note()
        alive = [p for p in self._known.values() if p.is_running()]
        for act, wait_s in ((signal.SIGTERM, _TERM_S), (signal.SIGKILL, _TERM_S)):
            for process in alive:
                _signal(process, act)
            self._reap(wait_s if alive else _TERM_S)
            _, alive = psutil.wait_procs(alive, timeout=wait_s)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def note(self) -> None:
        """Remember the descendants there are now: they are ended even if their parent goes first."""
        try:
            family = [psutil.Process(self.process.pid)]
            family += family[0].children(recursive=True)
        except psutil.NoSuchProcess:
            return
        self._known.update((p.pid, p) for p in family)

    def _reap(self, wait_s: float) -> None:
        try:
            self.process.wait(timeout=wait_s)
        except subprocess.TimeoutExpired:
            return


def _signal(process: psutil.Process, act: signal.Signals) -> None:
    try:
        process.send_signal(signal.SIGCONT)
        process.send_signal(act)
    except psutil.NoSuchProcess:
        return


def supervise(
    command: Sequence[str],
    env: Mapping[str, str],
    spec: Mapping[str, Any],
    handle: Callable[[dict[str, Any]], None],
    log: Callable[[str], None],
    start_deadline_s: float = 90.0,
) -> Ending:
    """Run a job to its end, hand over every event, and log the rest.

    A case may take its ``deadline_s``, the start ``start_deadline_s``, the shutdown 10 s; then the job is ended.
    """
    deadlines = [float(case["deadline_s"]) for case in spec["cases"]]
    progress = _Progress()
    with Children(command, env) as children, _Lines(children) as lines:
        _send(children, json.dumps(spec))
        until = time.monotonic() + start_deadline_s
        for line in lines:
            if line is None:
                if time.monotonic() > until:
                    return _too_late(progress, log)
                continue
            event = decode(line)
            if event is None:
                _note_log(progress, line, log)
                continue
            if event["event"] == "job":
                children.note()
            _apply(progress, event)
            handle(event)
            if event["event"] == "record":
                _send(children, f"stored {event['case']}")
            until = time.monotonic() + _allowed_s(progress, deadlines)
        code = children.process.wait(timeout=_TERM_S)
    return _ending(progress, code)


def _send(children: Children, line: str) -> None:
    """Write a line to rank 0; a job that has died is told by its exit code."""
    pipe = children.process.stdin
    if pipe is None:
        raise RuntimeError("the job has no standard input")
    try:
        pipe.write(line.encode() + b"\n")
        pipe.flush()
    except BrokenPipeError:
        return


def _note_log(progress: _Progress, line: bytes, log: Callable[[str], None]) -> None:
    text = line.decode("utf-8", "replace").rstrip()
    if text:
        log(text)
        progress.noise = [*progress.noise[-20:], text]


def _apply(progress: _Progress, event: Mapping[str, Any]) -> None:
    kind = event["event"]
    if kind == "job":
        progress.described = True
    elif kind == "start":
        progress.case = int(event["case"])
    elif kind == "record":
        progress.case = None
    elif kind == "end":
        progress.ended = True
    elif kind == "raised" and not progress.raised:
        progress.raised = f"rank {event['rank']} on {event['host']} raised {event['error']}"


def _allowed_s(progress: _Progress, deadlines: Sequence[float]) -> float:
    return _END_S if progress.ended or progress.case is None else deadlines[progress.case]


def _too_late(progress: _Progress, log: Callable[[str], None]) -> Ending:
    if progress.ended:
        log("the job did not shut down in time and was ended; its results are safe")
        return Ending("ok")
    if progress.raised:
        return Ending("failed", progress.raised, progress.case)
    stage = "its case" if progress.case is not None else "a case" if progress.described else "its first event"
    return Ending("timeout", f"the job was ended: {stage} passed its deadline", progress.case)


def _ending(progress: _Progress, code: int) -> Ending:
    if progress.ended:
        return Ending("ok")
    last = next((text.strip() for text in reversed(progress.noise) if not _BOILERPLATE.search(text)), "")
    if code < 0:
        last = f"the launcher was ended by {signal.Signals(-code).name}" + (f": {last}" if last else "")
    if progress.described:
        reason = f"a rank ended early, with exit code {code}" + (f": {last}" if last else "")
    else:
        reason = f"the job did not start (exit code {code}): {last or 'the launcher said nothing'}"
    return Ending("failed", progress.raised or reason, progress.case)


class _Lines:
    """Lines of a job's outputs as they come; None at least every quarter of a second, so that deadlines are seen."""

    def __init__(self, children: Children) -> None:
        self._selector = selectors.DefaultSelector()
        self._rest: dict[int, bytes] = {}
        for pipe in (children.process.stdout, children.process.stderr):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self._selector.register(pipe, selectors.EVENT_READ)

    def __enter__(self) -> _Lines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._selector.close()

    def __iter__(self) -> Iterator[bytes | None]:
        while self._selector.get_map():
            for key, _ in self._selector.select(_TICK_S):
                yield from self._read(key.fd, key.fileobj)
            yield None

    def _read(self, fd: int, pipe: Any) -> list[bytes]:
        data = os.read(fd, _LARGEST_READ)
        *lines, self._rest[fd] = (self._rest.get(fd, b"") + data).split(b"\n")
        if not data:
            self._selector.unregister(pipe)
            lines += [self._rest.pop(fd)] if self._rest.get(fd) else []
        return lines
