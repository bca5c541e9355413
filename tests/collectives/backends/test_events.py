"""Events on a device's stream, by fakes: what is recorded, in which order, and in which unit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from collectives.backends import events


class Event:
    """An event that tells when it was recorded: the place in a common list, in ms."""

    def __init__(self, log: list[str], at: list[float]) -> None:
        self.log, self.clock, self.at = log, at, -1.0

    def record(self) -> None:
        self.log.append("record")
        self.at = self.clock[0]

    def synchronize(self) -> None:
        self.log.append("synchronize")

    def elapsed_time(self, end: Event) -> float:
        assert self.log[-1] == "synchronize"  # what is not there yet has no time
        return end.at - self.at


def test_each_call_lies_between_two_events_and_the_last_is_waited_for() -> None:
    log: list[str] = []
    clock = [0.0]

    def call() -> None:
        log.append("call")
        clock[0] += 2.5

    def start(_n: int) -> None:
        log.append("start")
        clock[0] += 100.0  # what brings the ranks together is not timed

    programs: list[tuple[Any, ...]] = []

    def program(*calls: Any) -> Any:
        programs.append(calls)
        return SimpleNamespace(run=start)

    job: Any = SimpleNamespace(comm="comm", engine=SimpleNamespace(program=program), gather=lambda times: times[None])
    ready: Any = SimpleNamespace(placing=[("refill",)], function=call)
    times = events.device_ns(job, ready, lambda: Event(log, clock), iterations=3)
    assert times.tolist() == [[2_500_000] * 3]
    assert log == ["start", "record", "call", "record", "synchronize"] * 3
    assert [call[0] for call in programs[0]] == ["refill", "MPI_Barrier"]


def test_the_slowest_rank_counts() -> None:
    times = np.array([[1_000_000, 5_000_000, 3_000_000], [2_000_000, 1_000_000, 4_000_000]])
    found = events.metric_of(times)
    assert found.value == pytest.approx(4e-3)
    assert (found.unit, found.n) == ("s", 3)
