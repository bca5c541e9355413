"""The thread that completes exchanges while the main thread is in backward.

One thread looks at all operations that are under way, by the waiting strategy: a few looks, then sleep until something
comes (:mod:`collectives.offload.waiting`), or look on. Whatever happens, each operation's future is completed: with the
result, with the error, or with what is said of it when its time is over. A future that nobody completes would hold
backward for ever.
"""

from __future__ import annotations

import os
import queue
import select
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from collectives.offload.waiting import CAP_MS, Waiting
from fabrics.errors import CannotRun

JOIN_S = 30.0
THREAD_NAME = "fabricbench-exchange"

TensorFuture = torch.futures.Future[Tensor]


class Operation(Protocol):
    """An exchange of one bucket, as the thread sees it."""

    def begin(self) -> None:
        """What the thread has to do first."""

    def ended(self) -> bool:
        """Look, and go on with what can go on; whether the result is there."""

    @property
    def result(self) -> Tensor:
        """Where the sum is, once it has ended."""

    @property
    def pipes(self) -> Sequence[int]:
        """Descriptors that become readable when there may be something to look at."""

    def late(self) -> Exception:
        """What to say when its time is over."""


def completed(value: Any) -> TensorFuture:
    """A future that is done: with a tensor, or with an exception that whoever waits for it gets."""
    base: torch.futures.Future[Any] = torch.futures.Future()
    found: TensorFuture = base.then(_value)
    base.set_result(value)
    return found


def _value(done: torch.futures.Future[Any]) -> Tensor:
    """Torch's own ``set_exception`` raises in Python alone: DDP, which waits in C++, would take it for a tensor."""
    value = done.value()
    if isinstance(value, Exception):
        raise value
    return value  # type: ignore[no-any-return]


@dataclass
class _Entry:
    operation: Operation
    due: float
    base: torch.futures.Future[Any] = field(default_factory=torch.futures.Future)

    def complete(self, value: Any) -> None:
        self.base.set_result(value)


class Progress:
    """The thread, from its making to :meth:`close`. ``deadline_s`` bounds each operation, from when it is handed over.

    ``error`` keeps the first fault: what backward raises has torch's words around it.
    """

    def __init__(self, waiting: Waiting, deadline_s: float) -> None:
        self.deadline_s = deadline_s
        self.error: Exception | None = None
        self._polled = [int(fd) for fd in waiting.descriptors["fd"]]
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._new: queue.SimpleQueue[_Entry] = queue.SimpleQueue()
        self._under_way: list[_Entry] = []
        self._given_up: list[_Entry] = []  # MPI may still write to their buffers
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=THREAD_NAME, daemon=True)
        self._thread.start()

    def submit(self, operation: Operation) -> TensorFuture:
        """Hand an operation over; the future of its result."""
        if self.error is not None:
            return completed(self.error)
        entry = _Entry(operation, time.monotonic() + self.deadline_s)
        found: TensorFuture = entry.base.then(_value)
        self._new.put(entry)
        os.eventfd_write(self._wake, 1)
        return found

    def close(self) -> None:
        """End the thread once nothing is under way. Raises CannotRun where it does not end."""
        self._closing = True
        os.eventfd_write(self._wake, 1)
        self._thread.join(JOIN_S)
        if self._thread.is_alive():
            raise CannotRun(f"the thread that completes exchanges did not end within {JOIN_S:g} s")
        os.close(self._wake)

    def _run(self) -> None:
        while True:
            self._begin_new()
            self._under_way = [entry for entry in self._under_way if not self._done(entry)]
            if self._closing and not self._under_way and self._new.empty():
                return
            self._sleep()

    def _begin_new(self) -> None:
        while not self._new.empty():
            entry = self._new.get_nowait()
            try:
                entry.operation.begin()
            except Exception as error:
                self._fail(entry, error)
            else:
                self._under_way.append(entry)

    def _done(self, entry: _Entry) -> bool:
        try:
            if entry.operation.ended():
                entry.complete(entry.operation.result)
                return True
        except Exception as error:
            self._fail(entry, error)
            return True
        if time.monotonic() > entry.due:
            self._fail(entry, entry.operation.late())
            return True
        return False

    def _fail(self, entry: _Entry, error: Exception) -> None:
        self.error = self.error or error
        self._given_up.append(entry)
        entry.complete(error)

    def _sleep(self) -> None:
        """Until something comes; where there is nothing to sleep on, and something under way, not at all."""
        pipes = [pipe for entry in self._under_way for pipe in entry.operation.pipes]
        polled = [*self._polled, *pipes] if self._under_way else []
        if self._under_way and not self._polled:
            timeout: int | None = 0
        else:
            timeout = CAP_MS if self._under_way else None
        poll = select.poll()
        for descriptor in (self._wake, *polled):
            poll.register(descriptor, select.POLLIN)
        if any(fd == self._wake for fd, _ in poll.poll(timeout)):
            os.eventfd_read(self._wake)
