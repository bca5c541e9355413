"""How each collective is called in torch.distributed, on one rank's operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from collectives.operands import ROOT, Operands, shares

Call = Callable[[], Any]


@dataclass(frozen=True)
class Tensors:
    """Both buffers of a rank as tensors of its type, in one piece each: gloo is silently wrong where they are not."""

    send: Tensor
    receive: Tensor

    def __post_init__(self) -> None:
        if not (self.send.is_contiguous() and self.receive.is_contiguous()):
            raise ValueError("a buffer is not contiguous: torch.distributed would work on other elements")

    @classmethod
    def of(cls, send: Tensor, receive: Tensor, kind: str) -> Tensors:
        """Tensors of bytes as those of a type of ours."""
        dtype = getattr(torch, kind)
        return cls(send.view(dtype), receive.view(dtype))


@dataclass(frozen=True)
class Operation:
    """A collective's name in torch.distributed, and how it is bound to operands.

    ``in_place`` tells that it has no other form: the result replaces the input, in the receive buffer. ``even`` tells
    that the ranks must divide the count.
    """

    name: str
    bind: Callable[[Operands, Tensors], Call]
    in_place: bool = False
    even: bool = False


def _either(name: str, before: str) -> str:
    """A function's name, or the one it had before torch 2.13."""
    return name if hasattr(dist, name) else before


ALLGATHER = _either("all_gather_single", "all_gather_into_tensor")
REDUCE_SCATTER = _either("reduce_scatter_single", "reduce_scatter_tensor")


def _allreduce(_o: Operands, t: Tensors) -> Call:
    return partial(dist.all_reduce, t.receive)


def _broadcast(o: Operands, t: Tensors) -> Call:
    return partial(dist.broadcast, t.send if o.is_root else t.receive, src=ROOT)


def _allgather(_o: Operands, t: Tensors) -> Call:
    return partial(getattr(dist, ALLGATHER), t.receive, t.send)


def _reduce_scatter(_o: Operands, t: Tensors) -> Call:
    return partial(getattr(dist, REDUCE_SCATTER), t.receive, t.send)


def _alltoall(o: Operands, t: Tensors) -> Call:
    """With counts where the ranks do not divide the count, the same as MPI is given."""
    if o.divides:
        return partial(dist.all_to_all_single, t.receive, t.send)
    blocks = shares(o.count, o.ranks, o.rank).tolist()
    return partial(dist.all_to_all_single, t.receive, t.send, blocks, blocks)


def _barrier(_o: Operands, _t: Tensors) -> Call:
    return dist.barrier


OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {
        "allreduce": Operation("all_reduce", _allreduce, in_place=True),
        "broadcast": Operation("broadcast", _broadcast),
        "allgather": Operation(ALLGATHER, _allgather),
        "reduce_scatter": Operation(REDUCE_SCATTER, _reduce_scatter, even=True),
        "alltoall": Operation("all_to_all_single", _alltoall),
        "barrier": Operation("barrier", _barrier),
    }
)
