from __future__ import annotations

import math
import time
from typing import Any

import pytest

from training.clock import Clock, Diverged, Nobody
from training.exchange.opened import Ways
from training.exchange.progress import completed
from training.standin import SHARE, StandIn, Timetable
from training.steps import Step


class Recorded:
    """An exchange that doubles, and notes when each bucket was handed over."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int, float]] = []

    def start(self, gradients: Any, index: int) -> Any:
        self.seen.append((index, gradients.numel(), time.perf_counter()))
        gradients *= 2
        return completed(gradients)

    def method(self) -> dict[str, Any]:
        return {}


def standin() -> StandIn:
    return StandIn({25: Timetable((3, 5), (0.03, 0.06))}, [(2, 2), (4,)], "float32")


def test_stand_in_hands_over_each_bucket_at_its_time() -> None:
    exchange, begun = Recorded(), time.perf_counter()
    standin().step(exchange, 25)
    assert [(index, count) for index, count, _ in exchange.seen] == [(0, 3), (1, 5)]
    assert [when - begun >= due for (*_, when), due in zip(exchange.seen, (0.03, 0.06), strict=True)] == [True, True]


def test_stand_in_hands_over_the_same_numbers_each_time_and_at_once_for_a_check() -> None:
    peer, exchange = standin(), Recorded()
    begun = time.perf_counter()
    found = [peer.gradients(exchange, 25) for _ in range(2)]
    assert time.perf_counter() - begun < 0.03
    assert [array.shape for array in found[0]] == [(2, 2), (4,)]
    assert all((array == found[0][0].flat[0]).all() for arrays in found for array in arrays)
    assert found[0][0].flat[0] == pytest.approx(SHARE)
    assert peer._buckets[25][0].tolist() == pytest.approx([SHARE] * 3)


class Trainee:
    """Notes what is asked of it; its loss is that of the list."""

    def __init__(self, *losses: float) -> None:
        self.told: list[str] = []
        self.losses, self.loss = list(losses), 1.0

    def load(self) -> None:
        self.told.append("load")

    def step(self, exchange: Any, cap: int) -> Step:
        self.told.append(f"step {cap}")
        return Step.of(self.losses.pop(0))

    def gradients(self, exchange: Any, cap: int) -> Any:
        return []


class Meeting(Nobody):
    def __init__(self, trainee: Trainee) -> None:
        self._trainee = trainee

    def barrier(self) -> None:
        self._trainee.told.append("barrier")


def test_images_are_there_before_the_hosts_meet() -> None:
    trainee = Trainee(1.0, 1.0)
    clock = Clock(Meeting(trainee), trainee, Ways({"m": Recorded()}), {"m": 1, "noop": 2})
    clock.step("m")
    clock.step("noop", cap=3)
    assert trainee.told == ["load", "barrier", "step 1", "load", "barrier", "step 3"]


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_loss_that_is_no_number_is_told_with_its_step(loss: float) -> None:
    trainee = Trainee(1.0, loss)
    clock = Clock(Nobody(), trainee, Ways({}), {"noop": 2})
    clock.step("noop")
    with pytest.raises(Diverged, match="the loss of step 2 is not finite"):
        clock.step("noop")
    trainee.loss = loss
    with pytest.raises(Diverged, match="the loss of step 3 is not finite"):
        clock.gradients("noop")
