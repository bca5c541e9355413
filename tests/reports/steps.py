"""Planted records of training: steps by several exchanges, interleaved, as the benchmark records them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microbench.record import Metric, Record
from tests.reports.folder import Folder, metric

WORKLOAD = "resnet50 64px batch 16"
BUCKETS = (8_196_000, 31_502_336, 26_255_360, 26_550_272, 9_724_160)
USUAL = "25 MiB (the first 1 MiB)"
IMAGES, NOOP_S, ALONE_S = 32, 0.850, 0.840
FEW = "n=12 < 36"


def by(exchange: str, step_s: float, noop_s: float = NOOP_S, exact: bool = True) -> dict[str, Metric]:
    """The metrics of an exchange whose step takes so long."""
    half = 0.02 if exact else None
    parts = {"data": 0.001, "forward": 0.25, "backward": step_s - 0.29, "optimizer": 0.04}
    found = {
        "step": metric(step_s, n=12, half=half), "step_p90": Metric(None, "s", 12, note=FEW),
        "step_p99": Metric(None, "s", 12, note="n=12 < 368"),
        "images_per_s": metric(IMAGES / step_s, "images/s", 12, half, better="higher", kind="derived"),
        **{name: metric(value, n=12, half=half) for name, value in parts.items()},
        "exposed": metric(step_s - noop_s, n=12, half=half),
        "exposed_fraction": metric(1 - noop_s / step_s, "1", 12, half),
        "dilation": metric(0.06, "1", 12, half), "cpu_per_byte": metric(1.2e-9, "s/byte", 12, half),
        "imbalance": metric(0.03, "1", 12, half),
        "efficiency": metric(ALONE_S / step_s, "1", 12, half, better="higher"),
    }  # fmt: skip
    return {f"{exchange}.{name}": value for name, value in found.items()}


def method(exchanges: Mapping[str, float], **more: Any) -> dict[str, Any]:
    """What such a record says of how it was measured."""
    said = {"gloo": ("torch.distributed.all_reduce", "gloo's threads"),
            "mpi": ("MPI_Iallreduce, in place, posted in the hook", "a thread of ours"),
            "dpu": ("the offload engine's allreduce", "a thread of ours")}  # fmt: skip
    ways = {}
    for mode in exchanges:
        call, completes = said[mode.partition("+")[0].partition("-")[0]]
        fusion = "a bucket per tensor" if mode.endswith("unfused") else USUAL
        ways[mode] = {"call": call, "completes": completes, "fusion": fusion}
    fusions = {USUAL: {"bucket_bytes": BUCKETS}, "a bucket per tensor": {"bucket_bytes": [634_708] * 161}}
    told = {"sync": "barrier", "stop_reason": "time", "threads": 1, "scaling": "weak", "peer": "computes",
            "bucket_bytes": BUCKETS, "parameters": 25_557_032, "exchanges": ways, "fusions": fusions}  # fmt: skip
    return told | more


def add(f: Folder, fabric: str, exchanges: Mapping[str, float], noop_s: float = NOOP_S, **more: Any) -> Record:
    """Add a case whose exchanges take so long; the first has plain names too."""
    metrics = {"step_noop": metric(noop_s, n=12), "noop.data": metric(0.001, n=12),
               "noop.forward": metric(0.25, n=12), "noop.backward": metric(noop_s - 0.29, n=12),
               "noop.optimizer": metric(0.04, n=12), "step_alone": metric(ALONE_S, n=4)}  # fmt: skip
    for place, (mode, step_s) in enumerate(exchanges.items()):
        own = by(mode, step_s, noop_s)
        if place == 0:
            plain = ("step", "exposed", "exposed_fraction", "images_per_s", "efficiency")
            metrics = {name: own[f"{mode}.{name}"] for name in plain} | metrics
        metrics |= own
    others = f", {'/'.join(exchanges)}" if list(exchanges) != ["gloo"] else ""
    given = {"backend": "gloo", "algorithm": "ddp", "workload": WORKLOAD + others, "method": method(exchanges)} | more
    return f.add("train", fabric, metrics=metrics, **given)
