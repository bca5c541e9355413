"""Probes of LogGP's parameters: round trips, bursts, and what a message takes of either end's processor.

Hoefler, Lichei and Rehm, "Low-overhead LogGP parameter assessment for modern interconnection networks" (2007): with
PRTT(n, d) the time of n messages that the sender spaces by d, answered by one,

- ``time`` is PRTT(1, 0) / 2;
- ``burst`` is (PRTT(n, 0) - PRTT(1, 0)) / (n - 1): g + m G;
- ``send_overhead`` and ``receive_overhead`` are what n sends, or n receives of messages that are already there, add
  to n delays that are longer than a message is on its way. Both ends time their own delays with and without messages,
  rather than the sender alone with an answer, so that no round trip's jitter is in it.

One iteration of a program has all of it, interleaved. A message that waits for its receiver (rendezvous) has no send
overhead to speak of: its send lasts until the receiver comes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microbench import pacing
from microbench.case import Case, Invalid, Outcome, Unsupported
from microbench.clocks import IDENTITY
from microbench.device import CPU
from microbench.engine import CallSpec
from microbench.job import Job
from microbench.pt2pt import Pair
from microbench.record import Metric
from microbench.registry import Benchmark
from microbench.stats import Rule, metric, quantile, tukey_counts

BURST = 8
PRECISION = 0.02
METRICS = ("time", "burst", "send_overhead", "receive_overhead")
_LEAD = 3  # delays that a receiver waits, so that what it receives is already there
_WARM_UP = 10
_NS = 1e-9
_PARTS = ("one", "burst", "delayed", "idle")
Times = NDArray[np.int64]


@dataclass(frozen=True)
class Program:
    """One rank's part of an iteration, and where in it the parts begin and end among the columns of a run."""

    pair: Pair
    delay_ns: NDArray[np.int64]
    lead_ns: NDArray[np.int64]

    def calls(self) -> list[CallSpec]:
        """A ping-pong; a burst and its answer; spaced messages and their answer; the spaces without messages."""
        send, receive = self.pair.message("MPI_Send"), self.pair.message("MPI_Recv")
        mine, answer = (send, receive) if self.pair.first else (receive, send)
        delay = self._wait(self.delay_ns)
        # The sender waits as briefly as it can: it shall begin when the receiver's lead does.
        lead = [] if self.pair.first else self._wait(self.lead_ns)
        stamp: CallSpec = ("stamp",)
        return [
            stamp, mine, answer, stamp, *[mine] * BURST, answer, stamp,
            *lead, stamp, *[mine, *delay] * BURST, stamp, answer,
            stamp, *delay * BURST, stamp,
        ]  # fmt: skip

    def _wait(self, ns: NDArray[np.int64]) -> list[CallSpec]:
        """Spin for so long: on this rank's own clock."""
        at, clock = np.zeros(1, "i8"), IDENTITY.words()
        return [("deadline", at, ns), ("wait_until", at, clock)]


def spans(calls: list[CallSpec], columns: Times) -> Times:
    """How long each of the four parts lasted, in ns, of shape (iterations, 4)."""
    kept = [call[0] == "stamp" for call in calls if call[0] in ("stamp", "wait_until")]
    s = columns[:, kept]
    return np.stack([s[:, 1] - s[:, 0], s[:, 2] - s[:, 1], s[:, 4] - s[:, 3], s[:, 6] - s[:, 5]], axis=1)


def series(rows: Times) -> dict[str, NDArray[np.float64]]:
    """What each iteration says of each metric, in ns; rows of shape (2 ranks, iterations, 4 parts), sender first."""
    one, burst, sent, idle = rows[0].T.astype("f8")
    received, at_rest = rows[1, :, 2:].T.astype("f8")
    told = (one / 2, (burst - one) / (BURST - 1), (sent - idle) / BURST, (received - at_rest) / BURST)
    return dict(zip(METRICS, told, strict=True))


