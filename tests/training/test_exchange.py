"""Names of exchanges, and the thread that completes them, with operations that are made up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from collectives.offload.waiting import spin
from fabrics.errors import CannotRun, UserError
from training.exchange.modes import Mode, bucket_cap_mb, modes
from training.exchange.opened import Ways
from training.exchange.progress import Progress


@pytest.mark.parametrize(
    ("name", "mode", "fusion"),
    [
        ("gloo", Mode("gloo", "gloo"), "25 MiB (the first 1 MiB)"),
        ("gloo+64M", Mode("gloo+64M", "gloo", "", 64 << 20), "64 MiB"),
        ("gloo+25M", Mode("gloo", "gloo"), "25 MiB (the first 1 MiB)"),
        ("mpi-ring+unfused", Mode("mpi-ring+unfused", "mpi", "ring", 0), "a bucket per tensor"),
        ("dpu-staged", Mode("dpu-staged", "dpu", "staged"), "25 MiB (the first 1 MiB)"),
    ],
)
def test_name_tells_primitive_algorithm_and_fusion(name: str, mode: Mode, fusion: str) -> None:
    assert Mode.of(name) == mode
    assert mode.fusion == fusion


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tcp", "begins with one of gloo, mpi, dpu, nccl"),
        ("gloo-ring", "unknown exchange 'gloo-ring': gloo or gloo"),
        ("mpi-bruck", "mpi or mpi-recursive-doubling|mpi or mpi-"),
        ("gloo+", "^train: exchange 'gloo\\+': behind the \\+ stands unfused or one size such as 64M"),
        ("gloo+-3M", "^train: exchange 'gloo\\+-3M': behind the \\+ .* one size such as 64M: malformed size '-3M'$"),
        ("mpi+2000000G", "^train: exchange 'mpi\\+2000000G': .* is beyond 1 PiB$"),
        ("gloo+1M:4M", "behind the \\+ stands unfused or one size such as 64M"),
        ("gloo+1M,2M", "behind the \\+ stands unfused or one size such as 64M"),
        ("gloo+0", "behind the \\+ stands unfused or one size such as 64M"),
    ],
)
def test_name_that_cannot_be_meant_is_refused(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Mode.of(name)


def test_bucket_that_closes_with_every_tensor_is_a_byte_to_torch() -> None:
    unfused, usual, large = (bucket_cap_mb(mode.cap_bytes) for mode in modes(["gloo+unfused", "gloo", "gloo+64M"]))
    assert (usual, large) == (None, 64.0)
    assert unfused is not None
    assert 0 < unfused * 2**20 <= 1


class Operation:
    """Ends at the given look; fails where it is told to."""

    pipes = ()

    def __init__(self, ends: int | None, begins: bool = True) -> None:
        self.result = torch.ones(2)
        self.looks, self._ends, self._begins = 0, ends, begins

    def begin(self) -> None:
        if not self._begins:
            raise RuntimeError("it cannot begin")

    def ended(self) -> bool:
        self.looks += 1
        return self._ends is not None and self.looks >= self._ends

    def late(self) -> Exception:
        return CannotRun("DPU d0 did not finish")


@pytest.fixture
def progress() -> Iterator[Progress]:
    thread = Progress(spin("a test"), deadline_s=0.05)
    yield thread
    thread.close()


def result(future: Any) -> Any:
    until = time.monotonic() + 10
    while not future.done() and time.monotonic() < until:
        time.sleep(0.001)
    assert future.done()
    return future.value()


def test_operations_end_in_any_order(progress: Progress) -> None:
    slow, fast = Operation(400), Operation(1)
    futures = [progress.submit(slow), progress.submit(fast)]
    assert [result(future).tolist() for future in futures] == [[1.0, 1.0]] * 2
    assert slow.looks == 400
    assert progress.error is None


@pytest.mark.parametrize(
    ("operation", "message"),
    [(Operation(None), "DPU d0 did not finish"), (Operation(1, begins=False), "it cannot begin")],
)
def test_operation_that_fails_or_is_late_completes_its_future_with_the_error_and_the_next_are_refused(
    progress: Progress, operation: Operation, message: str
) -> None:
    """A future that nobody completes would hold backward for ever."""
    first, later = progress.submit(operation), None
    with pytest.raises(Exception, match=message):
        result(first)
    never = Operation(1)
    later = progress.submit(never)
    with pytest.raises(Exception, match=message):
        result(later)
    assert never.looks == 0


def test_error_of_backward_is_told_in_the_words_of_the_exchange(progress: Progress) -> None:
    ways, around = Ways({}, progress), RuntimeError("torch's words\nand its stack")
    assert ways.explain(around) is around
    lost = Ways({}).explain(RuntimeError("[gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.0.0.2]:1\nat"))
    assert isinstance(lost, CannotRun)
    assert str(lost).endswith("Connection closed by peer [10.0.0.2]:1")
    with pytest.raises(Exception, match="did not finish"):
        result(progress.submit(Operation(None)))
    assert str(ways.explain(around)) == "DPU d0 did not finish"
