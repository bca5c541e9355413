"""Does a training step fit in memory? Asked before anything of its size is allocated."""

from __future__ import annotations

from collections import Counter

import torch
from torch import Tensor, nn

from microbench.job import Job
from microbench.memory import available_bytes
from training.data.loader import held_bytes
from training.exchange.modes import DPU, MPI
from training.models import Model
from training.models.table import FLOAT32_BYTES
from training.setup import Setup

_PER_PARAMETER = 3  # weights, gradients, momentum
_CHECKED = 2  # times all gradients in float32 for the check: the rank's own, and the mean of all
_PER_LARGEST = 4  # of the tensor in the check: its mean, two arrays on the way to it, and what MPI's allreduce takes
_LOADERS = 2  # what all train on, and what rank 0 trains on alone
_SCRATCH = 64 << 20  # what torch's kernels and gloo take with them in the first steps (seen: 20 to 100 MiB)


def needed_bytes(model: Model, setup: Setup, stands_in: bool = False) -> int:
    """Bytes that one rank allocates to train and to check it: of parameters, buckets, images, activations.

    With strong scaling it is what the first rank takes alone, with the batch of all. A rank that ``stands_in`` has
    no model.
    """
    batch = setup.workload.batch
    with torch.device("meta"):
        network = model.build(0, setup.workload.dropout).to(getattr(torch, setup.dtype))
        images = torch.empty(
            batch, 3, setup.workload.image_px, setup.workload.image_px, dtype=getattr(torch, setup.dtype)
        )
    elements = [p.numel() for p in network.parameters()]
    size = images.element_size()
    whole = (0 if stands_in else _PER_PARAMETER) + _buckets(setup)
    copies = _CHECKED + (size != FLOAT32_BYTES)  # and what was exchanged, where that is of another type
    checked = FLOAT32_BYTES * (copies * sum(elements) + _PER_LARGEST * max(elements))
    needed = whole * size * sum(elements) + checked + _SCRATCH
    if stands_in:
        return needed
    loaded = _LOADERS * held_bytes(batch, setup.workload.image_px, workers=0)
    return needed + loaded + images.nbytes + activation_bytes(network, images)


def _buckets(setup: Setup) -> int:
    """How many times all gradients lie in buckets: once for each size of them, and where an exchange has its own."""
    own = {MPI: 1, DPU: 2}  # a schedule's result; what a DPU takes and what it gives
    caps = {mode.cap_bytes for mode in setup.modes}
    extra = (own[mode.primitive] for mode in setup.modes if mode.primitive == DPU or mode.algorithm)
    return len(caps) + sum(extra)


def activation_bytes(network: nn.Module, images: Tensor) -> int:
    """Bytes that the forward pass keeps for the backward pass; on tensors without data it costs nothing."""
    own = {id_of(p) for p in network.parameters()}
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: Tensor) -> Tensor:
        if id_of(tensor) not in own:
            kept[id_of(tensor)] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        network(images)
    return sum(storage.nbytes() for storage in kept.values())


def id_of(tensor: Tensor) -> int:
    """What tells the memory behind a tensor from any other while it is held."""
    return int(tensor.untyped_storage()._cdata)


def shortage(job: Job, model: Model, setup: Setup, need: int | None = None) -> str:
    """Why the ranks of some machine do not fit in its memory, the same on all ranks, or nothing.

    ``need`` is this rank's own where it is not that of a replica. The hosts of a lab cluster are one
    machine.
    """
    machine = "this machine" if job.fabric.lab else job.hosts[job.rank]
    own = needed_bytes(model, setup) if need is None else need
    rows: list[tuple[str, int, int]] = job.comm.allgather((machine, own, available_bytes()))
    needs: Counter[str] = Counter()
    for name, taken, _ in rows:
        needs[name] += taken
    count = Counter(name for name, taken, _ in rows if taken)
    for name, _, available in rows:
        if needs[name] > available:
            return (
                f"{setup.workload.label} needs about {needs[name] / 2**20:.0f} MiB for {count[name]} ranks"
                f" on {name}, where {available / 2**20:.0f} MiB are available"
            )
    return ""
