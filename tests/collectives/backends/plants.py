"""Faults of a backend, planted in one way each for as long as the context lasts."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest import mock

from tests.microbench.fake_cuda import FakeCuda

DELAY_S = 0.02


@contextmanager
def one_element_off(job: Any) -> Iterator[None]:
    """An allreduce that is off by one in one element on the last rank."""
    import torch.distributed as dist

    right = dist.all_reduce

    def wrong(tensor: Any) -> None:
        right(tensor)
        if job.rank == job.size - 1 and tensor.numel() == 100:
            tensor[3] += 1

    with mock.patch.object(dist, "all_reduce", wrong):
        yield


@contextmanager
def slow_on_last(job: Any) -> Iterator[None]:
    """A broadcast whose call takes long on the last rank alone."""
    import torch.distributed as dist

    right = dist.broadcast

    def slow(tensor: Any, src: int) -> None:
        right(tensor, src=src)
        if job.rank == job.size - 1:
            time.sleep(DELAY_S)

    with mock.patch.object(dist, "broadcast", slow):
        yield


@contextmanager
def no_such_type(job: Any) -> Iterator[None]:
    """A backend whose map of types lacks one, which only the last rank says."""
    import torch
    import torch.distributed as dist

    right = dist.all_to_all_single

    def picky(output: Any, given: Any, *splits: Any) -> None:
        if given.dtype == torch.bfloat16 and job.rank == job.size - 1:
            raise IndexError("map::at")
        if given.dtype != torch.bfloat16:
            right(output, given, *splits)

    with mock.patch.object(dist, "all_to_all_single", picky):
        yield


@contextmanager
def breaks_later(job: Any) -> Iterator[None]:
    """A broadcast that raises on every rank once it has been checked."""
    import torch.distributed as dist

    right, calls = dist.broadcast, [0]

    def broken(tensor: Any, src: int) -> None:
        calls[0] += 1
        if calls[0] > 6:
            raise RuntimeError("Connection reset by peer\nand a trace of it")
        right(tensor, src=src)

    with mock.patch.object(dist, "broadcast", broken):
        yield


@contextmanager
def device(_job: Any) -> Iterator[None]:
    """A CUDA device of host memory, whose events tell no time and whose proof is nobody's."""
    import torch

    from collectives.backends import bench, events, measured, table

    fake = FakeCuda(tensor=lambda nbytes: torch.zeros(nbytes, dtype=torch.uint8))
    event = SimpleNamespace(record=lambda: None, synchronize=lambda: None, elapsed_time=lambda end: 1.5)
    timed = partial(events.device_ns, make=lambda: event)
    with (
        mock.patch.dict(sys.modules, {"microbench.cuda": SimpleNamespace(Cuda=lambda local: fake)}),
        mock.patch.object(bench, "missing", lambda comm, device: ""),
        mock.patch.object(table, "why_not", lambda name, device: ""),
        mock.patch.object(measured, "proof_of", lambda job, backend, device: None),
        mock.patch.object(events, "device_ns", timed),
    ):
        yield
    assert {"to device", "to host", "finish"} <= set(fake.done)
    assert fake.done.count("finish") > 10  # a wait for the device in every iteration


@contextmanager
def alone(job: Any) -> Iterator[None]:
    """A group that says it is of one rank."""
    import torch.distributed as dist

    with mock.patch.object(dist, "get_world_size", lambda: 1):
        yield
