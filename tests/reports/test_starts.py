"""How the ranks started: what the table says, and what is no rank's fault."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from microbench.record import Metric
from reports.load import RunData
from reports.render import render
from reports.starts import late
from reports.view import view
from tests.reports.folder import METHOD, Folder, metric

US = 1e-6
ROUND = METHOD | {"sync": "round-time"}
LATE = {"late_ranks": [1], "last_arrivals": [3, 97]}


def _add(f: Folder, skew_us: float | None, time_us: float = 10.0, nbytes: int = 8, method: dict[str, Any] | None = None,
         benchmark: str = "allreduce", fabric: str = "shm", note: str = "", **more: Any) -> None:  # fmt: skip
    """A collective with an entry skew; all in us."""
    skew = metric(None if skew_us is None else skew_us * US, half=None, note=note)
    metrics = {"time": metric(time_us * US, n=100), "entry_skew": skew}
    f.add(benchmark, fabric, nbytes, metrics=metrics, method=ROUND if method is None else method, **more)


def _text(f: Folder, directory: Path) -> str:
    return render(f.write(directory))


def _flat(text: str) -> str:
    return " ".join(text.split())


def _row(text: str, *starts: str) -> list[str]:
    table = text[text.index("How the ranks started together") :]
    return next(line.split() for line in table.splitlines() if line.split()[: len(starts)] == list(starts))


def test_medians_and_worst_are_over_all_launches(tmp_path: Path) -> None:
    """The first launch is the best one: a table of it alone would hide what the others were like."""
    f = Folder(3)
    for launch, (skew, part, bound, moved) in enumerate(
        [(0.1, 1.0, 1.0, 0.1), (0.3, 0.6, 5.0, 0.2), (0.2, 0.9, 2.0, 0.9)]
    ):
        method = ROUND | {"valid_fraction": part, "clock_bound_s": bound * US, "clock_discrepancy_s": moved * US}
        _add(f, skew, launch=launch + 1, method=method)
    row = _row(_text(f, tmp_path), "allreduce", "2", "ranks")
    assert row[3:] == ["shm", "round-time", "0.200", "2.0", "0", "of", "3", "5.000", "0.900", "60.0"]


def test_launches_without_a_skew_are_counted_though_their_case_has_one(tmp_path: Path) -> None:
    f = Folder(2)
    _add(f, 0.1, launch=1)
    _add(f, None, launch=2, note="n/a: clocks moved 3.0 us, above 10 % of the median 10.0 us")
    text = _text(f, tmp_path)
    assert _row(text, "allreduce")[5:10] == ["0.100", "1.0", "1", "of", "2"]
    assert "No skew, such as allreduce 2 ranks 8 B on shm in launch 2: clocks moved 3.0 us, above 10 %" in _flat(text)


def test_the_table_says_what_is_a_median_and_what_the_worst(tmp_path: Path) -> None:
    f = Folder()
    _add(f, 0.1)
    text = _text(f, tmp_path)
    told = _flat(text)
    assert "skew from the first rank's begin to the last one's: the median of iterations, and of records" in told
    assert "bound worst record: how well one clock is known on another (half a round trip" in told
    assert "gates nothing" in told
    assert "moved worst record: how far a clock was from where it was expected; where that is too much of the" in told
    assert "in time worst record: iterations that every rank began in time" in told
    assert "sizes with one" not in text
    assert "After a barrier" not in told, "none of these ranks started after one"
    assert text.count("How the ranks started together") == 1


def test_few_iterations_in_time_are_noted_and_warned_of(tmp_path: Path) -> None:
    f = Folder(2)
    for launch, part in ((1, 1.0), (2, 0.62)):
        _add(f, 0.1, launch=launch, method=ROUND | {"valid_fraction": part})
        _add(f, 0.1, nbytes=64, launch=launch, method=ROUND | {"valid_fraction": 0.9})
    text = _text(f, tmp_path)
    assert text.count("62 % in time") == 1
    assert ("WARNING: 1 case of 2: every rank began in time in fewer than 80 % of the iterations, and the others do "
            "not count: allreduce 2 ranks 8 B on shm 62 % in launch 2.") in _flat(text)  # fmt: skip


def test_what_the_benchmark_itself_warns_of_is_told_once(tmp_path: Path) -> None:
    """Below half, all iterations count, and the record says so."""
    f = Folder()
    own = "most iterations began late on some rank: all are kept, as after a barrier"
    _add(f, 0.1, method=ROUND | {"valid_fraction": 0.29, "warnings": [own]})
    told = _flat(_text(f, tmp_path))
    assert f"WARNING: allreduce 8 B on shm: {own}." in told
    assert "29 % in time" in told
    assert "every rank began in time in fewer than" not in told
    assert "; 1 warning." in told


def test_a_low_part_without_the_benchmarks_word_is_told(tmp_path: Path) -> None:
    f = Folder()
    _add(f, 0.1, method=ROUND | {"valid_fraction": 0.29})
    assert "allreduce 2 ranks 8 B on shm 29 %." in _flat(_text(f, tmp_path))


def test_times_that_are_mostly_skew_are_one_warning_and_a_note(tmp_path: Path) -> None:
    f = Folder()
    for nbytes, skew in ((8, 9.0), (64, 5.0), (128, 4.9)):
        _add(f, skew, nbytes=nbytes)
    text = _text(f, tmp_path)
    assert re.findall(r"skew (\d+) %$", text, re.MULTILINE) == ["90", "50"]
    assert "WARNING: 2 cases of 3 are mostly entry skew" in _flat(text)
    assert "allreduce 2 ranks 8 B on shm 90 %, allreduce 2 ranks 64 B on shm 50 %." in _flat(text)


def test_skew_is_a_part_of_the_whole_batch(tmp_path: Path) -> None:
    """An iteration of 4 operations of 1 us takes 4 us: 1 us of skew is a quarter of it, not all."""
    f = Folder()
    _add(f, 1.0, time_us=1.0, method=ROUND | {"batched": 4})
    text = _text(f, tmp_path)
    assert _row(text, "allreduce")[6] == "25.0"
    assert "mostly entry skew" not in text


def _late(f: Folder) -> list[int]:
    v = view(RunData(f.description(), tuple(f.records)))
    return [x.rank for s in v.of("allreduce") for x in late(v, s)]


@pytest.mark.parametrize(
    ("sync", "skew_us", "more", "blamed"),
    [("round-time", 2.0, {}, [1]), ("round-time", 0.9, {}, []), ("round-time", 2.0, {"clock_bound_s": 3 * US}, []),
     ("round-time", 2.0, {"timer_overhead_s": US, "timer_tick_s": US}, []), ("round-time", 2.0, {"batched": 4}, []),
     ("barrier", 2.0, {}, []), ("barrier", 4.0, {}, []), ("barrier", 4.1, {}, [1]),
     ("dissemination", 1.0, {}, []), ("dissemination", 1.3, {}, [1])],
)  # fmt: skip
def test_a_rank_is_late_beyond_what_its_way_to_start_explains(
    sync: str, skew_us: float, more: dict[str, Any], blamed: list[int]
) -> None:
    """A barrier takes 2 us, a message 0.6 us: twice as much may the barrier's exit order be worth."""
    f = Folder()
    f.add("barrier", "shm", metrics={"time": metric(2 * US, half=None)}, method=METHOD)
    f.add("latency", "shm", 8, metrics={"time": metric(0.6 * US, half=None)}, method=METHOD)
    _add(f, skew_us, method={"sync": sync, **LATE, **more})
    assert _late(f) == blamed