class _Probe:
    """The program, run in blocks until its times are known, with rank 0 deciding for both."""

    def __init__(self, job: Job, case: Case, pair: Pair) -> None:
        self.job, self.case = job, case
        self.delay_ns, self.lead_ns = np.ones(1, "i8"), np.ones(1, "i8")
        self.calls = Program(pair, self.delay_ns, self.lead_ns).calls()
        self.program = job.engine.program(*self.calls)
        self.each_ns = 0.0

    def block(self, n: int) -> Times:
        """Times of the parts, of shape (ranks, n, 4), complete on rank 0; Invalid on both where a clock went back."""
        self.job.comm.Barrier()
        began = time.monotonic_ns()
        mine = spans(self.calls, self.program.run(n))
        self.each_ns = self.job.max((time.monotonic_ns() - began) / n)
        if self.job.max(-float(mine.min())) > 0:
            raise Invalid("a clock went backwards: no time of it can be trusted")
        return self.job.gather(mine)

    def settle(self) -> Times:
        """Warm up, and make the delay longer than a message, alone or in a burst, is under way."""
        warm = [self.block(_WARM_UP if self.case.nbytes is None or self.case.nbytes <= 1 << 20 else 2)]
        found = int(np.median(warm[0][0, :, :2].max(axis=1))) if self.job.rank == 0 else 0
        self.delay_ns[0] = int(self.job.decide(found))
        self.lead_ns[0] = _LEAD * self.delay_ns[0]
        warm.append(self.block(2))
        return np.concatenate(warm, axis=1)

    def sample(self) -> tuple[Times, Rule, str]:
        """Blocks up to each look; the rows, how they were looked at, and why sampling stopped."""
        planned = int(self.job.decide(pacing.iterations(self.case, self.each_ns)))
        rule = pacing.plan_rule(self.case, planned, self.each_ns)
        blocks, reason, done, began = list[Times](), "", 0, time.monotonic()
        while not reason:
            look = next(count for count in rule.looks if count > done)
            n = pacing.piece(self.case, self.each_ns, look - done)
            blocks.append(self.block(n))
            done += n
            spent = pacing.Spent(time.monotonic() - began, time.monotonic() - began)
            if self.job.rank == 0:
                found = series(np.concatenate(blocks, axis=1)) if done == look else {}
                least = max(found.values(), key=lambda s: _width(rule, s), default=None)
                reason = (pacing.out_of_time(self.case, done, spent) if least is None else
                          pacing.stop_reason(self.case, rule, least, done, spent))  # fmt: skip
            reason = str(self.job.decide(reason))
        return np.concatenate(blocks, axis=1), rule, reason


def _width(rule: Rule, found: NDArray[np.float64]) -> float:
    """How badly a series is known, relative to it."""
    seen = rule.verdict(found)
    return np.inf if seen.low is None or seen.high is None else (seen.high - seen.low) / max(abs(seen.value), 1.0)


def run(job: Job, case: Case) -> Outcome:
    """Check the data, and measure; the first of two ranks sends. Raises Unsupported for device memory."""
    if case.device != CPU:
        raise Unsupported("LogGP's probes take host memory")
    pair = Pair(job, case)
    validation = pair.verify(pair.pingpong(), (0, 1))
    probe = _Probe(job, case, pair)
    warm = probe.settle()
    rows, rule, reason = probe.sample()
    if job.rank:
        return Outcome()
    found = series(rows)
    mild, severe = tukey_counts(found["time"])
    method: dict[str, Any] = {
        "sync": "ping-pong", "burst": BURST, "delay_s": float(probe.delay_ns[0]) * _NS,
        "lead_s": float(probe.lead_ns[0]) * _NS, "warmup_iterations": warm.shape[1], "iterations": rows.shape[1],
        "stop_reason": reason, "look_level": rule.level, "target_half_width": rule.target,
        "clock": "CLOCK_MONOTONIC", **job.timer.method(), "pages": job.pages, "batched": 1,
        "tukey_mild": mild, "tukey_severe": severe,
    }  # fmt: skip
    samples = {part: rows[:, :, k] for k, part in enumerate(_PARTS)}
    return Outcome(metrics=metrics(found, rule.level), method=method, validation=validation, samples=samples,
                   reported_ranks=(0, 1), direction="ping-pong")  # fmt: skip


def metrics(found: dict[str, NDArray[np.float64]], level: float) -> dict[str, Metric]:
    """The median of each series in s, with its interval at the level of a look."""
    return {name: metric(quantile(ns * _NS, level=level, series=True), "s") for name, ns in found.items()}


BENCHMARKS = (
    Benchmark("loggp", "LogGP's parameters by delayed bursts: round trip, gap, and both ends' overheads", run, 2, 2,
              dtypes=("int8",), precision=PRECISION),
)  # fmt: skip
