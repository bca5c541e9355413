"""Units as printed, what a rate is made of, and rates that cannot be: planted numbers, jobs where it takes ranks."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from collectives import library
from microbench import message_rate, pt2pt
from microbench.measure import Measured
from microbench.outcome import rate_metric, time_metrics
from microbench.record import Record
from microbench.stats import aggregate_rate
from reports.render import render
from reports.units import GBIT_PER_S, MB_PER_S, MIB_PER_S, US
from suite import benchtable
from tests import jobs
from tests.reports.folder import MIB, Folder, metric

BINARY = 1.048576
FEW = ("--seconds", "0.02", "--iterations", "50")


def clocked(series_ns: list[float]) -> Measured:
    """What a fake clock says: these times of an operation, in ns."""
    series = np.asarray(series_ns, float)
    times = series[None, :].astype("i8")
    return Measured(times, times * 0, times[:, :2], np.ones(series.size, "?"), series, {})


def one_mebibyte_in_a_millisecond() -> Folder:
    f = Folder()
    rate = metric(MIB / 1e-3, "bytes/s", better="higher")
    f.add("bandwidth", "shm", MIB, direction="uni", dtype="int8", metrics={"bandwidth": rate, "time": metric(1e-3)})
    f.add("allreduce", "shm", MIB, dtype="float32", metrics={"time": metric(1e-3), "busbw": rate})
    f.add("other", "shm", MIB, metrics={"odd": rate})
    return f


def flat(text: str) -> str:
    return " ".join(text.split())


def test_a_window_of_tiny_messages_on_a_fake_clock() -> None:
    """A bandwidth that is wrong by a factor of a million: 64 messages of 4 B in 2 us are 128 MB/s."""
    rate = rate_metric(pt2pt.WINDOW * 4, clocked([2000.0] * 50), "")
    assert rate.value == pytest.approx(128e6, rel=1e-12)
    assert (MB_PER_S.text(rate.value), GBIT_PER_S.text(rate.value)) == ("128.000", "1.024")


def test_windows_of_several_pairs_on_a_fake_clock() -> None:
    """The same of four pairs at once: 256 messages of 4 B in 2 us are 128 million messages/s, and 512 MB/s."""
    messages = 4 * pt2pt.WINDOW
    assert message_rate.rates(clocked([2000.0] * 50), messages)["message_rate"].value == pytest.approx(128e6)
    assert rate_metric(messages * 4, clocked([2000.0] * 50), "").value == pytest.approx(512e6)


def test_a_millisecond_is_not_a_second() -> None:
    """Milliseconds that are taken for seconds: a fake clock of 1 ms gives 1000 us, as stored and as printed."""
    time = time_metrics(clocked([1e6] * 50))["time"]
    assert (time.unit, time.value) == ("s", pytest.approx(1e-3, rel=1e-12))
    assert US.text(time.value or 0) == "1000.0"


def test_one_mebibyte_in_a_millisecond_as_a_report_prints_it(tmp_path: Path) -> None:
    """Units that agree with other MPI benchmarks: MB/s of a million, and binary ones where asked, exactly in ratio."""
    folder = one_mebibyte_in_a_millisecond().write(tmp_path)
    decimal, binary = (render(folder, "text", units) for units in ("decimal", "binary"))
    assert flat(decimal).count(" 1048.576 ") == 3 and "1048.576 MB/s" in flat(decimal)
    assert flat(binary).count(" 1000.000 ") == 3 and "1000.000 MiB/s" in flat(binary)
    assert float("1048.576") / float("1000.000") == BINARY == MB_PER_S.scale / MIB_PER_S.scale
    for text, unit, other in ((decimal, "MB/s", "MiB/s"), (binary, "MiB/s", " MB/s")):
        assert f"busbw {unit}" in text
        assert f"1 {unit} = " in text  # and chapter 1 defines it
        assert "Gbit/s" in text and " 8.389 " in text
        tables = text[text.index("\n3 ") :]
        assert other not in tables


def test_one_mebibyte_in_a_millisecond_as_a_job_prints_it() -> None:
    """The same of a row that ``bench`` prints, under a heading that has the unit and the direction."""
    (record,) = [r for r in one_mebibyte_in_a_millisecond().records if r.benchmark == "bandwidth"]
    for unit, number in ((MB_PER_S, "1048.576"), (MIB_PER_S, "1000.000")):
        assert benchtable.row(record, unit).split()[-2:] == [number, "8.389"]
        assert benchtable.columns(record, unit).endswith(f"bandwidth uni {unit.name}    Gbit/s")


def test_what_programs_read_stays_in_base_units_and_names_them(tmp_path: Path) -> None:
    """A unit that stands nowhere: JSON and CSV hold base units, whatever is printed, and each metric names its own."""
    folder = one_mebibyte_in_a_millisecond().write(tmp_path)
    for units in ("decimal", "binary"):
        found = json.loads(render(folder, "json", units))
        for case in (*found["records"], *found["summaries"]):
            assert all(m["unit"] in ("s", "bytes/s") for m in case["metrics"].values())
        rows = list(csv.DictReader(io.StringIO(render(folder, "csv", units))))
        assert {row["metric"]: row["unit"] for row in rows} == {
            "bandwidth": "bytes/s", "time": "s", "busbw": "bytes/s", "odd": "bytes/s",
        }  # fmt: skip
        (rate,) = {float(row["value"]) for row in rows if row["unit"] == "bytes/s"}
        assert rate == MIB / 1e-3


def test_the_command_takes_the_unit(tmp_path: Path) -> None:
    """The option reaches the columns of a report and of a job, and not the records of ``--json``."""
    folder = one_mebibyte_in_a_millisecond().write(tmp_path)
    report = jobs.inside("report", str(folder), "--units", "binary")
    assert report.code == 0 and report.out == render(folder, "text", "binary")
    wrong = jobs.inside("report", str(folder), "--units", "imperial")
    assert wrong.code == 2 and "imperial" in wrong.err
    table = jobs.mpi(2, "-m", "suite.cli", "bench", "bibw", "--sizes", "4K", "--units", "binary", *FEW)
    heading, row = table.out.splitlines()[2:4]
    assert "bandwidth bi MiB/s" in heading and " MB/s" not in heading
    mebibytes, gbits = (float(text) for text in row.split()[-2:])
    assert mebibytes * 2**20 * 8 == pytest.approx(gbits * 1e9, abs=0.0005e9 + 1e4)


BY_HAND = {  # 3 ranks, 12 B in each send buffer: bytes that a rank's link carries each way
    "allreduce": 16,  # a ring: 2 steps of 4 B, twice
    "broadcast": 12,
    "allgather": 24,  # 12 B from each of 2 others
    "alltoall": 8,  # 4 B for each of 2 others
    "reduce": 12,
    "reduce_scatter": 8,  # 4 B to each of 2 others
    "gather": 24,  # 12 B from each of 2 others, into the root
    "scatter": 8,  # 4 B to each of 2 others, out of the root
}


def test_a_size_means_the_same_in_every_operation() -> None:
    """A size that is bytes here and ranks x count there: it is the send buffer's, and the factors follow by hand."""
    rows = {row.name: row for row in library.TABLE if row.moves_data}
    assert set(rows) == set(BY_HAND)
    for name, row in rows.items():
        assert 12 * row.busbw_factor(3) == pytest.approx(BY_HAND[name]), name


