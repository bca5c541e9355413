"""The communication hook that exchanges gradients or leaves them alone, by a switch."""

# No postponed annotations: DistributedDataParallel compares the hook's annotations with the types.

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import GradBucket  # type: ignore[attr-defined]  # public, but not in torch's __all__

Average = Callable[[Tensor], torch.futures.Future[Tensor]]


def average_over_ranks(gradients: Tensor) -> torch.futures.Future[Tensor]:
    """The mean of ``gradients`` over all ranks, computed in place, as DDP's own allreduce does it."""
    gradients.div_(dist.get_world_size())
    work = dist.all_reduce(gradients, async_op=True)
    if work is None:
        raise RuntimeError("an asynchronous allreduce returned no handle: is this rank in the group?")
    averaged: torch.futures.Future[Tensor] = work.get_future().then(_first)
    return averaged


def _first(done: torch.futures.Future[list[Tensor]]) -> Tensor:
    return done.value()[0]


class SwitchedHook:
    """A hook that averages each bucket while ``exchange`` is true, and hands it back untouched otherwise.

    One replica with one hook serves both kinds of step, so that nothing else differs between them.
    """

    def __init__(self, average: Average = average_over_ranks) -> None:
        self.average = average
        self.exchange = True

    def hook(self, state: object, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        """A future of the bucket's gradients, to be registered by ``register_comm_hook``."""
        if self.exchange:
            return self.average(bucket.buffer())
        unchanged: torch.futures.Future[Tensor] = torch.futures.Future()
        unchanged.set_result(bucket.buffer())
        return unchanged
