"""What ``bench`` prints of records: columns that stay, and beneath them what the cells have no room for. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from microbench.pacing import TOO_SLOW
from microbench.record import Metric, Record
from reports.units import MB_PER_S
from suite.benchtable import columns, method, notes, row, title

US = 1e-6
MEAN = "batched 2: a mean has no tail"
LATE = "most iterations began late on some rank: all are kept, as after a barrier"


def record(nbytes: int | None, p99: Metric | None = None, ranks: int = 2, **told: Any) -> Record:
    """An allreduce of 10 us; ``told`` goes into its method."""
    return Record(
        "x", "allreduce", "shm", "ok", mpi="MPICH 5.0.2", thread_level="single", nbytes=nbytes, dtype="float32",
        ranks=ranks, placement="vm:0 vm:1", method={"sync": "round-time", "valid_fraction": 1.0, **told},
        metrics={
            "time": Metric(10 * US, "s", 400, 9 * US, 11 * US),
            "time_p99": p99 or Metric(12 * US, "s", 400, 11 * US, 13 * US),
            "busbw": Metric(1e9, "bytes/s", 400, 9e8, 1.1e9, better="higher"),
        },
    )  # fmt: skip


def without(note: str) -> Metric:
    return Metric(None, "s", 67, note=note)


def test_the_heading_tells_how_ranks_start_and_what_an_interval_holds_for() -> None:
    assert title(record(8)).startswith("# allreduce: 2 ranks (vm:0 vm:1); MPICH 5.0.2, thread level single, float32")
    assert method(record(8)) == "# sync: round-time; interval: 95 % within this launch, others may differ by more"
    assert "one rank" in method(record(8, ranks=1))


def test_the_heading_tells_why_ranks_start_after_a_barrier_that_nobody_asked_for() -> None:
    told = method(record(8, sync="barrier", sync_reason="the backend has threads"))
    assert told.startswith("# sync: barrier (the backend has threads); interval: ")


def test_that_data_was_checked_is_told_with_the_sum_that_came_nearest_to_its_tolerance() -> None:
    """A reader of the table could not know it."""
    exact = {"checked_bytes": 16, "wrong_bytes": 0, "checked_after": 16}
    near, far = ({"reals_largest_error": error, "reals_tolerance": 1e-3} for error in (9e-4, 1e-4))
    told = [replace(record(n), validation=exact | more) for n, more in ((8, far), (16, near), (32, far))]
    assert notes(told)[-1] == (
        "# checked: every byte of every size, before and after timing: 0 wrong; float32 sums off by at most 0.0009 of"
        " their magnitudes, 0.001 allowed"
    )
    once = replace(record(8), validation={"checked_bytes": 16, "wrong_bytes": 0})
    assert notes([once])[-1] == "# checked: every byte of every size, before timing: 0 wrong"
    assert "before timing, after it too in 3 of 4 records" in notes([*told, once])[-1]
    assert not [line for line in notes([record(None)]) if "checked" in line]


def test_why_a_window_has_no_p99() -> None:
    """There stood a dash, without a reason."""
    told = record(8, window=64)
    told = replace(told, metrics={"time": told.metrics["time"], "bandwidth": told.metrics["busbw"]})
    assert "# 8 B: no p99: a sample is a window of 64 messages, whose tail is not that of one" in notes([told])
    assert not [line for line in notes([record(8)]) if "no p99" in line]


def test_columns_stay_in_line_whatever_stands_in_a_cell() -> None:
    head = columns(record(8), MB_PER_S)
    rows = [row(r, MB_PER_S) for r in (record(8), record(1 << 20, without("n=551 (as 302) < 368")))]
    assert {len(line) for line in (head, *rows)} == {99}
    assert "n=551 (as 302) < 368" in rows[1]


def test_a_reason_that_has_no_room_in_its_cell_stands_once_below_with_its_sizes() -> None:
    told = [record(8, without(MEAN)), record(16, without(MEAN)), record(32, without(MEAN)), record(64),
            record(128, without(MEAN)), record(256, without("n=67 < 368"))]  # fmt: skip
    assert f"# 8 B to 32 B, 128 B: p99 n/a ({MEAN})" in notes(told)
    assert "n/a" in row(told[0], MB_PER_S) and MEAN not in row(told[0], MB_PER_S)
    assert not [line for line in notes(told) if "p99 n/a (n=" in line]
    assert notes(told[:2])[0].startswith("# all sizes: ")
    assert notes(told[:1])[0].startswith("# 8 B: ")


def test_counts_are_explained_where_they_stand_and_only_there() -> None:
    plain, dependent = "# n=A < C: it takes C samples, and there are A", "; (as B): they depend on their neighbours"
    assert notes([record(8)]) == []
    assert notes([record(8, without("n=67 < 368"))]) == [plain]
    (line,) = notes([record(8, without("n=67 < 368")), record(16, without("n=218 (as 7) < 368"))])
    assert line.startswith(plain + dependent)
    short = record(8)
    short = replace(short, metrics={**short.metrics, "time": Metric(US, "s", 218, note="n=218 (as 7) < 8")})
    assert "n=218 (as 7) < 8" in row(short, MB_PER_S)
    assert notes([short])[0].startswith(plain + dependent)


def test_how_many_iterations_began_in_time() -> None:
    told = [record(8, valid_fraction=0.933), record(16), record(32, valid_fraction=0.98)]
    (line,) = notes(told)
    assert line == "# 93.3 (8 B) to 100.0 % of iterations began in time on every rank; n leaves out the others"
    assert notes(told[:1]) == ["# 93.3 % of iterations began in time on every rank; n leaves out the others"]
    assert notes(told[1:2]) == []
    kept = record(64, valid_fraction=0.1, iterations=400, warnings=[LATE])  # of which n has all
    assert notes([*told, kept]) == [line, f"# 64 B: {LATE}"]


def test_what_was_not_as_it_should_be_is_told() -> None:
    told = [record(8, warnings=[LATE]), record(16), record(32, stop_reason=TOO_SLOW), record(64, stop_reason="time")]
    assert notes(told) == [f"# 32 B: {TOO_SLOW}", f"# 8 B: {LATE}"]


def test_reasons_of_one_kind_stand_together() -> None:
    none = Metric(None, "bytes/s", 400, note="one rank: nothing crosses a link")
    told = [record(8, without("batched 16: a mean has no tail"), ranks=1), record(16, without(MEAN), ranks=1)]
    lines = notes([replace(r, metrics={**r.metrics, "busbw": none}) for r in told])
    assert [line.split(": ")[1].split()[0] for line in lines] == ["p99", "p99", "busbw"]
    assert lines[-1] == "# all sizes: busbw n/a (one rank: nothing crosses a link)"


def test_what_has_no_size_and_no_result_is_no_matter() -> None:
    failed = Record("x", "allreduce", "shm", "skipped", "too large", nbytes=1 << 40)
    assert notes([failed]) == [] == notes([])
    assert notes([record(None, without(MEAN)), failed]) == [f"# p99 n/a ({MEAN})"]
    assert notes([failed, record(8, without(MEAN))])[0].startswith("# 8 B: ")
