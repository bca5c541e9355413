"""A real job with planted calls: what the first call costs, and who begins late; prints what rank 0 saw as JSON."""

from __future__ import annotations

import ctypes
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from fabrics.model import Fabric
from microbench import mpi, pt2pt
from microbench.case import Case
from microbench.engine import CallSpec
from microbench.measure import measure
from microbench.outcome import fastest, outcome, skew_metrics, time_metrics
from microbench.sync import Barrier, Own, Sync
from suite import session
from tests.cases.plants import PLANTED_S, SIZES

JOB = session.open_job(mpi.start("single"), Fabric("here", "shm", ()))
LAST = JOB.size - 1
CASE = Case("planted", "here", ranks=JOB.size, min_iterations=1000, max_iterations=1000, budget_s=2.0)
_Callback = ctypes.CFUNCTYPE(ctypes.c_int)
_KEPT: list[Any] = []


def first_is_slow(runs: list[int]) -> str:
    """A call for programs, new to the library: its first run takes 50 ms longer. Counts its runs."""

    def call() -> int:
        runs[0] += 1
        if runs[0] == 1:
            time.sleep(PLANTED_S)
        return 0

    function, name = _Callback(call), f"planted_{len(_KEPT)}"
    _KEPT.append(function)
    address, known = ctypes.cast(function, ctypes.c_void_p).value, JOB.engine.function
    JOB.engine._arity[name] = 0
    JOB.engine.function = lambda wanted: address if wanted == name else known(wanted)  # type: ignore
    return name


class Late(Barrier):
    """A barrier after which the last rank sleeps 2 ms."""

    def calls(self) -> list[CallSpec]:
        return [*super().calls(), *([("nap", 2_000_000)] if JOB.rank == LAST else [])]


def told(body: Sequence[CallSpec], sync: Sync, case: Case = CASE, delay_s: float = 0.0) -> dict[str, Any]:
    """Metrics and samples of a body; rank 0 sleeps before it begins."""
    JOB.comm.Barrier()
    if JOB.rank == 0:
        time.sleep(delay_s)
    got = measure(JOB, case, body, sync, clocks=JOB.clocks)
    if JOB.rank:
        return {}
    made = outcome(got, {**time_metrics(got), "time_fastest": fastest(got), **skew_metrics(got)}, {}, (0,))
    return {"metrics": {name: asdict(metric) for name, metric in made.metrics.items()}, "method": made.method,
            "samples": {name: (array * 1e-9).tolist() for name, array in made.samples.items()}}  # fmt: skip


def pingpong() -> list[CallSpec]:
    """8 bytes there and back between ranks 0 and 1."""
    return pt2pt.Pair(JOB, replace(CASE, nbytes=8)).pingpong()


def sweeps() -> list[tuple[int, float]]:
    """Size and median of latency: all sizes upward and downward between two cases of one size, three times over."""
    order = (1024, *SIZES, *reversed(SIZES), 1024) * 3
    (latency,) = (b for b in pt2pt.BENCHMARKS if b.name == "latency")
    made = [latency.run(JOB, replace(CASE, benchmark="latency", nbytes=size, budget_s=0.2)) for size in order]
    return [] if JOB.rank else [(s, o.metrics["time"].value or 0.0) for s, o in zip(order, made, strict=True)]


def main() -> None:
    """All findings."""
    slow = replace(CASE, min_iterations=40, max_iterations=40)
    work, runs, again = ("work", 2000), [0], [0]
    found = {
        "first": told([(first_is_slow(runs),), work], Barrier(JOB)) | {"runs": runs},
        "second variant": told([work, (first_is_slow(again),)], Barrier(JOB)) | {"runs": again},
        "late": told([("MPI_Allreduce", *operands())], Late(JOB), slow),
        "delayed": told(pingpong(), Own("ping-pong"), delay_s=PLANTED_S),
        "sweeps": sweeps(),
    }
    if JOB.rank == 0:
        print(json.dumps(found, default=lambda x: x.item() if isinstance(x, np.generic) else str(x)))


def operands() -> tuple[Any, ...]:
    """Arguments of an allreduce of 8 bytes."""
    library = JOB.engine.MPI
    _KEPT.extend(np.zeros(1) for _ in range(2))
    return (*_KEPT[-2:], 1, library.DOUBLE, library.SUM, JOB.comm)


if __name__ == "__main__":
    main()
