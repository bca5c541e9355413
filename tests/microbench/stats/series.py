"""Series with known dependence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def ar1(rng: np.random.Generator, n: int, r: float) -> NDArray[np.float64]:
    """Standard normal samples, each with correlation ``r`` to the one before."""
    x = np.empty(n)
    x[0] = rng.normal()
    for i in range(1, n):
        x[i] = r * x[i - 1] + np.sqrt(1 - r * r) * rng.normal()
    return x
