"""A peer that does not train: it sleeps for the compute's time, and hands over gradients of equal size."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from training.exchange.ways import Exchange
from training.replica import Gradients
from training.steps import Step

SHARE = 1e-3
"""What every number that it hands over is: as large as gradients are, so that a step goes on as usual."""


@dataclass(frozen=True)
class Timetable:
    """Of one size of buckets: the elements of each, and when it is ready after the barrier before a step."""

    elements: tuple[int, ...]
    ready_s: tuple[float, ...]


class StandIn:
    """The part of a replica that the first host's exchanges need; ``timetables`` are by cap, as that host saw them."""

    def __init__(self, timetables: Mapping[int, Timetable], shapes: Sequence[tuple[int, ...]], dtype: str) -> None:
        self._timetables, self._shapes = timetables, shapes
        self.loss = 0.0
        self._buckets = {
            cap: [torch.full((count,), SHARE, dtype=getattr(torch, dtype)) for count in table.elements]
            for cap, table in timetables.items()
        }
        (self._share,) = torch.tensor([SHARE], dtype=getattr(torch, dtype)).float().tolist()

    def follow(self, timetables: Mapping[int, Timetable]) -> None:
        """Hand over at other times from now on."""
        self._timetables = timetables

    def load(self) -> None:
        """There are no images here."""

    def step(self, exchange: Exchange | None, cap: int) -> Step:
        """Hand over every bucket at its time, and wait for all; nothing without an exchange."""
        if exchange is None:
            return Step.of(0.0)
        self._hand_over(exchange, cap, self._timetables[cap].ready_s)
        return Step.of(0.0)

    def gradients(self, exchange: Exchange | None, cap: int) -> Gradients:
        """What it hands over, shaped as the model's gradients are; handed over at once where there is an exchange."""
        if exchange is not None:
            self._hand_over(exchange, cap, (0.0,) * len(self._buckets[cap]))
        return [np.full(shape, self._share, np.float32) for shape in self._shapes]

    def _hand_over(self, exchange: Exchange, cap: int, ready_s: Sequence[float]) -> None:
        start, under_way = time.perf_counter(), []
        for index, (bucket, due_s) in enumerate(zip(self._buckets[cap], ready_s, strict=True)):
            time.sleep(max(0.0, start + due_s - time.perf_counter()))
            under_way.append(exchange.start(bucket, index))
        for future in under_way:
            future.wait()
        for bucket in self._buckets[cap]:
            bucket.fill_(SHARE)
