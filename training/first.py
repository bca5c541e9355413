"""The first steps, which no other is like: DDP rebuilds its buckets, and gradients are watched as they become ready."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

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
        for cap in dict.fromkeys(caps.values()):
            first.steps[NOOP].append(clock.step(NOOP, cap))  # after which DDP rebuilds the buckets
            _watch(clock, replica, cap, 1, first)
        first.taken = clock.steps
    if not cast.setup.replayed:
        assert trainee is not None  # noqa: S101 - every host trains
        return trainee, first
    shapes = [tuple(p.shape) for p in replica.network.parameters()] if replica is not None else []
    tables, shapes = _told(here, meeting, (first.timetables(), shapes))
    return trainee or StandIn(tables, shapes, cast.setup.dtype), first


def watched_steps(here: Job, meeting: Meeting, clock: Clock, first: First) -> None:
    """Steps without an exchange once all has been allocated: when gradients are ready, which stand-ins learn anew.

    Collective over the hosts, which begin together, or the first alone where the others stand in.
    """
    trainee, replayed = clock.trainee, here.sum(isinstance(clock.trainee, StandIn)) > 0
    if isinstance(trainee, Replica):
        own = replace(clock, meeting=Nobody()) if replayed else clock
        for cap in dict.fromkeys([clock.caps[NOOP], *clock.caps.values()]):
            _watch(own, trainee, cap, READY_STEPS if cap == clock.caps[NOOP] else 1, first)
        clock.steps = own.steps
    if replayed:
        tables = _told(here, meeting, first.timetables())
        if isinstance(trainee, StandIn):
            trainee.follow(tables)


def _told(here: Job, meeting: Meeting, what: Any) -> Any:
    """What the first host says, for which the others sleep."""
    meeting.rest()
    return here.decide(what)


def _watch(clock: Clock, replica: Replica, cap: int, steps: int, first: First) -> None:
    since, ready, parameters = list[Sequence[int]](), list[Sequence[int]](), list[Sequence[int]]()
    with replica.watching_parameters() as seen:
        for _ in range(steps):
            step = clock.step(NOOP, cap)
            since.append(replica.ready_ns(step, cap))
            ready.append([ns - step["forward"] for ns in since[-1]])
            began = replica.backward_began_ns(step, cap)
            parameters.append([seen[number] - began for number in range(len(seen))])
            first.steps[NOOP].append(step)
    first.buckets[cap] = list(replica.wings[cap].hook.sizes)
    first.since_step_s[cap], first.ready_s[cap] = _medians(since), _medians(ready)
    if steps >= first.watched:
        first.parameters_s, first.watched = _medians(parameters), steps


def _medians(rows: Sequence[Sequence[int]]) -> list[float]:
    return [float(ns) * _NS for ns in np.median(np.array(rows), axis=0)]
