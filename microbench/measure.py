"""Running a program long enough: warm-up, iterations that fit the budget, samples of every rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from microbench.case import Case, Outcome
from microbench.engine import Program, durations
from microbench.record import Metric
from microbench.stats import effective_n, metric, quantile, tukey_counts

if TYPE_CHECKING:
    from microbench.job import Job

_BLOCKS = 8
_LONGEST_WARMUP = 100
_FEWEST = 2
_MOST_BUDGETS = 20  # so that a plan's few seconds do not become hours


@dataclass(frozen=True)
class Measured:
    """Durations in ns, shape (ranks, iterations) on rank 0 and (0, iterations) elsewhere, and how they came about."""

    times: NDArray[np.int64]
    warmup: NDArray[np.int64]
    method: dict[str, Any]


def measure(job: Job, case: Case, program: Program, sync: str) -> Measured:
    """Warm up, then run blocks until the agreed iterations are done or the time is up.

    All ranks leave after the same block: rank 0 decides. ``sync`` names how the program's ranks start together.
    """
    warmup = _warm_up(job, case, program)
    slowest_ns = job.max(float(np.median(warmup[-max(1, len(warmup) // 2) :])))
    planned = int(job.decide(iterations(case, slowest_ns)))
    blocks, spent_ns, done = [], 0.0, 0
    reason = "count" if planned >= case.min_iterations else "too slow for the fewest iterations"
    while done < planned:
        n = min(-(-planned // _BLOCKS), planned - done)
        stamps = program.run(n)
        blocks.append(durations(stamps))
        done += n
        spent_ns += float(stamps[-1, -1] - stamps[0, 0])
        late = spent_ns > 2e9 * case.budget_s and done >= case.min_iterations
        if done < planned and job.decide(late):
            reason = "time"
            break
    method = {
        "sync": sync,
        "warmup_iterations": len(warmup),
        "iterations": done,
        "stop_reason": reason if done < case.max_iterations else "max_iterations",
        "clock": "CLOCK_MONOTONIC",
        "buffers": "send and receive apart, page-aligned, written before",
        "pages": job.pages,
        "batched": 1,
    }
    return Measured(job.gather(np.concatenate(blocks)), job.gather(warmup), method)


def _warm_up(job: Job, case: Case, program: Program) -> NDArray[np.int64]:
    first = durations(program.run(2))
    each_ns = job.max(float(first[-1])) + 1.0
    more = int(job.decide(min(_LONGEST_WARMUP, max(1, int(0.1e9 * case.budget_s / each_ns)))))
    return np.concatenate([first, durations(program.run(more))])


def iterations(case: Case, each_ns: float) -> int:
    """As many as fit the budget, at least the case's fewest; of what is far too slow for those, a few."""
    fit = case.budget_s * 1e9 / max(each_ns, 1.0)
    planned = max(case.min_iterations, min(case.max_iterations, int(fit)))
    return min(planned, max(_FEWEST, int(_MOST_BUDGETS * fit)))


def time_metrics(times_ns: NDArray[np.float64]) -> dict[str, Metric]:
    """Median and 99th percentile of durations in ns, in the order of time, in s."""
    times_s = times_ns * 1e-9
    p99 = quantile(times_s, 0.99, series=True)
    return {"time": metric(quantile(times_s, series=True), "s"), "time_p99": metric(p99, "s", q=0.99)}


def rate_metric(payload_bytes: float, times_ns: NDArray[np.float64], why_none: str) -> Metric:
    """Bytes/s of a payload moved in the median time; n/a with the reason where there is no payload."""
    if not payload_bytes:
        return Metric(None, "bytes/s", times_ns.size, better="higher", kind="derived", note=why_none)
    return metric(quantile(times_ns * 1e-9, series=True).map(payload_bytes, -1), "bytes/s", "higher")


def outcome(
    got: Measured,
    reported_ns: NDArray[np.float64],
    metrics: Mapping[str, Metric],
    validation: Mapping[str, Any],
    reported_ranks: tuple[int, ...],
    **more: Any,
) -> Outcome:
    """What rank 0 reports of a measured program: its samples, and how many lie far out."""
    mild, severe = tukey_counts(reported_ns)
    counts = {"tukey_mild": mild, "tukey_severe": severe, "effective_n": effective_n(reported_ns)}
    return Outcome(
        metrics=metrics,
        method={**got.method, **counts},
        validation=validation,
        samples={"time": got.times, "warmup": got.warmup},
        reported_ranks=reported_ranks,
        **more,
    )
