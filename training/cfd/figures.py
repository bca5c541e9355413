"""From samples to metrics: pure arithmetic on times in s.

With the medians of a mode's step tm, of the same step without messages ts, of rank 0's share alone ta (of a cells) and
of the whole grid on one rank t1, for c cells on p ranks::

    cells/s             = c / tm, and per core that over p
    exposed             = tm - ts          packing, messages, the residual's allreduce, and waiting for others
    exposed fraction    = exposed / tm     the share of communication
    speedup             = t1 / tm          strong scaling; its efficiency is that over p
    weak efficiency     = (c / p / tm) / (a / ta)

Every derived value follows from the medians that are reported. Its interval is a percentile bootstrap over rounds, the
same drawn for all parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collectives.overlap.figures import RESAMPLES, resampled
from microbench.record import Better, Metric
from microbench.stats import metric, percentile_ends, quantile
from training.cfd.options import MODES
from training.cfd.schedule import ALONE, ONE, SILENT

INTERVALS = (
    "measured: exact order statistics of the median; derived: percentile bootstrap of the medians,"
    f" {RESAMPLES} resamples of rounds, the same for all parts"
)
FEWEST_ROUNDS = 4  # for an interval of what is derived

Samples = Mapping[str, NDArray[np.float64]]
_UNITS = {"cells_per_s": "cells/s", "cells_per_s_core": "cells/s", "exposed": "s"}
_LOWER = ("exposed", "exposed_fraction")


@dataclass(frozen=True)
class Size:
    """How many cells there are, how many of them are rank 0's, and how many ranks."""

    cells: int
    own_cells: int
    ranks: int


def derive(t: Mapping[str, Any], size: Size) -> dict[str, Any]:
    """Everything that follows from the medians ``t`` of all parts; arrays do as well as numbers."""
    found: dict[str, Any] = {}
    for part, time in t.items():
        cells, cores = (size.own_cells, 1) if part == ALONE else (size.cells, 1 if part == ONE else size.ranks)
        if part != SILENT:
            found[f"{part}.cells_per_s"] = cells / time
            found[f"{part}.cells_per_s_core"] = cells / cores / time
        if part not in MODES:
            continue
        if SILENT in t:
            found[f"{part}.exposed"] = time - t[SILENT]
            found[f"{part}.exposed_fraction"] = 1 - t[SILENT] / time
        if ONE in t:
            found[f"{part}.speedup"] = t[ONE] / time
            found[f"{part}.efficiency"] = t[ONE] / time / size.ranks
        if ALONE in t:
            found[f"{part}.weak_efficiency"] = size.cells / size.ranks / time / (size.own_cells / t[ALONE])
    return found


def metrics(samples: Samples, size: Size, seed: int = 0) -> dict[str, Metric]:
    """The metrics of a case from the seconds of a step in each round, by part, of shape (rounds,)."""
    t = {part: float(np.median(times)) for part, times in samples.items()}
    found = {f"{part}.step": metric(quantile(times), "s") for part, times in samples.items()}
    n = min(times.size for times in samples.values())
    drawn = resampled({part: times[:, None] for part, times in samples.items()}, seed) if n >= FEWEST_ROUNDS else {}
    spread = derive(drawn, size)
    for name, value in derive(t, size).items():
        found[name] = _derived(name.partition(".")[2], float(value), spread.get(name), n)
    return {name: found[name] for part in samples for name in found if name.startswith(f"{part}.")}


def _derived(what: str, value: float, spread: NDArray[np.float64] | None, n: int) -> Metric:
    unit = _UNITS.get(what, "1")
    better: Better = "lower" if what in _LOWER else "higher"
    if spread is None:
        return Metric(value, unit, n, better=better, kind="derived", note=f"no interval: {n} rounds < {FEWEST_ROUNDS}")
    low, high = percentile_ends(spread)
    return Metric(value, unit, n, low, high, better, "derived")
