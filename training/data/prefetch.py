"""Work done ahead, by threads, in order; no torch and no images."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

from fabrics.errors import CannotRun

T = TypeVar("T")
THREAD_NAME = "fabricbench-data"
_AHEAD = 2  # results per thread: one in work, one that waits to be taken


def held(workers: int) -> int:
    """How many results exist at most: those made ahead, and the one that the caller has."""
    return _AHEAD * workers + 1


class Prefetch(Generic[T]):
    """Results in order, each made by one of ``workers`` threads, or by the caller where there are none.

    ``order`` is called by the caller alone, once per result, and gives what a thread then does. At most twice as many
    as there are threads are made ahead. Without threads no deadline can be held here; that of the case is above it.
    """

    def __init__(self, name: str, order: Callable[[], Callable[[], T]], workers: int, deadline_s: float) -> None:
        self._name, self._order, self._deadline_s = name, order, deadline_s
        self._ahead, self._orders = _AHEAD * workers, deque[Future[T]]()
        self._pool = ThreadPoolExecutor(workers, THREAD_NAME) if workers else None
        self._stuck = False

    def take(self) -> T:
        """The next result. Raises what making it raised, and CannotRun where it is not there within the deadline."""
        if self._pool is None:
            return self._order()()
        self._fill(self._pool)
        future = self._orders.popleft()
        self._wait([future])
        result = future.result()
        self._fill(self._pool)
        return result

    def close(self) -> None:
        """End the threads; what they made is dropped. Raises CannotRun where one does not end within the deadline."""
        if self._pool is None:
            return
        self._pool.shutdown(wait=False, cancel_futures=True)
        if not self._stuck:  # else the deadline has passed once already
            self._wait([future for future in self._orders if not future.cancelled()])
            self._pool.shutdown(wait=True)

    def _fill(self, pool: ThreadPoolExecutor) -> None:
        while len(self._orders) < self._ahead:
            self._orders.append(pool.submit(self._order()))

    def _wait(self, futures: list[Future[T]]) -> None:
        if wait(futures, self._deadline_s).not_done:
            self._stuck = True
            raise CannotRun(f"{self._name}: no batch within {self._deadline_s:g} s: a thread still reads it")
