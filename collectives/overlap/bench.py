"""The overlap bench: how much of a collective hides behind a host's compute, on the host and on DPUs.

One case times all of its modes in interleaved blocks (:mod:`collectives.overlap.schedule`) with one fixed count of
work, and judges an offload by the fastest that hosts manage without it (:mod:`collectives.overlap.figures`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from collectives.overlap import account, evidence, figures, kernels, samples, schedule
from collectives.overlap.assembly import Assembler, Assembly, bytes_held
from collectives.overlap.cargo import row_of
from collectives.overlap.desk import Desk, Spans, Times
from collectives.overlap.evidence import Meter, Seen
from collectives.overlap.kernels import Kernel, Work
from collectives.overlap.options import ACCEL, MEMORY, OPERATIONS, SPLIT, Options
from collectives.overlap.ranks import FEWEST_HOSTS, Ranks
from microbench import memory
from microbench.case import Case, Invalid, Outcome, Unsupported
from microbench.device import CPU
from microbench.dtypes import DTYPES, dtype, elements
from microbench.job import Job
from microbench.registry import LIBRARY, MPI, Benchmark

_FEWEST_WITH_DPUS = FEWEST_HOSTS + 1


@dataclass
class Run:
    """One case on one rank, from its ranks to its outcome."""

    job: Job
    case: Case
    options: Options
    operation: str
    ranks: Ranks
    made: Assembly
    desk: Desk
    work: Work

    @property
    def dpus(self) -> tuple[int, ...]:
        """The ranks of DPUs' workers."""
        crew = self.ranks.crew
        return () if crew is None else tuple(rank for workers in crew.layout.dpus for rank in workers)

    def seen(self) -> dict[str, Seen]:
        """What says that the DPUs did it, by mode; collective."""
        crew, offloaded = self.ranks.crew, self.made.offloaded
        if crew is None or not offloaded:
            return {}
        row: list[float] = []
        for name, mode in offloaded.items():
            row += [mode.tally(), self.desk.meter.sent.get(name, 0) if self.desk.meter.reads else -1]
        rows = self.ranks.quiet.gather(np.array(row, "f8"))
        kind = dtype(self.case.dtype or "float32")
        count = elements(self.case.nbytes or 0, kind)
        least = evidence.least_bytes(self.operation, count, kind.nbytes, crew.layout)
        return evidence.seen(list(offloaded), self.desk.asked, least, rows, self.dpus)

    def shares(self) -> dict[str, Any]:
        """The processor's time on DPUs, gathered on every rank: idle in host modes, and busy in their own."""
        if not self.dpus:
            return {}
        steps = self.desk.steps
        idle = [step for step in steps if not schedule.offloaded(step)]
        busy = [step for step in steps if schedule.offloaded(step)]
        row = [
            sum(spent[step] for step in kind) for kind in (idle, busy) for spent in (self.desk.cpu_s, self.desk.wall_s)
        ]
        rows = self.ranks.quiet.gather(np.array(row))[list(self.dpus)]
        found: dict[str, Any] = {"idle_dpu_cpu_share": [round(float(row[0] / row[1]), 4) for row in rows]}
        if asked := sum(self.desk.asked.values()):
            found["busy_dpu_cpu_s_per_operation"] = [float(row[2] / asked) for row in rows]
        return found

    def samples(self, blocks: dict[str, list[Spans]], rounds: int) -> dict[str, Times]:
        """All samples of the reported hosts, on every rank."""
        rows = self.ranks.quiet.gather(samples.packed(blocks, self.desk.steps))
        return samples.unpacked(rows[list(self.ranks.reported)], self.desk.steps, rounds)

    def outcome(self, found: dict[str, Times], seen: dict[str, Seen], method: dict[str, Any]) -> Outcome:
        """What rank 0 reports."""
        job, ranks = self.job, self.ranks
        timed = samples.timed(found)
        medians = figures.medians(timed)
        unused = [name for name, what in seen.items() if what.why_unused]
        emulated = job.fabric.emulated
        crowded = account.crowding(ranks.placement, ranks.hosts, job.hosts, job.cpus, emulated)
        compute, pure, work = medians["compute"], medians["host.pure"], self.work
        disturbed = [] if ranks.placement == ACCEL else account.disturbance(compute, work.alone_ns)
        disturbed += account.sizing(compute, pure, work.fraction, self.options.skew, work.pure_ns)
        warnings = [*crowded, *disturbed, *(f"{name}: {seen[name].why_unused}" for name in unused)]
        return Outcome(
            metrics=figures.metrics(timed, work.noise_ns, job.seed, self.options.outstanding, self.idle(unused)),
            method={
                **method,
                **self.method(),
                "used": {name: name not in unused for name in seen},
                "tally": {name: what.as_dict() for name, what in seen.items()},
                "best_host": figures.best_host(medians),
                "blocking_calls": figures.blocking_calls(medians, self.work.noise_ns),
                "preemptions": self.desk.preemptions,
                "warnings": warnings,
            },
            validation={**self.desk.validation, "checked_bytes": self.desk.checked_bytes},
            samples=samples.flat(found, self.desk.steps),
            reported_ranks=ranks.reported,
            placement=account.where(ranks.placement, bool(crowded), job.hosts, job.cpus),
        )

    def idle(self, unused: Sequence[str]) -> dict[str, str]:
        """The modes of which nothing is judged, each with the reason: not done by DPUs, or nothing to do."""
        nothing = not elements(self.case.nbytes or 0, dtype(self.case.dtype or "float32"))
        return {name: figures.NOTHING if nothing else figures.NOT_USED for name in self.made.offloaded
                if nothing or name in unused}  # fmt: skip

    def method(self) -> dict[str, Any]:
        """How it was measured."""
        job, ranks, work = self.job, self.ranks, self.work
        return {
            "sync": "barrier of the hosts",
            "clock": "CLOCK_MONOTONIC",
            "pages": job.pages,
            "batched": 1,
            "timer_noise_s": work.noise_ns * 1e-9,
            "compare": list(self.made.compare),
            "left_out": self.made.left_out,
            "modes": {name: self.made.modes[name].method() for name in self.made.compare},
            "chunk_table": self.made.chunks,
            **self.desk.kernel.method(),
            "compute_steps": work.steps,
            "compute_ns_per_step": work.ns_per_step,
            "compute_fraction": work.fraction,
            "compute_of_s": work.pure_ns * 1e-9,
            "calibration": "rank 0 alone, all other ranks waiting as below; a fixed count of steps",
            "skew": self.options.skew,
            "sleeps": f"timer slack {kernels.SLACK_NS} ns",
            "longest_lag_s": self.desk.longest_lag_ns * 1e-9,
            "outstanding": self.options.outstanding,
            "placement": ranks.placement,
            "computing_ranks": list(ranks.computing),
            "peers": account.PEERS[ranks.placement],
            "waiting": ranks.waiting.as_dict(),
            "pure_of": {name: schedule.pure_of(name) for name in self.made.compare},
            "intervals": figures.INTERVALS,
            "emulated": job.fabric.emulated,
        }


