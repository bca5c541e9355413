"""The communication hook that hands buckets to an exchange or leaves them alone, by a switch."""

# No postponed annotations: DistributedDataParallel compares the hook's annotations with the types.

import time
from typing import Any

import torch
from torch import Tensor
from torch.distributed import GradBucket  # type: ignore[attr-defined]  # public, but not in torch's __all__

from training.exchange.ways import Exchange


class SwitchedHook:
    """A hook that hands each bucket to ``exchange``, and back untouched where there is none.

    One replica with one hook serves all kinds of steps that have the same buckets, so that nothing else differs between
    them. ``ready_ns`` has the time of each call since it was last cleared, ``sizes`` its bucket's elements and how many
    tensors are in it.
    """

    def __init__(self) -> None:
        self.exchange: Exchange | None = None
        self.ready_ns: list[int] = []
        self.sizes: list[tuple[int, int]] = []

    def clear(self, exchange: Exchange | None) -> None:
        """Before a step with this exchange, or with none."""
        self.exchange = exchange
        self.ready_ns, self.sizes = [], []

    def hook(self, state: object, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        """A future of the bucket's gradients, to be registered by ``register_comm_hook``."""
        self.ready_ns.append(time.perf_counter_ns())
        gradients: Tensor = bucket.buffer()
        self.sizes.append((gradients.numel(), len(bucket.parameters())))
        if self.exchange is not None:
            return self.exchange.start(gradients, bucket.index())
        unchanged: torch.futures.Future[Any] = torch.futures.Future()
        unchanged.set_result(gradients)
        return unchanged
