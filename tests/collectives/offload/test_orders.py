"""What travels between hosts and DPUs, what is tried, and how a host waits for a DPU: without a job."""

from __future__ import annotations

import os
import re
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from collectives.offload.request import Pause, _kind_of, fitting
from collectives.offload.service import MAKE, RUN, WORDS, Order
from collectives.offload.tune import candidates
from collectives.offload.waiting import spin
from fabrics.errors import CannotRun, UserError
from microbench.dtypes import DTYPES


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
    assert candidates(32 << 20)[-1] == 1 << 16 and candidates(64 << 20)[-1] == 1 << 18  # few pieces


def test_arrays_of_other_types_are_refused_with_the_types_that_are_not() -> None:
    assert _kind_of(np.zeros(1, "f2")).name == "float16"
    with pytest.raises(UserError, match="array of complex128 cannot be reduced: one of float32, float64"):
        _kind_of(np.zeros(1, "c16"))


@pytest.mark.parametrize(
    ("out", "said"),
    [
        (np.zeros((2, 3), "i4"), "out is int32 of shape (2, 3): it has to be float32 of shape (2, 3)"),
        (np.zeros((2, 3), "f2"), "out is float16"),
        (np.zeros((2, 3), ">f4"), "out is >f4"),
        (np.zeros(5, "f4"), "out is float32 of shape (5,): it has to be"),
        (np.zeros((3, 2), "f4"), "out is float32 of shape (3, 2)"),
        (
            np.broadcast_to(np.zeros(3, "f4"), (2, 3)),
            "read-only: it has to be float32 of shape (2, 3), as array is, and w",
        ),
    ],
)
def test_an_out_that_does_not_fit_is_refused_with_what_it_has_to_be(out: Any, said: str) -> None:
    with pytest.raises(UserError, match=re.escape(said)):
        fitting(np.zeros((2, 3), "f4"), out)


def test_arrays_in_any_memory_layout_fit_and_bfloat16_is_held_in_its_bits() -> None:
    array = np.zeros((2, 3), "f4")
    assert fitting(array, np.zeros((3, 2), "f4").T).name == fitting(array, array).name == "float32"
    bits, held = DTYPES["bfloat16"], np.zeros(3, DTYPES["bfloat16"].numpy)
    assert fitting(held, held, bits) is bits
    with pytest.raises(UserError, match="array is of float32: bfloat16 is held in uint16"):
        fitting(array, None, bits)


@pytest.fixture
def pause() -> Pause:
    crew: Any = SimpleNamespace(waiting=spin("a test"), name=lambda rank: f"DPU d{rank} (rank {rank})")
    return Pause(crew)


def test_whoever_is_late_is_named_and_nobody_else(pause: Pause) -> None:
    with pytest.raises(CannotRun, match=r"^DPU d5 \(rank 5\) did not finish within 0.05 s: .*or another host has not"):
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
