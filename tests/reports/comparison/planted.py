"""Planted sides of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reports.comparison.sides import Side, of_run
from tests.reports.folder import Folder, metric
from tests.reports.limits.planted import seen

Times = Sequence[float]


def noisy(seed: int, launches: int = 8, scale: float = 1.0, spread: float = 0.005) -> list[float]:
    """Launches of 100 us that differ by ``spread``."""
    return list(100e-6 * scale * (1 + spread * np.random.default_rng(seed).standard_normal(launches)))


def allreduce(times: Times, cases: int = 1, **more: Any) -> Folder:
    """A run of some allreduces, with one launch per time."""
    f = Folder(len(times))
    for case in range(cases):
        for launch, t in enumerate(times, 1):
            f.add("allreduce", "roce0", 8 << case, launch=launch, dtype="float32", metrics={"time": metric(t)}, **more)
    return f


def side(f: Folder, name: str = "run", change: Callable[[Folder], None] | None = None) -> Side:
    if change:
        change(f)
    f.run.setdefault("id", name)
    return of_run(seen(f), name)
