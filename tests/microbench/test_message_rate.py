"""Message rates of pairs: a total over the time that all took, never a sum of each pair's own rate."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from microbench.clocks import IDENTITY, timeline
from microbench.measure import Measured
from microbench.message_rate import BENCHMARKS, UNIT, rates
from microbench.pt2pt import WINDOW
from microbench.stats import aggregate_rate
from tests import jobs

(BENCHMARK,) = BENCHMARKS
SECOND = 1_000_000_000


def windows(starts: Any, ends: Any, **more: Any) -> Measured:
    """What a common clock says of windows: times in ns, of shape (ranks, n)."""
    starts, ends = np.asarray(starts, "i8"), np.asarray(ends, "i8")
    when = timeline(starts, ends, [IDENTITY] * len(starts))
    n = starts.shape[1]
    times = ends - starts
    return Measured(times, when.starts, times[:, :1], np.ones(n, "?"), times.max(axis=0).astype(float), {},
                    **{"timeline": when, **more})  # fmt: skip


def test_pairs_that_do_not_overlap_are_not_summed() -> None:
    """Two pairs, of which the second starts a second late: half of the sum of their rates."""
    starts = [[0] * 50, [SECOND] * 50] * 2
    ends = [[SECOND] * 50, [2 * SECOND] * 50] * 2
    made = rates(windows(starts, ends), 2 * WINDOW)
    sum_of_rates = 2 * WINDOW / 1.0
    exact = aggregate_rate([WINDOW, WINDOW], [0.0, 1.0], [1.0, 2.0])
    assert made["message_rate_makespan"].value == pytest.approx(exact) == pytest.approx(sum_of_rates / 2)


def test_pairs_that_start_together_have_one_rate_by_either_clock() -> None:
    starts, ends = np.zeros((4, 40), "i8"), np.full((4, 40), 2000)
    made = rates(windows(starts, ends), 2 * WINDOW)
    assert [m.value for m in made.values()] == pytest.approx([128 / 2e-6] * 2)  # 64 million a second
    assert {(m.unit, m.better) for m in made.values()} == {(UNIT, "higher")}


def test_a_batch_holds_several_windows() -> None:
    starts, ends = np.zeros((2, 40), "i8"), np.full((2, 40), 8000)
    got = windows(starts, ends, batched=4)
    got = Measured(**{**vars(got), "series": got.series / 4})
    assert [m.value for m in rates(got, WINDOW).values()] == pytest.approx([64 / 2e-6] * 2)


def test_the_slowest_rank_counts_where_no_common_clock_is_known() -> None:
    starts, ends = np.zeros((2, 40), "i8"), np.array([[1000] * 40, [4000] * 40])
    made = rates(windows(starts, ends, why_no_timeline="n/a: clocks differ"), WINDOW)
    assert made["message_rate"].value == pytest.approx(64 / 4e-6)
    assert (made["message_rate_makespan"].value, made["message_rate_makespan"].note) == (None, "n/a: clocks differ")


def test_it_takes_pairs_and_bytes() -> None:
    assert BENCHMARK.pairs and BENCHMARK.synchronised and BENCHMARK.usual_dtype == "int8"


@pytest.mark.parametrize("ranks", [2, 4])
def test_pairs_in_a_job(ranks: int) -> None:
    options = ("--sizes", "0,8", "--seconds", "0.05", "--json")
    done = jobs.mpi(ranks, "-m", "suite.cli", "bench", "message_rate", *options)
    assert done.code == 0, done.err
    empty, full = (json.loads(line) for line in done.out.splitlines())
    for record in (empty, full):
        assert (record["status"], record["direction"], record["ranks"]) == ("ok", "uni", ranks)
        assert (record["method"]["window"], record["method"]["pairs"]) == (WINDOW, ranks // 2)
        rate, time_s = (record["metrics"][name]["value"] for name in ("message_rate", "time"))
        assert rate == pytest.approx(ranks // 2 * WINDOW / time_s)
    assert full["validation"]["checked_bytes"] == ranks // 2 * 8
    assert empty["metrics"]["bandwidth"]["value"] is None


def test_who_has_no_partner_is_told() -> None:
    done = jobs.mpi(3, "-m", "suite.cli", "bench", "message_rate", "--sizes", "8", "--json")
    (record,) = map(json.loads, done.out.splitlines())
    assert (record["status"], "3 is an odd number of ranks" in record["reason"]) == ("skipped", True)
