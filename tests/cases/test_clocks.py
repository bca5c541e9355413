"""What clocks may do to a number: nothing, or it is told."""

from __future__ import annotations

import json
import re
from pathlib import Path

from microbench.timer import Timer
from reports.render import render
from tests import jobs
from tests.reports.folder import METHOD, Folder, metric


def test_a_record_tells_what_its_clock_costs_and_resolves() -> None:
    """A timer of a resolution that nobody knows: each job measures it, and it is finer than what it times."""
    done = jobs.mpi(2, "-m", "suite.cli", "bench", "allreduce", "--sizes", "8", "--seconds", "0.05", "--json")
    assert done.code == 0, done.err
    record = json.loads(done.out)
    method, time_s = record["method"], record["metrics"]["time"]["value"]
    assert method["clock"] == "CLOCK_MONOTONIC"
    assert min(method["timer_tick_s"], method["timer_overhead_s"]) > 0
    reach_s = Timer(1e9 * method["timer_overhead_s"], 1e9 * method["timer_tick_s"]).reach_ns * 1e-9
    assert method["batched"] == 1 or method["batched"] * time_s > reach_s / 4  # a batch was fitted to a warm-up's time


def test_a_report_shows_the_clock(tmp_path: Path) -> None:
    """The same where it is read: chapter 1 has the worst of all jobs."""
    f = Folder()
    for nbytes, overhead_s, tick_s in ((8, 21e-9, 1e-9), (64, 35e-9, 4e-9)):
        method = METHOD | {"timer_overhead_s": overhead_s, "timer_tick_s": tick_s}
        f.add("latency", "shm", nbytes, metrics={"time": metric(1e-6)}, method=method)
    f.add("latency", "shm", 128, metrics={"time": metric(1e-6)}, method={"timer_tick_s": "broken"})
    told = " ".join(render(f.write(tmp_path)).split())
    assert re.search(r"Timer, measured .*: reading it costs 35 ns, its least step seen is 4 ns\.", told)


def test_a_time_below_ten_ticks_is_timed_in_batches() -> None:
    """A microsecond clock and an operation of 2 us: at least ten ticks are in a sample, so more of them are run."""
    coarse = Timer(overhead_ns=20.0, tick_ns=1000.0)
    for each_ns in (5.0, 150.0, 2000.0, 9999.0):
        assert coarse.batch(each_ns) * each_ns >= 10 * coarse.tick_ns
        assert coarse.batch(each_ns) > 1
    assert coarse.batch(10_000.0) == 1
