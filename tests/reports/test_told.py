"""What a reader is told beside a number: its basis, its reference, the reason where there is none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from microbench.record import Metric
from reports import cells
from reports.chapters.verdicts import wideness
from reports.render import render
from reports.summary import summarise
from reports.units import MS, US
from tests.reports.folder import MIB, Folder, metric

ALONE: dict[str, Any] = {"ranks": 1, "proof": "unknown"}


def _flat(f: Folder, directory: Path) -> str:
    return " ".join(render(f.write(directory)).split())


def _few(value: float = 4.4729) -> Metric:
    return Metric(value, "s", 2, note="n=2 < 6")


def test_a_reason_has_no_unit(tmp_path: Path) -> None:
    f = Folder()
    f.add("allreduce", "shm", 1 << 31, metrics={"time": _few()})
    f.add("latency", "shm", 8, metrics={"time": _few(1e-6)})
    f.add(
        "train", "shm", workload="m", metrics={"step": _few(), "exposed_fraction": Metric(0.25, "1", 2, note="n=2 < 6")}
    )
    offload = {"compute": _few(), "host.overall": _few(9), "staged.overall": _few(7.2), "staged.net_gain": _few(0.2)}
    f.add("offload_allreduce", "shm", 8, ranks=4, metrics=offload)
    f.add("other", "shm", 8, metrics={"odd": Metric(None, "s", 0, note="n=0 < 6")})
    told = _flat(f, tmp_path)
    assert not re.findall(r"(?:n=\d+ < \d+|n/a)\)? (?:us|ms|%|Gbit/s|MB/s)(?![\w/])", told)
    assert "shm 4472.9 ms (n 2, no interval)" in told
    assert "of the step: shm 25.0 % (n 2, no interval)" in told
    assert "net gain 20.0 % of at most 50.3 % against host alone" in told
    assert "4472.9 (n=2 < 6)" in told


def test_a_number_in_a_sentence() -> None:
    f = Folder()
    f.add(
        "latency",
        "shm",
        8,
        metrics={"a": metric(1e-3, n=30), "b": _few(2e-3), "c": Metric(None, "s", 0, note="n=0 < 6")},
    )
    (s,) = summarise(f.records)
    assert cells.told(s, "a", MS) == "1.000 [0.990, 1.010] ms (n 30)"
    assert cells.told(s, "b", US) == "2000.0 us (n 2, no interval)"
    assert cells.told(s, "c", US) == "n=0 < 6 (n 0)"


def test_one_rank_is_in_no_headline_and_not_unproved(tmp_path: Path) -> None:
    """It moves nothing, so nothing can be proved; its table stays."""
    f = Folder()
    f.job(
        "shm", hosts=["localhost"], roles=["host"], proof={"verdict": "unknown", "detail": "one rank: nothing to send"}
    )
    f.job("shm", hosts=["localhost"] * 2, proof={"verdict": "proved", "detail": "no device rose"})
    f.add("allreduce", "shm", 8, metrics={"time": metric(23e-9)}, **ALONE)
    f.add("allreduce", "shm", 8, metrics={"time": metric(5e-6)})
    f.add("train", "shm", workload="m", metrics={"exposed_fraction": metric(0.1, "1")}, **ALONE)
    text = render(f.write(tmp_path))
    short = " ".join(text.split("1 System and method")[0].split())
    assert "allreduce of 8 B on 2 ranks" in short
    assert "1 rank" not in short
    assert "Counters prove that the bytes took shm." in short
    assert "unproved" not in text.lower()
    assert "Allreduce, time of the slowest rank: 1 rank" in text
    assert "nothing sent 1 of 2 jobs: one rank: nothing to send" in " ".join(text.split())


@pytest.mark.parametrize("jobs", [0, 1])
def test_a_fabric_that_only_one_rank_ran_on_has_no_verdict(tmp_path: Path, jobs: int) -> None:
    f = Folder()
    for _ in range(jobs):
        f.job(
            "eth10g", hosts=["h0"], roles=["host"], proof={"verdict": "unknown", "detail": "one rank: nothing to send"}
        )
    f.add("allreduce", "eth10g", 8, metrics={"time": metric(1e-6)}, hosts=("h0",), **ALONE)
    text = render(f.write(tmp_path))
    assert "UNPROVED" not in text
    assert re.search(rf"^eth10g +tcp .*{'nothing sent' if jobs else 'not measured'} ", text, re.MULTILINE)
    assert "there is: none" in text, "one rank does not make a network"


def test_one_rank_decides_nothing_between_fabrics(tmp_path: Path) -> None:
    f = Folder()
    for fabric in ("eth2g5", "eth10g"):
        f.add("latency", fabric, 8, metrics={"time": metric(1e-6)})
        f.add("allreduce", fabric, 8, metrics={"time": metric(1e-6)}, hosts=("h0",), **ALONE)
    assert "allreduce ms" not in render(f.write(tmp_path)).split("7 Does the fabric matter?")[1]


@pytest.mark.parametrize(
    ("fabrics", "rates", "told"),
    [(("shm", "eth2g5", "eth10g"), True, "'vs eth2g5': a fabric's speed over that of eth2g5, the network of the lowest "
      "declared rate, 2.5 Gbit/s, at the same size and setup: 2.00x is half the time or twice the rate"),
     (("shm", "eth10g"), True, "'vs eth10g': a fabric's speed over that of eth10g, the only network measured, at"),
     (("shm", "tcp-lo"), True, "'vs shm': a fabric's speed over that of shm, the first fabric measured, as none is a"),
     (("eth10g", "eth2g5"), False, "over that of eth2g5, of the networks without a declared rate the one of the")],
)  # fmt: skip
def test_the_reference_and_why_it_is_the_reference(
    tmp_path: Path, fabrics: tuple[str, ...], rates: bool, told: str
) -> None:
    f = Folder()
    for fabric in fabrics:
        bandwidth = metric(1e9 if fabric == "eth10g" else 3e8, "bytes/s", better="higher")
        f.add("bandwidth", fabric, MIB, direction="uni", metrics={"bandwidth": bandwidth})
    if not rates:
        f.run = {"fabrics": [x | {"rate_bits_per_s": None} for x in f.description()["fabrics"]]}
    assert told in _flat(f, tmp_path)


def test_without_a_second_fabric_there_is_no_reference(tmp_path: Path) -> None:
    f = Folder()
    f.add("latency", "shm", 8, metrics={"time": metric(1e-6)})
    assert "'vs " not in _flat(f, tmp_path)


@pytest.mark.parametrize(("launches", "half"), [(1, 0.12), (2, 0.5), (5, 0.5), (6, 0.25)])
def test_the_column_and_the_warning_mean_the_same_number(tmp_path: Path, launches: int, half: float) -> None:
    """Up to five launches the warning has the column's own number, else half the interval; chapter 1 says which."""
    f = Folder(launches)
    for launch in range(launches):
        value = 1.0 + (0.5 * launch / max(1, launches - 1) - 0.25 if launches > 1 else 0.0)
        f.add("latency", "shm", 8, launch=launch + 1, metrics={"time": metric(value, half=0.12)})
    (s,) = summarise(f.records)
    assert wideness(s, "time") == pytest.approx(half)
    told = _flat(f, tmp_path)
    column, interval = "'launches differ %' is (highest - lowest launch) / value", "an interval's +-% is half its width"
    assert (column in told) == (launches > 1)
    assert (interval in told) == (launches in (1, 6))
    assert ("launches differ by more than 10 %" in told) == (1 < launches < 6)
    row = next(line for line in render(tmp_path).splitlines() if line.lstrip().startswith("8 B  shm"))
    assert (" 50.0 " in row) == (launches > 1)
    which = "the former" if launches == 6 else "it"
    assert f"Chapter 8 warns where {which} is above 10 %." in told


