"""Running a program until its median is known well enough: warm-up, looks, samples of every rank.

An iteration is what the ranks do to start together, a stamp, the operation, a stamp. Rank 0 looks at the samples after
30, 45, 68, ... iterations and decides for all whether they are enough; the level of each look is such that all looks
together hold the level of the interval that is printed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from microbench import pacing
from microbench.case import Case, Invalid
from microbench.clocks import ClockModel, Timeline, joined, timeline
from microbench.clocks import why_not as why_no_timeline
from microbench.engine import CallSpec, Program
from microbench.stats import LEVEL, Interval, Rule, autocorrelation, relative_half_width, steady_from
from microbench.sync import Sync, valid

if TYPE_CHECKING:
    from microbench.clocksync import Clocks
    from microbench.job import Job

Times = NDArray[np.int64]
Headline = Callable[[NDArray[np.float64]], NDArray[np.float64]]

_WARM_UP_STEP, _LONGEST_WARM_UP = 20, 300
_AGAIN = 4
_MOSTLY = 0.5  # of the iterations


def slowest(times: NDArray[np.float64]) -> NDArray[np.float64]:
    """The headline of a collective: per iteration the longest local duration, of shape (ranks, n) -> (n,)."""
    return np.asarray(times.max(axis=0))


@dataclass(frozen=True)
class Block:
    """Stamps of iterations in ns, each of shape (ranks, n); complete on rank 0, no ranks elsewhere."""

    starts: Times
    ends: Times
    margins: Times

    @property
    def durations(self) -> Times:
        """Local durations."""
        return self.ends - self.starts


@dataclass(frozen=True)
class Measured:
    """What came of it, complete on rank 0.

    ``times`` are local durations in ns and ``starts`` begins on the clock of rank 0, both of shape (ranks, n);
    ``valid`` tells which iterations began in time on every rank, and ``series`` is the headline of those in ns per
    operation. ``level`` is the level of a look. ``timeline`` is None, and ``why_no_timeline`` the reason, where no
    common clock is known well enough.
    """

    times: Times
    starts: Times
    warmup: Times
    valid: NDArray[np.bool_]
    series: NDArray[np.float64]
    method: dict[str, Any]
    batched: int = 1
    level: float = LEVEL
    timeline: Timeline | None = None
    why_no_timeline: str = ""


class Loop:
    """A program of an operation and what starts it, run in blocks whose stamps rank 0 receives."""

    def __init__(self, job: Job, body: Sequence[CallSpec], sync: Sync, batched: int = 1) -> None:
        self.job, self.body, self.sync, self.batched = job, body, sync, batched
        self.program: Program = job.engine.program(*sync.calls(), "stamp", *(tuple(body) * batched), "stamp")
        self.each_ns = 0.0

    def block(self, n: int) -> Block:
        """Run ``n`` iterations; notes how long one takes, its start included, in the median.

        Raises Invalid on every rank alike where a rank's clock went backwards.
        """
        self.sync.before_block()
        stamps = self.program.run(n)
        back_ns = self.job.max(-float(np.diff(stamps[:, -2:].ravel()).min()))
        if back_ns > 0:
            raise Invalid(f"a clock went backwards by {back_ns:.0f} ns: no time of it can be trusted")
        spent_ns = np.diff(stamps[:, -1]) if n > 1 else stamps[:, -1] - stamps[:, -2]
        self.each_ns = self.job.max(float(np.median(spent_ns)))
        rows = self.job.gather(stamps)
        return Block(rows[:, :, -2], rows[:, :, -1], rows[:, :, : self.sync.columns].min(axis=2, initial=2**62))


@dataclass
class _Sampling:
    """Rank 0's view of what has been sampled."""

    headline: Headline
    batched: int
    blocks: list[Block] = field(default_factory=list)
    models: list[list[ClockModel]] = field(default_factory=list)

    def in_time(self) -> NDArray[np.bool_]:
        """Which iterations began in time on every rank."""
        return np.concatenate([valid(block.margins) for block in self.blocks])

    def kept(self) -> NDArray[np.bool_]:
        """Those that count: all, where most were late. A local duration is right however the ranks began."""
        good = self.in_time()
        return good if good.mean() >= _MOSTLY else np.ones_like(good)

    def series(self) -> NDArray[np.float64]:
        times = np.concatenate([block.durations for block in self.blocks], axis=1)
        return self.headline(times[:, self.kept()].astype(float)) / self.batched


