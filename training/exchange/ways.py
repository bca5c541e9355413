"""The exchanges themselves: what happens to a bucket's gradients, and what becomes of the future DDP is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from collectives import own
from collectives.native import lower
from collectives.offload.request import Offload, Request
from collectives.offload.tune import Tuned
from collectives.schedules import ALGORITHMS, NEEDS_HOSTS
from fabrics.errors import CannotRun
from microbench.device import NOT_VERIFIED
from microbench.dtypes import DType, counted, mpi_type
from microbench.engine import CallSpec, Engine, requests
from microbench.job import Job
from training.exchange.modes import GLOO, Mode
from training.exchange.progress import Progress, TensorFuture
from training.exchange.stages import Course, Looker, staged

if TYPE_CHECKING:
    from microbench.engine import Program

Average = Callable[[Tensor], TensorFuture]
_ALLREDUCE = "allreduce"
_FIRST_TAG = 7
_THREAD = "a thread of ours"


class Exchange(Protocol):
    """A way to average a bucket over the hosts; every host starts the same buckets in the same order."""

    def start(self, gradients: Tensor, index: int) -> TensorFuture:
        """Begin to average bucket ``index``; its future's tensor has the mean."""

    def method(self) -> dict[str, Any]:
        """How it is done, for a record."""


def average_over_ranks(gradients: Tensor) -> TensorFuture:
    """The mean of ``gradients`` over all ranks by torch's default group, in place, as DDP's own allreduce does it."""
    gradients.div_(dist.get_world_size())
    work = dist.all_reduce(gradients, async_op=True)
    if work is None:
        raise RuntimeError("an asynchronous allreduce returned no handle: is this rank in the group?")
    averaged: TensorFuture = work.get_future().then(_first)
    return averaged


def _first(done: torch.futures.Future[list[Tensor]]) -> Tensor:
    return done.value()[0]


class ByTorch:
    """torch.distributed's allreduce, by the library of its default group, which completes the future by itself."""

    def __init__(self, average: Average = average_over_ranks, library: str = GLOO) -> None:
        self._average, self._library = average, library

    def start(self, gradients: Tensor, index: int) -> TensorFuture:
        """See :class:`Exchange`."""
        return self._average(gradients)

    def method(self) -> dict[str, Any]:
        """See :class:`Exchange`."""
        told = {"call": "torch.distributed.all_reduce", "completes": f"{self._library}'s threads"}
        return told if self._library == GLOO else told | {"completes": "the device's stream", "hardware": NOT_VERIFIED}


class ByMpi:
    """MPI_Iallreduce on the bucket's own memory, or one of our schedules on it, completed by the progress thread.

    ``host`` is the hosts' own job. Raises Unsupported where MPI does not add the type.
    """

    def __init__(self, host: Job, mode: Mode, kind: DType, progress: Progress, looks: int) -> None:
        self._mode, self._kind, self._progress, self._looks = mode, kind, progress, looks
        self.type = mpi_type(host.engine.MPI, kind)
        self._job = _own(host)
        self._thread = Engine(host.engine.MPI)  # whose page no other thread writes
        self._buckets: dict[tuple[int, int], _LibraryBucket | _ScheduleBucket] = {}

    def start(self, gradients: Tensor, index: int) -> TensorFuture:
        """See :class:`Exchange`. The library's call is posted here, so that the data is on its way at once."""
        gradients.div_(self._job.size)
        key = gradients.data_ptr(), gradients.numel()
        if key not in self._buckets:
            self._buckets[key] = self._bucket(gradients, index)
        bucket = self._buckets[key]
        bucket.post()
        return self._progress.submit(bucket)

    def _bucket(self, gradients: Tensor, index: int) -> _LibraryBucket | _ScheduleBucket:
        if self._mode.algorithm:
            return self._scheduled(gradients, index)
        engine, MPI, memory = self._job.engine, self._job.engine.MPI, words(gradients)  # noqa: N806
        slot, name = requests(1, MPI), counted(self._job.engine, "MPI_Iallreduce", gradients.numel())
        post = engine.program((name, MPI.IN_PLACE, memory, gradients.numel(), self.type, MPI.SUM, self._job.comm, slot))
        return _LibraryBucket(gradients, post, Looker(self._thread, list(slot), self._looks))

    def _scheduled(self, gradients: Tensor, index: int) -> _ScheduleBucket:
        of, found = (_ALLREDUCE, self._mode.algorithm), torch.empty_like(gradients)
        options: dict[str, Any] = {"hosts": own.places(self._job.hosts)} if of in NEEDS_HOSTS else {}
        schedule = ALGORITHMS[of](self._job.size, gradients.numel(), **options)
        calls = lower(self._job, schedule, self._kind, self.type, words(gradients), words(found))
        return _ScheduleBucket(
            found, Course(self._thread, list(staged(calls, self._thread, _FIRST_TAG + index)), self._looks), calls
        )

    def method(self) -> dict[str, Any]:
        """See :class:`Exchange`."""
        call = self._mode.algorithm or "MPI_Iallreduce, in place, posted in the hook"
        return {"call": call, "completes": _THREAD, "looks": self._looks}

    def close(self) -> None:
        """Give the communicator back; nothing may be under way."""
        self._buckets = {}
        self._job.comm.Free()