@pytest.mark.parametrize(("last_exit_us", "blamed"), [(30.0, []), (1.0, [1]), (None, [])])
def test_without_a_barrier_measured_the_operation_stands_for_it(last_exit_us: float | None, blamed: list[int]) -> None:
    f = Folder()
    exits = {} if last_exit_us is None else {"last_exit": metric(last_exit_us * US)}
    metrics = {"time": metric(30 * US), "entry_skew": metric(20 * US), **exits}
    f.add("allreduce", "shm", 8, metrics=metrics, method={"sync": "barrier", **LATE})
    assert _late(f) == blamed


@pytest.mark.parametrize(
    "damage", [{"last_arrivals": [1]}, {"last_arrivals": [1, 2, 97]}, {"last_arrivals": None}, {"late_ranks": [7]}]
)
def test_damaged_counts_blame_nobody(damage: dict[str, Any]) -> None:
    f = Folder()
    _add(f, 9.0, method=ROUND | LATE | damage)
    assert _late(f) == []


def test_a_rank_that_is_late_in_one_launch_of_two_is_not_told() -> None:
    f = Folder(2)
    _add(f, 5.0, launch=1, method=ROUND | LATE)
    _add(f, 5.0, launch=2, method=ROUND | {"late_ranks": [0], "last_arrivals": [90, 10]})
    assert _late(f) == []


def test_late_ranks_are_one_warning_a_fabric(tmp_path: Path) -> None:
    f = Folder(2)
    for nbytes in range(8, 15):
        for launch in (1, 2):
            _add(f, 4.0, nbytes=nbytes, launch=launch, method=ROUND | LATE)
    told = _flat(_text(f, tmp_path))
    assert told.count("begins last") == 1
    assert ("allreduce 2 ranks 8 B: rank 1 on localhost in 194 of 200 iterations (skew 4.000 us, 40 % of the time); "
            ) in told  # fmt: skip
    assert "; and 2 more." in told


def test_the_order_in_which_a_barrier_lets_ranks_go_is_no_late_rank(tmp_path: Path) -> None:
    """As measured over shared memory: rank 1 in 1000 of 1000 iterations, 0.435 us of 0.987 us."""
    f = Folder()
    always = {"sync": "barrier", "late_ranks": [1], "last_arrivals": [0, 1000]}
    f.add("barrier", "shm", metrics={"time": metric(0.361 * US)}, method=METHOD)
    _add(f, 0.435, time_us=0.987, method=always)
    told = _flat(_text(f, tmp_path))
    assert "begins last" not in told
    assert "After a barrier ranks begin in the order in which it lets them go" in told


@pytest.mark.parametrize(
    "damage", [{"last_arrivals": [1]}, {"late_ranks": [7]}, {"late_ranks": "1"}, {"valid_fraction": "most"},
               {"batched": 0}, {"clock_bound_s": None}, {"warnings": 3, "valid_fraction": 0.1}],
)  # fmt: skip
def test_damaged_records_render(tmp_path: Path, damage: dict[str, Any]) -> None:
    f = Folder()
    _add(f, 9.0, method=ROUND | LATE | damage)
    f.add("allreduce", "shm", 64, metrics={"entry_skew": Metric(1e-6, "s", 3)}, method=damage)
    assert "How the ranks started together" in _text(f, tmp_path)
