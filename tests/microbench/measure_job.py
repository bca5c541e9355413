"""Measuring in a real job, with planted work, planted skew and a planted clock; prints findings of rank 0 as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from collectives import library
from fabrics.model import Fabric
from microbench import dtypes, mpi, pt2pt
from microbench.case import Case, Invalid, Unsupported
from microbench.engine import CallSpec
from microbench.measure import measure
from microbench.outcome import outcome, skew_metrics, time_metrics
from microbench.registry import Registry
from microbench.sync import Barrier, RoundTime, Sync, choose
from suite import session

JOB = session.open_job(mpi.start("single"), Fabric("here", "shm", ()))
LAST = JOB.size - 1
CASE = Case("planted", "here", ranks=JOB.size, min_iterations=10, max_iterations=400, precision=0.2, budget_s=2.0)
LONG, LATE_NS, SLOW_NS = 20_000, 2_000_000, 1_200_000_000


class Never(RoundTime):
    """Starts that nobody makes in time: the slack is a nanosecond, and is not widened."""

    def settle(self, run: Any) -> None:
        """No slack."""
        self._slack_ns[0] = 1

    def widen(self, margins: Any, again: Any) -> None:
        """Nor later."""


class Late(Barrier):
    """A barrier after which the last rank dawdles."""

    def calls(self) -> list[CallSpec]:
        """The barrier, and on the last rank a nap of 2 ms."""
        return [*super().calls(), *([("nap", LATE_NS)] if JOB.rank == LAST else [])]


def told(case: Case, body: list[CallSpec], sync: Sync) -> dict[str, Any]:
    """What a record would say of a planted body."""
    got = measure(JOB, case, body, sync, clocks=JOB.clocks)
    if JOB.rank:
        return {}
    made = outcome(got, {**time_metrics(got), **skew_metrics(got)}, {}, (0,))
    return {"method": made.method, "metrics": {name: asdict(m) for name, m in made.metrics.items()},
            "shapes": {name: list(array.shape) for name, array in made.samples.items()}}  # fmt: skip


def backwards() -> str:
    """A clock that steps back by a second on the last rank."""
    make = JOB.engine.program

    def program(*calls: Any) -> Any:
        made = make(*calls)
        run = made.run

        def stepping(n: int) -> Any:
            stamps = run(n)
            if JOB.rank == LAST and n > 10:
                stamps[n // 2, -1] -= 1_000_000_000
            return stamps

        made.run = stepping
        return made

    JOB.engine.program = program  # type: ignore[method-assign]
    try:
        measure(JOB, CASE, [("work", LONG)], Barrier(JOB))
    except Invalid as error:
        return str(error)
    finally:
        JOB.engine.program = make  # type: ignore[method-assign]
    return "nothing raised"


def disagreement() -> str:
    """The last rank has another count."""
    nbytes = 32 if JOB.rank < LAST else 16
    table = Registry()
    for benchmark in library.BENCHMARKS:
        table.add(benchmark)
    try:
        table.get("allreduce").run(JOB, replace(CASE, benchmark="allreduce", nbytes=nbytes, dtype="float32"))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing raised"


def large_counts() -> dict[str, str]:
    """With an int that holds 3, every operation takes its large-count form, and moves the right data."""
    found, kept = {}, dtypes.LARGEST_INT_COUNT
    dtypes.LARGEST_INT_COUNT = 3  # type: ignore[misc]
    seen: list[str] = []
    make, has = JOB.engine.program, JOB.engine.has

    def program(*calls: Any) -> Any:
        seen.extend(call[0] for call in calls if call[0].endswith("_c"))
        return make(*calls)

    JOB.engine.program = program  # type: ignore[method-assign]
    for benchmark in (*library.BENCHMARKS, *(pt2pt.BENCHMARKS if JOB.size == 2 else ())):
        if benchmark.sized:
            seen.clear()
            made = benchmark.run(JOB, replace(CASE, benchmark=benchmark.name, nbytes=64, max_iterations=12))
            found[benchmark.name] = f"{made.status} {sorted(set(seen))}"
    JOB.engine.has = lambda name: False  # type: ignore[method-assign]
    try:
        library.BENCHMARKS[0].run(JOB, replace(CASE, benchmark="allreduce", nbytes=64))
    except Unsupported as error:
        found["without"] = str(error)
    JOB.engine.program, JOB.engine.has = make, has  # type: ignore[method-assign]
    dtypes.LARGEST_INT_COUNT = kept  # type: ignore[misc]
    return found


def numbers(timed: Case) -> dict[str, Any]:
    """Planted work, as it is measured."""
    return {
        "precision": told(CASE, [("work", LONG)], Barrier(JOB)),
        "fixed": told(timed, [("work", LONG)], Barrier(JOB)),
        "batched": told(CASE, [("work", 1)], Barrier(JOB)),
        "late": told(timed, [("work", LONG)], Late(JOB)),
        "round-time": told(CASE, [("work", LONG)], RoundTime(JOB, JOB.clocks)),
    }


def main() -> None:
    """All findings."""
    timed = replace(CASE, precision=0.0, max_iterations=50)
    found = numbers(timed) if JOB.size == 2 else {}  # those mean something where each rank has a core
    found |= {
        "never": told(timed, [("work", LONG)], Never(JOB, JOB.clocks)),
        "slow": told(replace(CASE, budget_s=0.05), [("nap", SLOW_NS)], choose(JOB)),
        "backwards": backwards(),
        "disagreement": disagreement(),
        "large": large_counts(),
    }
    if JOB.rank == 0:
        print(json.dumps(found, default=lambda x: x.item() if isinstance(x, np.generic) else str(x)))


if __name__ == "__main__":
    main()
