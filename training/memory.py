"""Does a training step fit in memory? Asked before anything of its size is allocated."""

from __future__ import annotations

from collections import Counter

import torch
from torch import Tensor, nn

from microbench.memory import available_bytes
from training.models import Model
from training.workload import Job, Workload

_PER_PARAMETER = 6  # weights, gradients, momentum, buckets, and two copies of the gradients for the check
_PER_LARGEST = 4  # of the tensor in the check: its mean, two arrays on the way to it, and what MPI's allreduce takes
_SCRATCH = 64 << 20  # what torch's kernels and gloo take with them in the first steps (seen: 20 to 100 MiB)


def needed_bytes(model: Model, workload: Workload) -> int:
    """Bytes that one rank allocates to train and to check it: of parameters, images, activations."""
    with torch.device("meta"):
        network = model.build(0, workload.dropout)
        images = torch.empty(workload.batch, 3, workload.image_px, workload.image_px)
    sizes = [p.nbytes for p in network.parameters()]
    checked = _PER_PARAMETER * sum(sizes) + _PER_LARGEST * max(sizes)
    return checked + images.nbytes + activation_bytes(network, images) + _SCRATCH


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


def shortage(job: Job, model: Model, workload: Workload) -> str:
    """Why the ranks of some machine do not fit in its memory, the same on all ranks, or nothing.

    The hosts of a lab cluster are one machine.
    """
    machine = "this machine" if job.fabric.lab else job.hosts[job.rank]
    need, free = needed_bytes(model, workload), available_bytes()
    rows: list[tuple[str, int]] = job.comm.allgather((machine, free))
    ranks = Counter(name for name, _ in rows)
    for name, available in rows:
        if ranks[name] * need > available:
            return (
                f"{workload.label} needs about {ranks[name] * need / 2**20:.0f} MiB for {ranks[name]} ranks"
                f" on {name}, where {available / 2**20:.0f} MiB are available"
            )
    return ""
