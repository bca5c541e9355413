"""How torch's DistributedDataParallel puts gradients into buckets: its assignment, written anew without torch.

Tensors are taken in the order in which backward makes their gradients. A bucket is closed by the tensor that reaches
its size, so it may hold more; the first has a size of its own (torch's reducer; Li et al., VLDB 2020). A test sets this
beside torch's own function.
"""

from __future__ import annotations

from collections.abc import Sequence

FIRST_BYTES, USUAL_BYTES = 1 << 20, 25 << 20


def limits(cap_bytes: int | None = None) -> tuple[int, ...]:
    """At which sizes buckets are closed: the usual ones, or ``cap_bytes`` for all; the last one holds for the rest."""
    return (FIRST_BYTES, USUAL_BYTES) if cap_bytes is None else (max(1, cap_bytes),)


def assign(tensor_bytes: Sequence[int], closed_at: Sequence[int] = (FIRST_BYTES, USUAL_BYTES)) -> list[list[int]]:
    """Which tensors are in which bucket, by their place in ``tensor_bytes``, which is in the order of gradients.

    ValueError where no size closes a bucket.
    """
    if not closed_at:
        raise ValueError("a bucket needs a size at which it is closed")
    buckets: list[list[int]] = []
    open_now, held = list[int](), 0
    for place, nbytes in enumerate(tensor_bytes):
        open_now.append(place)
        held += nbytes
        if held >= closed_at[min(len(buckets), len(closed_at) - 1)]:
            buckets.append(open_now)
            open_now, held = [], 0
    return [*buckets, open_now] if open_now else buckets


def rebuilt(
    tensor_bytes: Sequence[int], ready_s: Sequence[float], closed_at: Sequence[int]
) -> tuple[list[int], list[float]]:
    """Bytes of each bucket and when its last gradient is ready, of tensors in any order with their own times.

    ValueError where there is not a time for each tensor.
    """
    if len(tensor_bytes) != len(ready_s):
        raise ValueError(f"{len(ready_s)} times given for {len(tensor_bytes)} tensors")
    order = sorted(range(len(ready_s)), key=ready_s.__getitem__)
    buckets = assign([tensor_bytes[i] for i in order], closed_at)
    return ([sum(tensor_bytes[order[i]] for i in bucket) for bucket in buckets],
            [max(ready_s[order[i]] for i in bucket) for bucket in buckets])  # fmt: skip
