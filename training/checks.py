"""Is what the exchange computes right? Each check is collective, and tells all ranks the same fault.

An empty text stands for no fault.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray

from microbench.device import CPU
from microbench.dtypes import DTYPES
from microbench.job import lowest_fault

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

Arrays = Sequence[NDArray[np.float32]]

TOLERANCE = 1e-5
"""Of a tensor's largest gradient: far above the rounding of a float32 sum, far below a missing rank."""


def allreduce_fault(comm: Intracomm, counts: Sequence[int], device: str = CPU) -> str:
    """Allreduce of small integers in float32 by torch's group, ``counts`` elements each, compared bit by bit."""
    for count in counts:
        tensor = torch.from_numpy(np.resize(_period(comm.Get_rank()), count).astype(np.float32)).to(device)
        dist.all_reduce(tensor)
        expected = np.resize(sum(_period(rank) for rank in range(comm.Get_size())), count)
        wrong = np.flatnonzero(tensor.cpu().numpy() != expected)
        fault = f"{wrong.size} of {count} elements, the first at {wrong[0]}" if wrong.size else ""
        if text := lowest_fault(comm, fault):
            return f"{dist.get_backend()} allreduce of {count} float32 is wrong on {text}"
    return ""


def _period(rank: int) -> NDArray[np.int64]:
    """What a rank's data repeats: integers below 251, whose sums over 2**16 ranks are exact in float32."""
    return (np.arange(251, dtype=np.int64) * 7 + rank * 13) % 251


def tolerance(dtype: str, ranks: int) -> float:
    """What is allowed of a tensor's largest gradient: for bfloat16, a rounding of each rank's share and of each sum."""
    return TOLERANCE if dtype == "float32" else 2 * ranks * DTYPES[dtype].roundoff


def means(comm: Intracomm, local: Arrays) -> list[NDArray[np.float32]]:
    """The mean of all ranks' ``local`` arrays, added by MPI."""
    found = []
    for mine in local:
        mean = np.empty_like(mine)
        comm.Allreduce(mine, mean)
        mean /= comm.Get_size()
        found.append(mean)
    return found


def mean_fault(
    comm: Intracomm, local: Arrays, got: Arrays, expected: Arrays | None = None, allowed_share: float = TOLERANCE
) -> str:
    """Whether the gradients ``got`` are the mean of all ranks' ``local`` ones; MPI adds them beside the exchange.

    ``expected`` is that mean where it is known. What is allowed goes with the larger of a tensor's mean and own
    gradient, since ranks may cancel out.
    """
    fault = ""
    wanted = means(comm, local) if expected is None else expected
    for i, (mine, averaged, mean) in enumerate(zip(local, got, wanted, strict=True)):
        error, allowed = _peak(averaged - mean), allowed_share * max(_peak(mean), _peak(mine))
        if not error <= allowed and not fault:
            fault = f"tensor {i} is off by {error:.3g}, allowed {allowed:.3g}"
    text = lowest_fault(comm, fault)
    return f"gradients are not the mean of the ranks' own on {text}" if text else ""


def _peak(values: NDArray[np.float32]) -> float:
    return float(np.max(np.abs(values)))


def agreement_fault(comm: Intracomm, gradients: Arrays) -> str:
    """Whether all ranks hold the same gradients, byte by byte."""
    digest = hashlib.sha256()
    for gradient in gradients:
        digest.update(np.ascontiguousarray(gradient).data)
    digests = comm.allgather(digest.hexdigest())
    others = [rank for rank, other in enumerate(digests) if other != digests[0]]
    return f"gradients of rank {others[0]} differ from those of rank 0 after the exchange" if others else ""