def run(job: Job, case: Case, operation: str, offload: bool) -> Outcome:
    """Measure one case on every rank of a job of hosts, and of their DPUs where something is offloaded to them.

    ``case.options`` are those of :class:`collectives.overlap.options.Options`. Raises CannotRun for roles that do not
    fit; wrong data make an invalid outcome without times, right data that no DPU had a part in an outcome that says so.
    """
    started = time.monotonic()
    if case.device != CPU or case.backend != MPI or case.algorithm != LIBRARY:
        raise Unsupported("overlap is measured with MPI's own collectives, in host memory")
    options = Options.of(case.options, offload)
    ranks = Ranks.of(job, options, offload)
    try:
        with kernels.punctual():
            found = _short(job, case, options, operation, ranks)
            found = found or _measured(job, case, options, operation, ranks, started)
    except (Invalid, Unsupported):  # raised by all ranks alike, so all can give the communicators back
        ranks.close()
        raise
    ranks.close()
    return found


def _short(job: Job, case: Case, options: Options, operation: str, ranks: Ranks) -> Outcome | None:
    """Skipped where the buffers do not fit; the same on every rank."""
    held = bytes_held(case, options, len(ranks.hosts), operation)
    held += kernels.ring_bytes(kernels.cache_bytes()) // memory.BUFFERS if options.compute == MEMORY else 0
    rows = ranks.quiet.gather(np.array([memory.available_bytes(), float(memory.allowed_bytes() or np.inf), held]))
    available, allowed, most = int(rows[:, 0].min()), float(rows[:, 1].min()), int(rows[:, 2].max())
    limit = int(allowed) if np.isfinite(allowed) else None
    reason = memory.shortage(most, job.hosts, job.fabric.emulated, available, limit)
    return Outcome("skipped", reason) if reason else None


def _measured(job: Job, case: Case, options: Options, operation: str, ranks: Ranks, started: float) -> Outcome:
    made = Assembler(ranks, case, options, operation).assemble()
    if not made.compare:
        made.close()
        raise Unsupported("; ".join(f"{name}: {reason}" for name, reason in made.left_out.items()))
    dpus = [] if ranks.crew is None else [rank for workers in ranks.crew.layout.dpus for rank in workers]
    desk = Desk(job, ranks, options, made.modes, made.compare, _kernel(ranks, options), Meter.of(job, dpus))
    try:
        work = desk.prepare(case)
        blocks, method = desk.rounds(case, started)
    except Invalid:
        made.close()
        raise
    this = Run(job, case, options, operation, ranks, made, desk, work)
    seen, shares = this.seen(), this.shares()
    found = this.samples(blocks, method["rounds"])
    outcome = Outcome() if job.rank else this.outcome(found, seen, {**method, **shares})
    made.close()
    return outcome


def _kernel(ranks: Ranks, options: Options) -> Kernel:
    """What a computing host does; hosts that do not compute hold no memory for it."""
    if ranks.placement == ACCEL:
        return kernels.Nap()
    computes = ranks.here is not None and (ranks.placement != SPLIT or ranks.is_first)
    if options.compute == MEMORY and computes:
        return kernels.Memory(kernels.ring_bytes(kernels.cache_bytes()))
    return kernels.Registers()


def _runner(operation: str, offload: bool) -> Callable[[Job, Case], Outcome]:
    return lambda job, case: run(job, case, operation, offload)


def _benchmarks() -> list[Benchmark]:
    found = []
    for operation in OPERATIONS:
        largest, types = row_of(operation).largest_buffer, tuple(DTYPES)
        found.append(
            Benchmark(
                f"overlap_{operation}", f"{operation} behind the hosts' own compute", _runner(operation, False),
                min_ranks=FEWEST_HOSTS, dtypes=types, largest_buffer=largest, kind="overlap",
            )
        )  # fmt: skip
        found.append(
            Benchmark(
                f"offload_{operation}", f"{operation} behind a host's compute, on hosts and offloaded to DPUs",
                _runner(operation, True),
                min_ranks=_FEWEST_WITH_DPUS, dtypes=types, largest_buffer=largest, kind="offload",
            )
        )  # fmt: skip
    return found


BENCHMARKS = tuple(_benchmarks())