def _own(host: Job) -> Job:
    """The same job in a communicator of its own, whose errors return."""
    comm = host.comm.Dup()
    comm.Set_errhandler(host.engine.MPI.ERRORS_RETURN)
    return replace(host, comm=comm)


def words(tensor: Tensor) -> NDArray[np.uint8]:
    """The bytes of a tensor in one piece, not copied."""
    found: NDArray[np.uint8] = tensor.view(torch.uint8).numpy()
    return found


class _LibraryBucket:
    """The library's call on one bucket."""

    pipes: tuple[int, ...] = ()

    def __init__(self, gradients: Tensor, post: Program, looker: Looker) -> None:
        self.result, self._post, self._looker = gradients, post, looker

    def post(self) -> None:
        self._post.run(1)

    def begin(self) -> None:
        """The hook has done it."""

    def ended(self) -> bool:
        return self._looker.ended()

    def late(self) -> Exception:
        return CannotRun(f"an MPI allreduce of {self.result.nbytes} B did not end in time")


class _ScheduleBucket:
    """One of our schedules on one bucket, into memory of its own."""

    pipes: tuple[int, ...] = ()

    def __init__(self, result: Tensor, course: Course, calls: list[CallSpec]) -> None:
        self.result, self._course, self._calls = result, course, calls  # what calls refer to lives with them

    def post(self) -> None:
        """Nothing: the thread begins."""

    def begin(self) -> None:
        self._course.begin()

    def ended(self) -> bool:
        return self._course.ended()

    def late(self) -> Exception:
        return CannotRun(f"an allreduce of {self.result.nbytes} B over MPI's messages did not end in time")


class ByDpu:
    """Requests of the offload engine; a slot for each bucket, so that all may be under way at once.

    All of the engine's work is done on the progress thread: it takes one thread at a time.
    """

    def __init__(self, offload: Offload, tuned: Tuned, kind: DType, hosts: int, progress: Progress) -> None:
        self._offload, self._tuned, self._kind = offload, tuned, kind
        self._hosts, self._progress = hosts, progress
        self.asked = 0

    def start(self, gradients: Tensor, index: int) -> TensorFuture:
        """See :class:`Exchange`."""
        gradients.div_(self._hosts)
        self.asked += 1
        return self._progress.submit(_DpuBucket(self._offload, gradients, self._kind, index))

    def method(self) -> dict[str, Any]:
        """See :class:`Exchange`."""
        pieces = {"chunk_bytes": self._tuned.chunk_bytes, "chunk_table": list(self._tuned.table)}
        return {"call": "the offload engine's allreduce", "completes": _THREAD, **pieces}


class _DpuBucket:
    """One bucket on its way through the DPUs."""

    def __init__(self, offload: Offload, gradients: Tensor, kind: DType, index: int) -> None:
        self.result, self._offload, self._kind, self._index = gradients, offload, kind, index
        self._request: Request | None = None

    def begin(self) -> None:
        array = words(self.result).view(self._kind.numpy)
        self._request = self._offload.allreduce(array, array, kind=self._kind, slot=self._index)

    def ended(self) -> bool:
        return self._request is not None and self._request.test()

    @property
    def pipes(self) -> list[int]:
        return [] if self._request is None else self._request.answers

    def late(self) -> Exception:
        """The engine's own words, which name the DPU."""
        try:
            if self._request is not None:
                self._request.wait(0.0)
        except CannotRun as error:
            return error
        return CannotRun("an offloaded allreduce ended only after its time was over")
