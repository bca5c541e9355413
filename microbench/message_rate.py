"""The message rate of several pairs at once: windows of 64 messages from the lower half of the ranks to the upper.

All ranks start a window together, and its time is the longest local duration of any rank: rates of pairs are never
added, since pairs need not run at the same time. Where the ranks' clocks are known well enough, the total is also
told over the make-span, from the first start to the last end, in which late starts count too.
"""

from __future__ import annotations

from microbench.case import Case, Outcome
from microbench.dtypes import DTYPES
from microbench.job import Job
from microbench.measure import Measured, measure
from microbench.outcome import median, outcome, rate_metric
from microbench.pt2pt import WINDOW, Pair
from microbench.record import Metric
from microbench.registry import Benchmark
from microbench.stats import metric, quantile
from microbench.sync import choose

PRECISION = 0.025
UNIT = "messages/s"


def unpaired(ranks: int) -> str:
    """Why so many ranks make no pairs, or nothing."""
    return f"half of the ranks send to the other half: {ranks} is an odd number of ranks" if ranks % 2 else ""


def run(job: Job, case: Case) -> Outcome:
    """Check the data, and measure windows of all pairs; skipped where a rank would have no partner."""
    if reason := unpaired(job.size):
        return Outcome("skipped", reason)
    half = job.size // 2
    pair = Pair(job, case, (job.rank + half) % job.size)
    body = pair.window()
    validation = pair.verify(body, tuple(range(half, job.size)))
    got = measure(job, case, body, choose(job, case.sync), clocks=job.clocks)
    if job.rank:
        return Outcome()
    messages = half * WINDOW
    metrics = rates(got, messages) | {
        "bandwidth": rate_metric(messages * pair.nbytes, got, "0 B carry no bandwidth"),
        "time": metric(median(got), "s"),
    }
    got.method["window"], got.method["pairs"] = WINDOW, half
    return outcome(got, metrics, validation, tuple(range(job.size)), direction="uni")


def rates(got: Measured, messages: int) -> dict[str, Metric]:
    """Messages/s of all pairs together: over the slowest rank's time, and over the make-span or why there is none."""
    found = {"message_rate": metric(median(got).map(messages, -1), UNIT, "higher")}
    if got.timeline is None or got.why_no_timeline:
        why = got.why_no_timeline or "n/a: no clock for all ranks"
        found["message_rate_makespan"] = Metric(None, UNIT, got.series.size, better="higher", kind="derived", note=why)
        return found
    spans = got.timeline.makespan_ns[got.valid] * 1e-9 / got.batched
    found["message_rate_makespan"] = metric(quantile(spans, series=True).map(messages, -1), UNIT, "higher")
    return found


BENCHMARKS = (
    Benchmark(
        "message_rate", "64-deep windows of all pairs at once: half of the ranks send to the other half", run, 2,
        dtypes=tuple(DTYPES), precision=PRECISION, synchronised=True, pairs=True,
    ),
)  # fmt: skip
