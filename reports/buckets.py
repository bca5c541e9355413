"""Which message sizes are buckets of a network's gradients, so that a table can say so.

torch's DistributedDataParallel sums gradients bucket by bucket, in the order in which backward makes them: the first
is closed at 1 MiB or more, each other one at 25 MiB or more, and the last holds the rest (``bucket_cap_mb``, its
documentation; Li et al., VLDB 2020). A test sets these bytes beside what torch itself assigns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from reports.units import size

BUCKETS: Mapping[str, tuple[int, ...]] = MappingProxyType({
    "ResNet-50": (8_196_000, 31_502_336, 26_255_360, 26_550_272, 9_724_160),
    "VGG-16": (16_388_000, 67_125_248, 411_058_176, 28_317_696, 28_319_744, 2_221_312),
})  # fmt: skip


def model_of(nbytes: int | None) -> str:
    """The network of whose gradients so many bytes (float32) are a bucket; empty where of none."""
    return next((model for model, buckets in BUCKETS.items() if nbytes in buckets), "")


def note(sizes: Iterable[int | None]) -> str:
    """Which of these sizes are buckets of what, in a sentence; empty where none is."""
    found: dict[str, list[str]] = {}
    for nbytes in sorted({n for n in sizes if n is not None}):
        if model := model_of(nbytes):
            found.setdefault(model, []).append(size(nbytes))
    if not found:
        return ""
    told = "; ".join(f"{', '.join(named)} of {model}" for model, named in found.items())
    return f"Gradient buckets, as torch's DDP exchanges them: {told}."
