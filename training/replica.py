"""One rank's copy of the model, with the data it trains on and the one step that is timed."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from microbench.device import CPU
from training.data import Loader
from training.exchange.modes import bucket_cap_mb
from training.exchange.ways import Exchange
from training.hooks import SwitchedHook
from training.models.layers import loss as loss_of
from training.steps import Step

LEARNING_RATE = 1e-3  # small: replicas that no longer agree must not diverge to infinity either
MOMENTUM = 0.9

Gradients = list[NDArray[np.float32]]
Batch = tuple[Tensor, Tensor]


class Wing:
    """DDP around the one network, with buckets that a cap closes; wings that a step does not use do nothing in it."""

    def __init__(self, network: nn.Module, cap_bytes: int, group: Any) -> None:
        self.hook = SwitchedHook()
        self.ddp = _data_parallel(network, bucket_cap_mb(cap_bytes), group)
        self.ddp.register_comm_hook(None, self.hook.hook)

    def bucket_bytes(self) -> list[int]:
        """Sizes of the buckets in the order of their exchange, as DDP rebuilt them after the first step."""
        data = self.ddp._get_ddp_logging_data()  # type: ignore[no-untyped-call]  # no annotations in torch
        return [int(size) for size in str(data.get("rebuilt_bucket_sizes", "")).split(",") if size.strip()]


class Replica:
    """A data-parallel replica; weights come from ``seed``, dropout from ``seed + rank``.

    ``caps`` are the sizes at which buckets are closed, each in a wing of its own. ``group`` is the process group of
    DDP's own messages, None: the default one. Only one thing departs from DDP's defaults: buffers are not broadcast,
    which would add communication to every forward pass, exchanged or not. On a
    CUDA ``device`` it is not verified on hardware.
    """

    def __init__(
        self,
        network: nn.Module,
        loader: Loader,
        seed: int,
        rank: int,
        caps: Sequence[int],
        group: Any = None,
        dtype: str = "float32",
        device: str = CPU,
    ) -> None:
        self._dtype: torch.dtype = getattr(torch, dtype)
        self._device = device
        self.network = network.to(device, self._dtype)
        self.wings = {cap: Wing(self.network, cap, group) for cap in caps}
        self._optimizer = torch.optim.SGD(self.network.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
        self._loader, self._seed = loader, seed + rank
        self.load()
        self._checked = self._next
        self.loss = 0.0
        torch.manual_seed(self._seed)  # dropout draws from torch's own generator

    @property
    def dropout(self) -> float:
        """The share of values that its layers of dropout set to zero; 0 where it has none."""
        return max((m.p for m in self.network.modules() if isinstance(m, nn.Dropout)), default=0.0)

    @property
    def parameter_bytes(self) -> list[int]:
        """The bytes of every gradient."""
        return [p.nbytes for p in self.network.parameters()]

    @property
    def elements(self) -> int:
        """How many numbers all gradients have."""
        return sum(p.numel() for p in self.network.parameters())

    @property
    def waited_s(self) -> float:
        """How long the images loaded last were waited for."""
        return self._data_ns * 1e-9

    def load(self) -> None:
        """Take the images of the next step, and note how long that took: nobody waits for them within the step."""
        start = time.perf_counter_ns()
        self._next = self._batch(self._loader)
        self._data_ns = time.perf_counter_ns() - start

    def step(self, exchange: Exchange | None, cap: int) -> Step:
        """Forward, backward and optimizer, timed, of the images loaded last; without ``exchange`` gradients stay local.

        The time of loading them is beside the step's, not in it.
        """
        wing, data = self.wings[cap], self._data_ns
        wing.hook.clear(exchange)
        cpu, start = time.process_time_ns(), self._now()
        loss = self._forward(wing.ddp, self._next)
        forward = self._now()
        loss.backward()  # type: ignore[no-untyped-call]  # no annotations in torch
        backward = self._now()
        self._optimizer.step()
        end = self._now()
        return Step.of(
            loss.item(), step=end - start, data=data, forward=forward - start, backward=backward - forward,
            optimizer=end - backward, compute=wing.hook.ready_ns[-1] - forward, cpu=time.process_time_ns() - cpu,
        )  # fmt: skip

    def ready_ns(self, step: Step, cap: int) -> list[int]:
        """When each bucket of the last step was ready, after the step began."""
        ready = self.wings[cap].hook.ready_ns
        return [ns - ready[-1] + step["forward"] + step["compute"] for ns in ready]

    def backward_began_ns(self, step: Step, cap: int) -> int:
        """When the backward pass of the last step began, by ``perf_counter``."""
        return self.wings[cap].hook.ready_ns[-1] - step["compute"]

    def alone(self, loader: Loader) -> Step:
        """The same without DDP, of images that ``loader`` has: they too are there before it begins."""
        batch = self._batch(loader)
        start = self._now()
        loss = self._forward(self.network, batch)
        loss.backward()  # type: ignore[no-untyped-call]  # no annotations in torch
        self._optimizer.step()
        return Step.of(loss.item(), step=self._now() - start)

    @contextmanager
    def watching_parameters(self) -> Iterator[dict[int, int]]:
        """Note when each parameter's gradient is ready, by its number, in ns of ``perf_counter``."""
        seen: dict[int, int] = {}

        def note(number: int) -> Any:
            return lambda _: seen.__setitem__(number, time.perf_counter_ns())

        hooks = [
            p.register_post_accumulate_grad_hook(note(i))  # type: ignore[no-untyped-call]
            for i, p in enumerate(self.network.parameters())
        ]
        try:
            yield seen
        finally:
            for hook in hooks:
                hook.remove()

    def gradients(self, exchange: Exchange | None, cap: int) -> Gradients:
        """Gradients of the present weights, which stay as they are. All calls drop the same values."""
        wing = self.wings[cap]
        wing.hook.clear(exchange)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._seed)
            loss = self._forward(wing.ddp, self._checked)
            loss.backward()  # type: ignore[no-untyped-call]  # no annotations in torch
        self.loss = float(loss.item())
        return self.last_gradients()

    def last_gradients(self) -> Gradients:
        """Gradients that the last backward pass left behind, in float32; the next one makes others."""
        return [p.grad.float().cpu().numpy() for p in self.network.parameters() if p.grad is not None]

    def _forward(self, network: nn.Module, batch: Batch) -> Tensor:
        self._optimizer.zero_grad(set_to_none=True)
        return loss_of(network(batch[0]), batch[1])

    def _batch(self, loader: Loader) -> Batch:
        images, labels = loader.next()
        return images.to(self._device, self._dtype), labels.to(self._device)

    def _now(self) -> int:
        """The time in ns, once the device has done what it was given."""
        if self._device != CPU:
            torch.cuda.synchronize()
        return time.perf_counter_ns()


def _data_parallel(network: nn.Module, cap_mb: float | None, group: Any) -> DistributedDataParallel:
    """A replica whose buffers stay its own in the forward pass; newer versions renamed the argument."""
    given: dict[str, Any] = {"bucket_cap_mb": cap_mb, "process_group": group}
    if "forward_sync_buffers" in inspect.signature(DistributedDataParallel).parameters:
        return DistributedDataParallel(network, forward_sync_buffers=False, **given)
    return DistributedDataParallel(network, broadcast_buffers=False, **given)
