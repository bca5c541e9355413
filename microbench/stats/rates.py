"""Rates of several streams together."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def aggregate_rate(nbytes: ArrayLike, starts: ArrayLike, ends: ArrayLike) -> float:
    """Total bytes / (last end - first start) of streams that moved ``nbytes`` each, per unit of the times.

    All three have an entry per stream, times on one clock: in s they give bytes/s. A sum of each stream's own rate
    would count streams together that ran one after the other. Whole numbers, such as ns, lose nothing. Raises
    ValueError where there are no streams, where counts differ, or where nothing takes time.
    """
    moved, first, last = np.asarray(nbytes), np.asarray(starts), np.asarray(ends)
    if not moved.size or not moved.shape == first.shape == last.shape:
        raise ValueError(f"an entry per stream is needed: {moved.shape} bytes, {first.shape} starts, {last.shape} ends")
    span = float(last.max() - first.min())
    if span <= 0:
        raise ValueError("streams do not end after they start")
    return float(moved.sum()) / span
