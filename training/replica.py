"""One rank's copy of the model, with the data it trains on and the one step that is timed."""

from __future__ import annotations

import inspect
import time
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from training.hooks import Average, SwitchedHook
from training.models import Model
from training.models.layers import loss as loss_of
from training.workload import Workload

LEARNING_RATE = 1e-3  # small: replicas that no longer agree must not diverge to infinity either
MOMENTUM = 0.9


@dataclass(frozen=True)
class Step:
    """How long a step took on this rank, and the loss it began from."""

    ns: int
    loss: float


def shard(model: Model, workload: Workload, seed: int) -> tuple[Tensor, Tensor]:
    """The images (n, 3, h, w) and labels (n) of a rank, drawn from ``seed``."""
    random = torch.Generator().manual_seed(seed)
    images = torch.randn((workload.batch, 3, workload.image_px, workload.image_px), generator=random)
    return images, torch.randint(model.classes, (workload.batch,), generator=random)


class Replica:
    """A data-parallel replica; weights come from ``seed``, images, labels and dropout from ``seed + rank``.

    The default process group must exist. Only one thing departs from DDP's defaults: buffers
    are not broadcast, which would add communication to every forward pass, exchanged or not.
    """

    def __init__(self, model: Model, workload: Workload, seed: int, rank: int, average: Average) -> None:
        self._hook = SwitchedHook(average)
        self._ddp = _data_parallel(model.build(seed, workload.dropout))
        self._ddp.register_comm_hook(None, self._hook.hook)
        self._optimizer = torch.optim.SGD(self._ddp.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
        self._seed = seed + rank
        self._images, self._labels = shard(model, workload, self._seed)
        torch.manual_seed(self._seed)  # dropout draws from torch's own generator

    @property
    def dropout(self) -> float:
        """The share of values that its layers of dropout set to zero; 0 where it has none."""
        return max((m.p for m in self._ddp.modules() if isinstance(m, nn.Dropout)), default=0.0)

    @property
    def parameters(self) -> tuple[int, int]:
        """How many tensors, and how many elements in all of them."""
        sizes = [p.numel() for p in self._ddp.parameters()]
        return len(sizes), sum(sizes)

    def step(self, exchange: bool) -> Step:
        """Forward, backward and optimizer, timed; gradients are exchanged or kept local."""
        self._hook.exchange = exchange
        start = time.perf_counter_ns()
        loss = self._backward()
        self._optimizer.step()
        return Step(time.perf_counter_ns() - start, loss.item())

    def gradients(self, exchange: bool) -> list[NDArray[np.float32]]:
        """Gradients of the present weights, which stay as they are; copies. All calls drop the same values."""
        self._hook.exchange = exchange
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._seed)
            self._backward()
        return [gradient.copy() for gradient in self.last_gradients()]

    def last_gradients(self) -> list[NDArray[np.float32]]:
        """Gradients that the last backward pass left behind; not copies."""
        return [p.grad.numpy() for p in self._ddp.parameters() if p.grad is not None]

    def bucket_bytes(self) -> list[int]:
        """Sizes of the buckets in the order of their exchange, as DDP rebuilt them after the first step."""
        data = self._ddp._get_ddp_logging_data()  # type: ignore[no-untyped-call]  # no annotations in torch
        return [int(size) for size in str(data.get("rebuilt_bucket_sizes", "")).split(",") if size.strip()]

    def _backward(self) -> Tensor:
        self._optimizer.zero_grad()
        loss = loss_of(self._ddp(self._images), self._labels)
        loss.backward()  # type: ignore[no-untyped-call]  # no annotations in torch
        return loss


def _data_parallel(network: nn.Module) -> DistributedDataParallel:
    """A replica whose buffers stay its own in the forward pass; newer versions renamed the argument."""
    if "forward_sync_buffers" in inspect.signature(DistributedDataParallel).parameters:
        return DistributedDataParallel(network, forward_sync_buffers=False)
    return DistributedDataParallel(network, broadcast_buffers=False)