def test_the_meaning_of_a_size_is_told(tmp_path: Path) -> None:
    """A size that a reader must guess: report and job say whose bytes they are."""
    folder = one_mebibyte_in_a_millisecond().write(tmp_path)
    assert "A size is bytes per rank in the send buffer" in flat(render(folder))
    (record, *_) = one_mebibyte_in_a_millisecond().records
    assert benchtable.title(record).endswith("int8; size: bytes of one rank's send buffer")


def test_every_heading_of_a_rate_names_its_direction(tmp_path: Path) -> None:
    """One way or both? Each table of rates says so, at a glance and in full."""
    f = Folder()
    for benchmark, direction in (("bandwidth", "uni"), ("bibw", "bi")):
        f.add(benchmark, "eth10g", MIB, direction=direction, metrics={"bandwidth": metric(1e9, "bytes/s")})
        f.add(benchmark, "eth2g5", MIB, direction=direction, metrics={"bandwidth": metric(3e8, "bytes/s")})
    text = render(f.write(tmp_path))
    assert "Bandwidth, one way (uni): uni, 2 ranks" in text
    assert "Bandwidth, both ways at once, both counted (bi): bi, 2 ranks" in text
    assert re.search(r"^fabric .* uni Gbit/s .* bi Gbit/s", text, re.MULTILINE)
    assert "bandwidth uni Gbit/s, 1 MiB" in text


