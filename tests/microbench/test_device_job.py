"""Other libraries' functions and Python's as calls of real programs: copies, errors, and what a watchdog sees."""

from __future__ import annotations

import json
from typing import Any

import pytest

from microbench.pt2pt import WINDOW
from tests import jobs


@pytest.fixture(scope="module")
def findings() -> dict[str, Any]:
    done = jobs.mpi(2, "-m", "tests.microbench.device_job")
    assert done.code == 0, done.err
    return dict(json.loads(done.out.splitlines()[-1]))


@pytest.mark.parametrize(
    ("way", "copies"),
    [
        ("pingpong", {"to host": 1, "to device": 1, "wait": 2}),
        ("window", {"to host": WINDOW, "wait": 1}),
        ("both_ways", {"to host": WINDOW, "to device": WINDOW, "wait": 2}),
    ],
)
def test_staged_bytes_come_from_device_to_device(findings: dict[str, Any], way: str, copies: dict[str, int]) -> None:
    found = findings[way]
    assert found["copies"] == copies
    assert found["samples"] > 0
    assert found["right"] == [way != "window", True]  # the first of a pair sends a window, and receives nothing


def test_a_failing_copy_names_call_iteration_and_rank(findings: dict[str, Any]) -> None:
    assert findings["failing"] == ("cudaMemcpyAsync (call 0) failed in iteration 0 on rank 0: CUDA error 2: planted")


def test_what_python_raises_ends_the_loop_at_once(findings: dict[str, Any]) -> None:
    assert findings["error"] == (
        "LoopError after 3: a function (call 1) failed in iteration 2 on rank 0: RuntimeError: broken"
    )
    assert findings["interrupt"] == "KeyboardInterrupt after 3: stop"


def test_a_device_buffer_is_refused_where_mpi_has_no_cuda(findings: dict[str, Any]) -> None:
    if findings["aware"]:
        assert findings["refused"] == "taken"
    else:
        assert findings["refused"] == f"device memory, and {findings['how']}: cuda-staged copies it through host memory"


def test_a_watchdog_sees_the_python_call(findings: dict[str, Any]) -> None:
    assert findings["seen"] == "a function (call 0) in iteration 0 of 1"


def test_entering_python_takes_time_that_is_told(findings: dict[str, Any]) -> None:
    assert findings["overhead_ns"] > 0
