"""What travels between hosts and DPUs, what is tried, and how a host waits for a DPU: without a job."""

from __future__ import annotations

import os
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from collectives.offload.request import Pause, _kind_of
from collectives.offload.service import MAKE, RUN, WORDS, Order
from collectives.offload.tune import candidates
from collectives.offload.waiting import spin
from fabrics.errors import CannotRun, UserError


@pytest.mark.parametrize(
    "order",
    [
        Order(RUN, 7),
        Order(MAKE, 0, "bfloat16", 3_000_000_000, "rma", 1 << 20, None),
        Order(MAKE, 0, "int8", 0, "window", None, 1 << 33),
    ],
)
def test_an_order_arrives_as_it_was_given(order: Order) -> None:
    words = order.words()
    assert words.size == WORDS
    assert Order.of(words) == order


def test_only_sizes_below_the_operands_are_tried() -> None:
    assert candidates(4 << 20) == (None, 1 << 20, 1 << 18, 1 << 16)
    assert candidates(1 << 20) == (None, 1 << 18, 1 << 16)
    assert candidates(4) == candidates(0) == (None,)


def test_arrays_of_other_types_are_refused_with_the_types_that_are_not() -> None:
    assert _kind_of(np.zeros(1, "f2")).name == "float16"
    with pytest.raises(UserError, match="array of complex128 cannot be reduced: one of float32, float64"):
        _kind_of(np.zeros(1, "c16"))


@pytest.fixture
def pause() -> Pause:
    crew: Any = SimpleNamespace(waiting=spin("a test"), name=lambda rank: f"DPU d{rank} (rank {rank})")
    return Pause(crew)


def test_whoever_is_late_is_named_and_nobody_else(pause: Pause) -> None:
    with pytest.raises(CannotRun, match=r"^DPU d5 \(rank 5\) did not finish within 0.05 s$"):
        pause.until(lambda: [True, False], 0.05, (4, 5), "finish")


def test_whoever_has_ended_is_told_at_once(pause: Pause) -> None:
    heard, rung = os.pipe()
    os.close(rung)
    began = time.monotonic()
    with pytest.raises(CannotRun, match=r"^DPU d4 \(rank 4\) has ended: it did not finish$"):
        pause.until(lambda: [False], 30.0, (4,), "finish", [heard])
    assert time.monotonic() - began < 10
    os.close(heard)


def test_a_bell_that_was_rung_before_its_ringer_ended_counts(pause: Pause) -> None:
    heard, rung = os.pipe()
    os.write(rung, bytes(8))
    os.close(rung)
    looks = iter([[False]] * 6 + [[True]])
    pause.until(lambda: next(looks), 30.0, (4,), "finish", [heard])
    os.close(heard)