def benched(name: str) -> dict[str, Any]:
    done = jobs.mpi(2, "-m", "suite.cli", "bench", name, "--sizes", "64K", "--json", *FEW)
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_both_ways_count_both() -> None:
    """A rate of both directions: twice the bytes of a window of one, over the time of that window."""
    for name, direction, ways in (("bandwidth", "uni", 1), ("bibw", "bi", 2)):
        record = benched(name)
        assert record["direction"] == direction
        rate, window = (record["metrics"][metric]["value"] for metric in ("bandwidth", "time"))
        assert rate == pytest.approx(ways * pt2pt.WINDOW * 65536 / window, rel=1e-12)


@pytest.mark.skipif(os.geteuid() != 0, reason="a shaped link takes root")
def test_directions_are_in_order_on_a_shaped_link(tmp_path: Path) -> None:
    """Ping-pong, one way, both ways on a link of known rate: each within what the link can carry."""
    sizes = {"latency": "4M", "bandwidth": "128K", "bibw": "128K"}  # well above what the shaper lets pass at once
    plan = tmp_path / "plan.toml"
    plan.write_text(
        "launches = 1\nbudget_s = 0.1\n" + "".join(f"[{name}]\nsizes = '{size}'\n" for name, size in sizes.items())
    )
    done = jobs.fabricbench("run", "--plan", str(plan), "--fabric", "eth2g5", "-o", str(tmp_path / "run"))
    if "unusable" in done.err or "cannot be measured" in done.err:
        pytest.skip(done.err.strip())
    assert done.code == 0, done.err
    lines = (tmp_path / "run" / "records.jsonl").read_text("utf-8").splitlines()
    records = {record.benchmark: record for record in (Record.from_dict(json.loads(line)) for line in lines)}
    uni, bi = (records[name].metrics["bandwidth"].value or 0.0 for name in ("bandwidth", "bibw"))
    pingpong = (4 << 20) / (records["latency"].metrics["time"].value or 1.0)
    tolerance = 1.1
    assert 0 < uni * 8 <= 2.5e9 * tolerance
    assert bi <= 2 * uni * tolerance
    assert pingpong <= uni * tolerance


def test_windows_that_do_not_overlap_are_not_summed() -> None:
    """Rates of streams that never ran together: pair B starts 1 s late, and what both moved took 2 s, not 1 s."""
    starts, ends, nbytes = [0.0, 1.0], [1.0, 2.0], [50e9, 50e9]
    summed = sum(n / (end - start) for n, start, end in zip(nbytes, starts, ends, strict=True))
    aggregate = aggregate_rate(nbytes, starts, ends)
    assert aggregate == pytest.approx(50e9)
    assert summed / aggregate == pytest.approx(2.0)


def test_an_aggregate_is_of_exact_times() -> None:
    """Whole ns since boot: the difference is taken before anything becomes a float."""
    begin = 3 * 10**17 + 1
    starts = np.array([begin, begin + 250], "i8")
    assert aggregate_rate([1000, 1000], starts, starts + 250) * 1e9 == pytest.approx(4e9, rel=1e-12)
    assert aggregate_rate([8], [1.0], [3.0]) == 4.0
    for nbytes, first, last in (([], [], []), ([8], [1.0], [1.0]), ([8, 8], [1.0], [2.0])):
        with pytest.raises(ValueError, match="stream"):
            aggregate_rate(nbytes, first, last)


def test_a_rate_that_no_memory_carries_is_flagged(tmp_path: Path) -> None:
    """4.7e9 MB/s at 1 KiB: above any memory, so it is warned of where it stands, in chapter 8 and in a job's rows."""
    f = Folder()
    for nbytes, rate in ((1024, 4.7e15), (4096, 9e9)):
        f.add("bandwidth", "shm", nbytes, direction="uni",
              metrics={"time": metric(1e-6), "bandwidth": metric(rate, "bytes/s", better="higher")})  # fmt: skip
    text = render(f.write(tmp_path))
    said = "WARNING: bandwidth on shm is above 10.0 TB/s a host at 1 KiB: no memory carries that"
    assert said in flat(text[text.index("\n8 ") :])
    assert text[text.index("\n3 ") : text.index("\n4 ")].count("> any memory") == 1
    impossible, fine = (benchtable.row(record, MB_PER_S) for record in f.records)
    assert "> any memory" in impossible and "> any memory" not in fine
