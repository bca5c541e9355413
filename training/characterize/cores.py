"""Which processors of its machine a rank's work runs on, and threads that are each bound to one."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_TASKS = Path("/proc/self/task")


def machine_cpus() -> tuple[int, ...]:
    """All processors that the kernel lets this process have, wherever it was bound."""
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        return tuple(sorted(os.sched_getaffinity(0)))
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def on(cpus: Collection[int]) -> Iterator[None]:
    """All threads of this process run on ``cpus`` meanwhile, those that others made too; then where they ran before."""
    before = {task: mask for task in _tasks() if (mask := _mask(task)) is not None}
    try:
        for task in before:
            _bind(task, cpus)
        yield
    finally:
        mine = before.get(os.getpid(), set(cpus))
        for task in _tasks():
            _bind(task, before.get(task, mine))


def _tasks() -> list[int]:
    return [int(path.name) for path in _TASKS.iterdir()]


def _mask(task: int) -> set[int] | None:
    with suppress(ProcessLookupError):
        return os.sched_getaffinity(task)
    return None


def _bind(task: int, cpus: Collection[int]) -> None:
    with suppress(ProcessLookupError):  # a thread that has just ended
        os.sched_setaffinity(task, cpus)


class Team:
    """A thread for each of ``cpus``, bound to it; where there is but one, the caller itself."""

    def __init__(self, cpus: Sequence[int]) -> None:
        self.cpus = tuple(cpus)
        self._pool = ThreadPoolExecutor(len(self.cpus)) if len(self.cpus) > 1 else None

    def each(self, act: Callable[[int], T]) -> list[T]:
        """``act(i)`` by the thread of every processor, all at once; what one raises is raised."""
        if self._pool is None:
            return [act(0)]

        def bound(place: int) -> T:
            os.sched_setaffinity(0, {self.cpus[place]})  # of this thread alone
            return act(place)

        return list(self._pool.map(bound, range(len(self.cpus))))

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
