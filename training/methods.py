"""What a record says of how training was measured."""

from __future__ import annotations

import os
from typing import Any

import psutil
import torch

from microbench.job import Job
from training.cast import Cast
from training.exchange.modes import fusion
from training.exchange.opened import Ways
from training.first import First
from training.replica import LEARNING_RATE, MOMENTUM, Replica

_PEERS = {
    "computes": "computes",
    "replayed": "replayed: the other hosts sleep for the compute's time and hand over gradients of equal size;"
    " only the first host's times are told",
}


def method(cast: Cast, here: Job, replica: Replica | None, first: First, ways: Ways) -> dict[str, Any]:
    """All of it; collective over the hosts, complete on rank 0."""
    rss = max(here.comm.allgather(psutil.Process().memory_info().rss))
    if replica is None:
        return {}
    setup, cap = cast.setup, setup_cap(cast)
    return {
        "sync": "barrier of the hosts before each step, once its images are there; max over ranks of local times",
        "step": "from that barrier on; waiting for images is beside it, in data, and in images_per_s",
        "clock": "perf_counter_ns",
        "order": "rounds: one step without an exchange and one by each, in an order drawn for each round",
        "noop": "same replica, the hook hands buckets back; the ranks' weights then differ, at no cost",
        "noop_fusion": fusion(cap),
        "exposed_includes": "division by the number of ranks",
        "exchanges": {name: way.method() | {"fusion": mode.fusion} for (name, way), mode in
                      zip(ways.by_mode.items(), setup.modes, strict=True)},
        "waiting": cast.waiting.as_dict(),
        "transport": cast.transport,
        "threads": torch.get_num_threads(),
        "interop_threads": torch.get_num_interop_threads(),
        "cpus_allowed": len(os.sched_getaffinity(0)),
        "dtype": setup.dtype,
        "scaling": setup.scaling,
        "batch_per_rank": setup.batch_of(here.size),
        "images": setup.batch_of(here.size) * cast.trainers,
        "peer": _PEERS[setup.peer],
        "parameters": replica.elements,
        "tensors": len(replica.parameter_bytes),
        "parameter_bytes": replica.parameter_bytes,
        "dropout": replica.dropout,
        "bucket_bytes": _bytes(first, cap, replica),
        "fusions": {fusion(each): {"bucket_bytes": _bytes(first, each, replica),
                                   "bucket_tensors": [tensors for _, tensors in rows]}
                    for each, rows in first.buckets.items()},
        "gradient_ready_s": {
            "from": "the start of backward, without an exchange, on rank 0",
            "steps": first.watched,
            "parameters": first.parameters_s,
            "buckets": {fusion(each): times for each, times in first.ready_s.items()},
        },
        "broadcast_buffers": False,
        "first_steps": {mode: len(steps) for mode, steps in first.steps.items()},
        "alone": "rank 0, steps without DDP, half before the rounds and half after; the other hosts sleep",
        "optimizer": f"SGD, learning rate {LEARNING_RATE}, momentum {MOMENTUM}",
        "data": setup.data,
        "augment": setup.augment,
        "seed": here.seed,
        "torch": torch.__version__,
        "rss_bytes": rss,
    }  # fmt: skip


def setup_cap(cast: Cast) -> int:
    """The size at which buckets of steps without an exchange are closed: the first exchange's."""
    return cast.setup.modes[0].cap_bytes


def _bytes(first: First, cap: int, replica: Replica) -> list[int]:
    each = next(replica.network.parameters()).element_size()
    return [count * each for count, _ in first.buckets[cap]]
