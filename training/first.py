"""The first steps, which no other is like: DDP rebuilds its buckets, and gradients are watched as they become ready."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from microbench.job import Job
from training.cast import Cast, Meeting
from training.clock import Clock, Nobody, Trainee
from training.exchange.modes import NOOP
from training.exchange.opened import Ways
from training.pace import READY_STEPS
from training.replica import Replica
from training.standin import StandIn, Timetable
from training.steps import Step

_NS = 1e-9


@dataclass
class First:
    """What the first steps told.

    ``steps`` are kept apart, by mode. By cap: ``buckets`` are their elements and how many tensors they hold,
    ``ready_s`` when each was ready after the start of backward, ``since_step_s`` after the barrier before the step.
    ``parameters_s`` is when each tensor's gradient was ready after the start of backward. Medians over ``watched``
    steps without an exchange.
    """

    steps: dict[str, list[Step]] = field(default_factory=dict)
    buckets: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    ready_s: dict[int, list[float]] = field(default_factory=dict)
    since_step_s: dict[int, list[float]] = field(default_factory=dict)
    parameters_s: list[float] = field(default_factory=list)
    watched: int = 0
    taken: int = 0

    def timetables(self) -> dict[int, Timetable]:
        """What a stand-in needs to know."""
        return {
            cap: Timetable(tuple(count for count, _ in rows), tuple(self.since_step_s[cap]))
            for cap, rows in self.buckets.items()
        }


def first_steps(
    cast: Cast, here: Job, meeting: Meeting, replica: Replica | None, ways: Ways, caps: Mapping[str, int]
) -> tuple[Trainee, First]:
    """Who takes the steps of this host, and what the first ones told; all without an exchange.

    Every host takes its own, and all begin together; where peers are replayed, the first host does so alone, and they
    learn from it what to hand over and when. Collective over the hosts.
    """
    first, trainee = First({NOOP: []}), replica
    if replica is not None:
        clock = Clock(Nobody() if cast.setup.replayed else meeting, replica, ways, caps)
        for place, cap in enumerate(dict.fromkeys([caps[NOOP], *caps.values()])):
            _rebuilt_and_watched(clock, replica, cap, READY_STEPS if place == 0 else 1, first)
        first.taken = clock.steps
    if not cast.setup.replayed:
        assert trainee is not None  # noqa: S101 - every host trains
        return trainee, first
    meeting.rest()
    shapes = [tuple(p.shape) for p in replica.network.parameters()] if replica is not None else []
    tables, shapes = here.decide((first.timetables(), shapes))
    return trainee or StandIn(tables, shapes, cast.setup.dtype), first


def _rebuilt_and_watched(clock: Clock, replica: Replica, cap: int, watched: int, first: First) -> None:
    """One step that makes DDP rebuild the buckets of a cap, then such that are watched."""
    first.steps[NOOP].append(clock.step(NOOP, cap))
    since, ready, parameters = list[Sequence[int]](), list[Sequence[int]](), list[Sequence[int]]()
    with replica.watching_parameters() as seen:
        for _ in range(watched):
            step = clock.step(NOOP, cap)
            since.append(replica.ready_ns(step, cap))
            ready.append([ns - step["forward"] for ns in since[-1]])
            began = replica.backward_began_ns(step, cap)
            parameters.append([seen[number] - began for number in range(len(seen))])
            first.steps[NOOP].append(step)
    first.buckets[cap] = list(replica.wings[cap].hook.sizes)
    first.since_step_s[cap], first.ready_s[cap] = _medians(since), _medians(ready)
    if not first.parameters_s:
        first.parameters_s, first.watched = _medians(parameters), watched


def _medians(rows: Sequence[Sequence[int]]) -> list[float]:
    return [float(ns) * _NS for ns in np.median(np.array(rows), axis=0)]
