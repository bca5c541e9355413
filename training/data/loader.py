"""Batches for a rank's steps, and how long the step waited for them: data time, which is not the network's."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

from training.data import batches
from training.data.batches import Batch
from training.data.prefetch import Prefetch, held
from training.data.shards import shard
from training.data.source import COLOURS, Source

if TYPE_CHECKING:
    from torch import Tensor

DEADLINE_S = 120.0  # a batch takes seconds at most: a file system that takes longer has stopped to answer
_BYTES = 1 + 4  # per colour of a pixel: as read, and as float32


class Loader:
    """The batches of one rank, epoch after epoch, without end; every epoch is shuffled anew, by the seed.

    ``workers`` is the number of threads that make batches ahead; 0: each is made when it is asked for, and all of it is
    data time. Threads hide that time where they find a free core; otherwise they slow the computation down. Raises
    UserError where the images do not fill a step. Close it, or use it in a ``with``: its threads end there.
    """

    def __init__(
        self,
        source: Source,
        batch: int,
        rank: int,
        ranks: int,
        seed: int,
        augment: bool,
        workers: int = 0,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._source, self._augment, self._seed = source, augment, seed
        self._shard = shard(source, batch, rank, ranks, seed)
        self._step, self._waited_ns = 0, 0
        self._order = self._shard.order(0)
        self._kept = source.read(self._shard.piece(0, self._order).indices) if source.fixed else None
        self._still = None if self._kept is None or augment else batches.plain(*self._kept)
        ahead = 0 if self._still else workers  # nothing is left to be made ahead
        self._prefetch = Prefetch(source.name, self._next_order, ahead, deadline_s)

    @property
    def batches(self) -> int:
        """Batches of an epoch, the same on every rank."""
        return self._shard.batches

    @property
    def waited_ns(self) -> int:
        """How long the caller of the last :meth:`next` was kept."""
        return self._waited_ns

    def next(self) -> tuple[Tensor, Tensor]:
        """Images, float32 of shape (n, 3, h, w), and classes, int64 of shape (n), for the next step.

        Raises UserError, naming the file, for data that cannot be read, and CannotRun where a thread does not deliver
        within the deadline.
        """
        import torch  # noqa: PLC0415 - it takes seconds, and only batches need it

        start = time.perf_counter_ns()
        images, labels = self._prefetch.take()
        found = torch.from_numpy(images), torch.from_numpy(labels)
        self._waited_ns = time.perf_counter_ns() - start
        return found

    def close(self) -> None:
        """End its threads. Raises CannotRun where one does not end within the deadline."""
        self._prefetch.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _next_order(self) -> Callable[[], Batch]:
        """What makes the batch of the next step; it touches nothing of this object that changes."""
        step, self._step = self._step, self._step + 1
        if self._still is not None:
            return partial(_same, self._still)
        epoch = self._shard.epoch(step)
        if step and epoch != self._shard.epoch(step - 1):
            self._order = self._shard.order(epoch)
        piece = self._shard.piece(step, self._order)
        return partial(batches.make, self._source, piece, self._seed if self._augment else None, self._kept)


def _same(batch: Batch) -> Batch:
    return batch


def held_bytes(batch: int, image_px: int, workers: int) -> int:
    """Bytes of the batches that a loader holds at most at once."""
    return held(workers) * batch * image_px**2 * COLOURS * _BYTES
