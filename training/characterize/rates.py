"""From the times of interleaved blocks to rates of hosts and of DPUs, and their ratio. Pure arithmetic.

A block's series is seconds per unit of work, of shape (ranks, blocks). A role's series is the median over its ranks in
each block; its rate is one over the median over blocks. All ranks measure block b before any measures block b+1, so
the ratio's interval draws blocks for both roles alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from microbench.record import Metric
from microbench.stats import RESAMPLES, metric, percentile_ends, quantile

FEWEST_BLOCKS = 4  # for an interval of a ratio
ROLES = ("host", "dpu")
INTERVALS = (
    "rates: exact order statistics of the median over blocks; ratios: percentile bootstrap of the medians,"
    f" {RESAMPLES} resamples of blocks, the same for both roles"
)

Series = NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """What all ranks measured of one kernel: seconds per unit, shape (ranks, blocks); ``missing`` says who did not."""

    unit: str
    seconds: Series
    missing: Mapping[int, str]


def role_series(rows: Rows, ranks: Sequence[int]) -> Series | None:
    """The median over the ranks of a role in each block; None where one of them has nothing."""
    if not ranks or any(rank in rows.missing for rank in ranks):
        return None
    return np.asarray(np.median(rows.seconds[list(ranks)], axis=0))


def metrics(table: Mapping[str, Rows], ranks: Mapping[str, Sequence[int]], seed: int = 0) -> dict[str, Metric]:
    """``host.NAME``, ``dpu.NAME`` and ``ratio.NAME`` (DPU over host) of every kernel; ``ranks`` are those of a role."""
    found: dict[str, Metric] = {}
    for name, rows in table.items():
        series = {role: role_series(rows, ranks[role]) for role in ROLES}
        for role, own in series.items():
            found[f"{role}.{name}"] = _none(rows.unit, _why(rows, ranks[role])) if own is None else rate(own, rows.unit)
        host, dpu = (series[role] for role in ROLES)
        if host is None or dpu is None:
            found[f"ratio.{name}"] = replace(_none("1", _why(rows, [*ranks["host"], *ranks["dpu"]])), kind="derived")
        else:
            found[f"ratio.{name}"] = ratio(dpu, host, seed)
    return found


def rate(seconds: Series, unit: str) -> Metric:
    """Units per second, from the median of seconds per unit."""
    return metric(quantile(seconds).map(1.0, -1), unit, "higher")


def ratio(dpu: Series, host: Series, seed: int = 0) -> Metric:
    """The DPU's rate over the host's, from seconds per unit of the same blocks."""
    value, n = float(np.median(host) / np.median(dpu)), int(host.size)
    if n < FEWEST_BLOCKS:
        note = f"no interval: {n} blocks < {FEWEST_BLOCKS}"
        return Metric(value, "1", n, better="higher", kind="derived", note=note)
    drawn = np.random.default_rng(seed).integers(n, size=(RESAMPLES, n))
    ratios = np.median(host[drawn], axis=1) / np.median(dpu[drawn], axis=1)
    low, high = percentile_ends(ratios)
    return Metric(value, "1", n, low, high, "higher", "derived")


def per_rank(table: Mapping[str, Rows]) -> dict[str, list[float | None]]:
    """Every rank's own rate of every kernel: one over the median over its blocks."""
    return {
        name: [None if rank in rows.missing else float(1 / np.median(own)) for rank, own in enumerate(rows.seconds)]
        for name, rows in table.items()
    }


def _why(rows: Rows, ranks: Sequence[int]) -> str:
    return next((rows.missing[rank] for rank in ranks if rank in rows.missing), "n/a: no rank of this role")


def _none(unit: str, why: str) -> Metric:
    return Metric(None, unit, 0, better="higher", note=why)
