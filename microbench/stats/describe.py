"""From intervals to the metrics of a record, and what samples look like beside their quantiles."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from microbench.record import Better, Metric
from microbench.stats.quantiles import Interval, samples_needed


def metric(interval: Interval, unit: str, better: Better = "lower", q: float = 0.5, batched: int = 1) -> Metric:
    """A metric from an interval; its note says why where there is none.

    A percentile other than the median is n/a altogether without an interval, since it would be little but the maximum,
    and where a sample is the mean of ``batched`` > 1 operations, which says nothing of a single one's tail.
    """
    if batched > 1 and q != 0.5:
        return Metric(None, unit, interval.n, better=better, note=f"batched {batched}: a mean has no tail")
    fewer = f" (as {interval.effective_n})" if interval.effective_n not in (0, interval.n) else ""
    note = "" if interval.low is not None else f"n={interval.n}{fewer} < {samples_needed(q, interval.level)}"
    value = interval.value if interval.low is not None or q == 0.5 else None
    return Metric(value, unit, interval.n, interval.low, interval.high, better, "measured", note)


def geometric_mean(ratios: ArrayLike) -> float:
    """The geometric mean of positive ratios."""
    return float(np.exp(np.mean(np.log(np.asarray(ratios, dtype=np.float64)))))


def tukey_counts(samples: ArrayLike) -> tuple[int, int]:
    """How many samples lie beyond Tukey's mild (1.5 IQR) and severe (3 IQR) fences; none is deleted."""
    x = np.asarray(samples, dtype=np.float64).ravel()
    q1, q3 = np.quantile(x, [0.25, 0.75])
    beyond = [int(np.sum((x < q1 - k * (q3 - q1)) | (x > q3 + k * (q3 - q1)))) for k in (1.5, 3.0)]
    return beyond[0], beyond[1]