def test_each_table_tells_what_its_intervals_rest_on(tmp_path: Path) -> None:
    f = Folder(2)
    for fabric, launches in (("eth2g5", 1), ("eth10g", 2)):
        for launch in range(1, launches + 1):
            gain = {"compute": metric(1.0), "host.overall": metric(2.0), "staged.overall": metric(1.5),
                    "staged.net_gain": metric(0.2, "1")}  # fmt: skip
            steps = {"step": metric(1.0), "step_noop": metric(0.9), "exposed": metric(0.1)}
            f.add("latency", fabric, 8, launch=launch, metrics={"time": metric(1e-6)})
            f.add("offload_allreduce", fabric, 8, launch=launch, ranks=4, metrics=gain)
            f.add("train", fabric, launch=launch, workload="m", backend="gloo", metrics=steps)
            f.add("other", fabric, 8, launch=launch, metrics={"odd": metric(1.0)})
    text = render(f.write(tmp_path))
    found = re.split(r"^(\d) .*\n---+$", text, flags=re.MULTILINE)
    parts = {int(number): " ".join(part.split()) for number, part in zip(found[1::2], found[2::2], strict=True)}
    both = "w: within one launch; r2: range of 2 launches"
    for number in (3, 4, 5, 7):
        assert both in parts[number], number
        assert "] w" in parts[number] and "] r2" in parts[number]
    assert "intervals within one launch range of 2 launches" in parts[6]
    short = " ".join(text.split("1 System and method")[0].split())
    assert (
        "[low, high]: within one launch (n 30), range of 2 launches (n 2 x 30): the heading of each table says" in short
    )


