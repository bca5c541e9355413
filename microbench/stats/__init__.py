"""Statistics on plain arrays: no I/O, no MPI."""

from __future__ import annotations

from microbench.stats.arrivals import benjamini_hochberg, binomial_upper_p, last_arrivals, persistent
from microbench.stats.bootstrap import RESAMPLES, percentile_ends, two_level, two_level_ratio
from microbench.stats.compare import (
    COLLECTIVE_MARGIN,
    DIFFERENT_LEVEL,
    FEWEST_LAUNCHES,
    POINT_TO_POINT_MARGIN,
    Decision,
    Verdict,
    a12,
    decide,
    hodges_lehmann,
    mann_whitney_p,
    null_counts,
)
from microbench.stats.dependence import autocorrelation, block_medians, effective_n
from microbench.stats.describe import geometric_mean, metric, tukey_counts
from microbench.stats.quantiles import LEVEL, Interval, binomial_pmf, order_ranks, quantile, samples_needed
from microbench.stats.rates import aggregate_rate
from microbench.stats.stopping import FIRST_LOOK, Rule, look_level, looks, relative_half_width
from microbench.stats.warmup import steady_from

__all__ = [
    "COLLECTIVE_MARGIN",
    "DIFFERENT_LEVEL",
    "FEWEST_LAUNCHES",
    "FIRST_LOOK",
    "LEVEL",
    "POINT_TO_POINT_MARGIN",
    "RESAMPLES",
    "Decision",
    "Interval",
    "Rule",
    "Verdict",
    "a12",
    "aggregate_rate",
    "autocorrelation",
    "benjamini_hochberg",
    "binomial_pmf",
    "binomial_upper_p",
    "block_medians",
    "decide",
    "effective_n",
    "geometric_mean",
    "hodges_lehmann",
    "last_arrivals",
    "look_level",
    "looks",
    "mann_whitney_p",
    "metric",
    "null_counts",
    "order_ranks",
    "percentile_ends",
    "persistent",
    "quantile",
    "relative_half_width",
    "samples_needed",
    "steady_from",
    "tukey_counts",
    "two_level",
    "two_level_ratio",
]