def measure(
    job: Job, case: Case, body: Sequence[CallSpec], sync: Sync, headline: Headline = slowest,
    clocks: Clocks | None = None,
) -> Measured:  # fmt: skip
    """Warm up, then sample until the median of ``headline`` is as precise as the case asks, or a cap is reached.

    ``sync`` is how the ranks start an iteration together. With ``clocks`` starts and ends are mapped to one clock,
    whose models are measured again around each block. Raises Invalid on every rank alike where a clock went backwards.
    """
    started = time.monotonic()
    if starts := sync.calls():
        sync.settle(job.engine.program(*starts).run)
    loop, warmup, steady = _warm_up(job, case, Loop(job, body, sync), headline)
    planned = int(job.decide(pacing.iterations(case, loop.each_ns)))
    rule = pacing.plan_rule(case, planned, loop.each_ns, loop.batched)
    sampled = _Sampling(headline, loop.batched)
    drift = _Drift(clocks, job)
    reason, lead_in = _sample(job, case, loop, rule, sampled, drift, started)
    method = {
        "sync": sync.name, **sync.method(), "warmup_iterations": warmup.shape[-1], "steady": steady,
        "stop_reason": reason, "clock": "CLOCK_MONOTONIC", **job.timer.method(),
        "pages": job.pages, "batched": loop.batched,
        "buffers": "send and receive apart, page-aligned, written before",
        "measuring_s": round(time.monotonic() - started, 6),
    }  # fmt: skip
    warm = np.concatenate([warmup, *lead_in], axis=1)
    if job.rank:
        nothing = np.zeros((0, 0), "i8")
        return Measured(nothing, nothing, nothing, np.zeros(0, "?"), np.zeros(0), {})
    return _measured(sampled, rule, drift, warm, method)


def _warm_up(job: Job, case: Case, loop: Loop, headline: Headline) -> tuple[Loop, Times, bool]:
    """Run until the durations are steady, or a share of the budget is spent; batch what the timer cannot resolve."""
    blocks = [loop.block(1)]
    if second := pacing.warm_up_more(case, loop.each_ns):
        blocks.append(loop.block(second))
    affordable_ns = pacing.WARM_UP_SHARE * 1e9 * case.budget_s

    def room() -> int:
        """How many more iterations warm-up may have."""
        done = sum(block.starts.shape[1] for block in blocks)
        fit = affordable_ns / max(loop.each_ns, 1.0)
        return int(max(0, min(_LONGEST_WARM_UP, fit) - done))

    if more := int(job.decide(min(_WARM_UP_STEP, room()))):
        blocks.append(loop.block(more))
    each_ns = float(np.median(headline(blocks[-1].durations.astype(float)))) if job.rank == 0 else 0.0
    batched = int(job.decide(job.timer.batch(each_ns)))
    if batched > 1:
        loop = Loop(job, loop.body, loop.sync, batched)
        blocks = [loop.block(_WARM_UP_STEP)]

    def again() -> Times:
        blocks.append(loop.block(_AGAIN))
        return blocks[-1].margins

    if loop.each_ns <= affordable_ns:
        loop.sync.widen(blocks[-1].margins, again)
    else:
        loop.sync.widen_unseen(loop.each_ns)
    while True:
        times = np.concatenate([block.durations for block in blocks], axis=1)
        found = steady_from(headline(times.astype(float))) if job.rank == 0 else None
        steady, more = job.decide((found is not None, min(_WARM_UP_STEP, room())))
        if steady or not more:
            return loop, times, bool(steady)
        blocks.append(loop.block(more))


