"""torch's own traffic between two readings of the counters: its backends are other libraries than MPI."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

from collectives.backends.member import Member
from fabrics.model import Proof
from microbench.device import CPU

if TYPE_CHECKING:
    from microbench.job import Job

PROBE_BYTES = 64 << 20


def prove(job: Member, device: str = CPU) -> Proof:
    """What the counters say of an allreduce of 64 MiB by the group's backend, which MPI's proof says nothing of.

    Any allreduce sends at least 2 (p-1)/p of its data from each rank, and receives as much.
    """
    data = torch.ones(PROBE_BYTES // 4, device=device)

    def traffic() -> None:
        dist.all_reduce(data)
        if data.is_cuda:
            torch.cuda.synchronize()

    least = 2 * (job.size - 1) * PROBE_BYTES // job.size
    return job.prove(traffic, least, least)


def proof_of(job: Job, backend: str, device: str) -> Proof | None:
    """The proof of a backend in this job, made once; None where there is no fabric of ours, or no other rank."""
    if job.size == 1 or not job.fabric.devices:
        return None
    if backend not in job.proofs:
        job.proofs[backend] = prove(job, device)
    return job.proofs[backend]


def use_threads(threads: int) -> None:
    """Set how many threads torch computes with in this process; it accepts the second number only once."""
    torch.set_num_threads(threads)
    if torch.get_num_interop_threads() != threads:
        torch.set_num_interop_threads(threads)