def test_a_mode_that_a_launch_lacks_is_marked(tmp_path: Path) -> None:
    f = Folder(2)
    for launch in (1, 2):
        modes = {"host.overall": metric(2.0)} | ({"staged.overall": metric(1.5)} if launch == 1 else {})
        f.add("offload_allreduce", "eth10g", 8, launch=launch, ranks=4, metrics=modes)
    text = render(f.write(tmp_path))
    assert "intervals: w: within one launch; r2: range of 2 launches" in " ".join(text.split())
    row = next(line for line in text.splitlines() if line.startswith("overall ms"))
    assert re.fullmatch(r"overall ms +\S+ \[\S+ \S+\] r2 +\S+ \[\S+ \S+\] w", row)


def test_a_table_of_one_basis_says_it_once(tmp_path: Path) -> None:
    f = Folder()
    for fabric in ("eth2g5", "eth10g"):
        f.add("latency", fabric, 8, metrics={"time": metric(1e-6)})
        f.add("other", fabric, 8, metrics={"odd": metric(1.0)})
    text = render(f.write(tmp_path))
    assert "ratio above 1: eth10g is faster; intervals: within one launch" in " ".join(text.split())
    assert ". Intervals: within one launch" in text
    assert "] w" not in text


def test_a_reason_for_some_launches_reads_once(tmp_path: Path) -> None:
    f = Folder(2)
    tails = (metric(3e-6), Metric(None, "s", 10, note="batched 2: a mean has no tail"))
    for launch, tail in enumerate(tails, 1):
        f.add("latency", "shm", 8, launch=launch, metrics={"time": metric(1e-6), "time_p99": tail})
    assert "n/a: in 1 of 2 launches: batched 2: a mean has no tail" in _flat(f, tmp_path)


@pytest.mark.parametrize(("load", "told"), [([4.1, 1, 1], True), ([1.9, 1, 1], False), (["x"], False), (None, False)])
def test_a_busy_machine_is_told(tmp_path: Path, load: Any, told: bool) -> None:
    f = Folder(run={"environment": {"cores": 2, "load_average": load}})
    f.add("latency", "shm", 8, metrics={"time": metric(1e-6)})
    said = "the machine was busy when the run began (load average 4.1 on 2 cores)"
    assert (said in _flat(f, tmp_path)) is told


def test_oversubscribed_ranks_are_marked_in_the_first_lines(tmp_path: Path) -> None:
    f = Folder()
    f.add("allreduce", "shm", 8, ranks=3, oversubscribed=True, metrics={"time": metric(1e-3)})
    assert "allreduce of 8 B on 3 ranks OVERSUBSCRIBED (mpi" in _flat(f, tmp_path)
