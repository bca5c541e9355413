"""What the report says of checks, of intervals that are not there, and of lines without a number."""

from __future__ import annotations

from pathlib import Path

from reports.render import render
from tests.reports.folder import Folder, metric

EXACT = {"checked_bytes": 16, "wrong_bytes": 0, "flipped_bit_caught": True, "checked_after": 16}


def flat(f: Folder, directory: Path) -> str:
    return " ".join(render(f.write(directory)).split())


def test_chapter_1_says_how_data_was_checked_and_chapter_8_of_how_many_cases(tmp_path: Path) -> None:
    f = Folder()
    time = {"time": metric(1e-5)}
    rounded = EXACT | {"reals_largest_error": 4e-4, "reals_tolerance": 5e-4}
    f.add("allreduce", "shm", 8, dtype="float16", metrics=time, validation=rounded)
    f.add("allreduce", "shm", 16, dtype="float16", metrics=time, validation=EXACT)
    f.add("barrier", "shm", metrics=time)
    f.add("broadcast", "shm", 8, status="invalid", reason="wrong data: 3 bytes differ from the expected result")
    text = flat(f, tmp_path)
    first, last = text.split("2 Fabrics and proof")[0], text[text.rindex("Verdicts, warnings") :]
    assert (
        "Checked: every byte of every size, before and after timing: 0 wrong; float16 sums off by at most 0.0004 of"
        " their magnitudes, 0.0005 allowed."
    ) in first
    assert (
        "Data was checked in 2 of 3 cases with numbers (no data, or no check: barrier); it came back wrong in 1 other"
        " case."
    ) in last


def test_cases_without_an_interval_are_counted(tmp_path: Path) -> None:
    f = Folder()
    f.add("allreduce", "shm", 8, metrics={"time": metric(1e-5, n=4, half=None, note="n=4 < 6")})
    f.add("allreduce", "shm", 16, metrics={"time": metric(1e-5)})
    assert (
        "WARNING: 1 case of 2 has no interval, as n is too small: nothing tells how sure the value is: allreduce"
        " 2 ranks 8 B on shm."
    ) in flat(f, tmp_path)
    several = Folder(2)
    for launch, time in ((1, 1.0e-5), (2, 1.01e-5)):
        several.add("allreduce", "shm", 8, launch=launch, metrics={"time": metric(time, n=4, half=None)})
    assert "no interval" not in flat(several, tmp_path / "two")


def test_a_note_under_a_table_names_its_lines(tmp_path: Path) -> None:
    """It gave reasons, and left open of which line each was."""
    f = Folder()
    batched, few = "batched 2: a mean has no tail", "n=479 (as 246) < 368"
    for fabric, nbytes, note in (("shm", 8, batched), ("shm", 64, batched), ("tcp-lo", 64, batched), ("tcp-lo", 8, few),
                                 ("shm", 1024, ""), ("tcp-lo", 1024, "")):  # fmt: skip
        tail = metric(None if note else 2e-5, n=479, half=None if note else 0.01, note=note)
        f.add("allreduce", fabric, nbytes, metrics={"time": metric(1e-5), "time_p99": tail})
    f.add("barrier", "shm", metrics={"time": metric(1e-5), "time_p99": metric(None, half=None, note=batched)})
    f.add("barrier", "tcp-lo", metrics={"time": metric(1e-5), "time_p99": metric(1e-5)})
    text = flat(f, tmp_path)
    assert f"n/a: {batched} (8 B shm; 64 B); {few} (8 B tcp-lo)" in text
    assert f"n/a: {batched} (shm)" in text
    all_alike, tail = Folder(), metric(None, half=None, note=batched)
    for fabric in ("shm", "tcp-lo"):
        all_alike.add("barrier", fabric, metrics={"time": metric(1e-5), "time_p99": tail})
    assert f"n/a: {batched} (all)" in flat(all_alike, tmp_path / "alike")


def test_what_was_left_out_on_a_device_says_so(tmp_path: Path) -> None:
    f = Folder()
    f.add("latency", "shm", 8, dtype="int8", device="cuda", status="skipped", reason="no CUDA device")
    assert "latency 2 ranks on shm (mpi, int8, cuda), 8 B, launch 1: no CUDA device" in flat(f, tmp_path)
