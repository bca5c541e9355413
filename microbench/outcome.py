"""From samples to what a record says: metrics, method, and the samples themselves. On rank 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from microbench.case import Outcome
from microbench.measure import Measured
from microbench.record import Metric
from microbench.stats import Interval, last_arrivals, metric, persistent, quantile, tukey_counts

_NS = 1e-9
SKEWS = ("makespan", "last_exit", "entry_skew")


def median(got: Measured) -> Interval:
    """The median of the headline in s, with the interval that holds over all looks at the samples."""
    return quantile(got.series * _NS, level=got.level, series=True)


def time_metrics(got: Measured) -> dict[str, Metric]:
    """Median and 99th percentile of the headline in s; what was batched has no tail."""
    p99 = quantile(got.series * _NS, 0.99, series=True)
    return {"time": metric(median(got), "s"), "time_p99": metric(p99, "s", q=0.99, batched=got.batched)}


def rate_metric(payload_bytes: float, got: Measured, why_none: str) -> Metric:
    """Bytes/s of a payload moved in the median time; n/a with the reason where there is no payload."""
    if not payload_bytes:
        return Metric(None, "bytes/s", got.series.size, better="higher", kind="derived", note=why_none)
    return metric(median(got).map(payload_bytes, -1), "bytes/s", "higher")


def fastest(got: Measured) -> Metric:
    """Per iteration the shortest local duration of any rank, in s, in the median: how little some of them waited."""
    shortest = got.times[:, got.valid].min(axis=0) * _NS / got.batched
    return metric(quantile(shortest, series=True), "s", "none")


def skew_metrics(got: Measured) -> dict[str, Metric]:
    """What takes one clock for all ranks: make-span, last exit, entry skew, in s, or why there is none of them.

    Hunold and Carpen-Amarie (TPDS 2016): from the first start to the last end; from the last start to the last end.
    """
    found: dict[str, Metric] = {}
    for name in SKEWS:
        if got.timeline is None or got.why_no_timeline:
            why = got.why_no_timeline or "n/a: no clock for all ranks"
            found[name] = Metric(None, "s", got.series.size, better="none", kind="derived", note=why)
            continue
        spans = getattr(got.timeline, f"{name}_ns")[got.valid] * _NS / (1 if name == "entry_skew" else got.batched)
        found[name] = metric(quantile(spans, series=True), "s", "none")
    return found


def arrivals(got: Measured) -> dict[str, Any]:
    """How often each rank was the last to start, and which are so more often than chance would have it."""
    if got.timeline is None or got.why_no_timeline or len(got.starts) < 2:
        return {}
    starts = got.starts[:, got.valid]
    return {"last_arrivals": last_arrivals(starts).tolist(), "late_ranks": list(persistent(starts))}


def outcome(
    got: Measured,
    metrics: Mapping[str, Metric],
    validation: Mapping[str, Any],
    reported_ranks: tuple[int, ...],
    **more: Any,
) -> Outcome:
    """What rank 0 reports of a measured program: its samples, and how many lie far out.

    Samples are local durations of every rank, when each began (ns after the first of all), and the warm-up.
    """
    mild, severe = tukey_counts(got.series)
    samples: dict[str, Any] = {"time": got.times, "warmup": got.warmup}
    if got.timeline is not None:
        samples["start"] = got.starts - got.starts.min()
    if not got.valid.all():
        samples["valid"] = got.valid.astype("i8")[None, :]
    return Outcome(
        metrics=metrics,
        method={**got.method, **arrivals(got), "tukey_mild": mild, "tukey_severe": severe},
        validation=validation,
        samples=samples,
        reported_ranks=reported_ranks,
        **more,
    )