def _sample(
    job: Job, case: Case, loop: Loop, rule: Rule, sampled: _Sampling, drift: _Drift, started: float
) -> tuple[str, list[Times]]:
    """Blocks up to each look; why sampling stopped, and the lead-in of every block, which counts as warm-up."""
    lead_in: list[Times] = []
    reason, done = "", 0
    drift.look()
    began = time.monotonic()
    while not reason:
        look = next(count for count in rule.looks if count > done)
        n = pacing.piece(case, loop.each_ns, look - done)
        sampled.models.append(drift.models)
        if pacing.has_lead_in(case, loop.each_ns):
            lead_in.append(loop.block(1).durations)
        sampled.blocks.append(loop.block(n))
        done += n
        drift.look()
        if job.rank == 0:
            now = time.monotonic()
            spent = pacing.Spent(now - started, now - began)
            if done == look:
                reason = pacing.stop_reason(case, rule, sampled.series(), done, spent)
            else:
                reason = pacing.out_of_time(case, done, spent)
        reason = str(job.decide(reason))
    return reason, lead_in


class _Drift:
    """The clocks around each block; nothing where none are asked for."""

    def __init__(self, clocks: Clocks | None, job: Job) -> None:
        self._clocks, self._job = clocks, job
        self._looks = 0
        self.models: list[ClockModel] = []
        self.bound_ns = self.discrepancy_ns = 0.0

    def look(self) -> None:
        """Measure the offsets again: how far the models were off, which are then anchored anew."""
        if self._clocks is None:
            return
        discrepancy, bound = self._clocks.measure()
        self._looks += 1
        if self._looks > 1:  # the first look has no block before it
            self.discrepancy_ns = max(self.discrepancy_ns, self._job.max(abs(discrepancy)))
        self.bound_ns = max(self.bound_ns, self._job.max(bound))
        self.models = list(self._clocks.gather())


def _measured(sampled: _Sampling, rule: Rule, drift: _Drift, warmup: Times, method: dict[str, Any]) -> Measured:
    series, good = sampled.series(), sampled.kept()
    median = rule.verdict(series)
    times = np.concatenate([block.durations for block in sampled.blocks], axis=1)
    starts = np.concatenate([block.starts for block in sampled.blocks], axis=1)
    method = method | precision(rule, median, series, sampled.in_time())
    if good.all() and method["valid_fraction"] < 1:
        method["warnings"] = ["most iterations began late on some rank: all are kept, as after a barrier"]
    if not drift.models:
        return Measured(times, starts, warmup, good, series, method, sampled.batched, rule.level)
    whole = joined([timeline(b.starts, b.ends, m) for b, m in zip(sampled.blocks, sampled.models, strict=True)])
    method |= {"clock_bound_s": drift.bound_ns * 1e-9, "clock_discrepancy_s": drift.discrepancy_ns * 1e-9}
    why = why_no_timeline(drift.discrepancy_ns, median.value * sampled.batched)
    return Measured(times, whole.starts, warmup, good, series, method, sampled.batched, rule.level, whole, why)


def precision(rule: Rule, median: Interval, series: NDArray[np.float64], good: NDArray[np.bool_]) -> dict[str, Any]:
    """What a record keeps of how sure its median is."""
    half = relative_half_width(median)
    return {
        "iterations": int(good.size),
        "valid_fraction": float(good.mean()),
        "looks": sum(look <= good.size for look in rule.looks),
        "look_level": rule.level,
        "target_half_width": rule.target,
        "half_width": half,
        "converged": half is not None and half <= rule.target,
        "effective_n": median.effective_n,
        "autocorrelation": autocorrelation(series) if series.size > 1 else 0.0,
    }
