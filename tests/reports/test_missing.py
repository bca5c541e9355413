"""Counts that add up, and lists that stay short, where a run is not whole."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from reports.chapters.missing import Planned
from reports.render import render
from tests.reports.folder import Folder, metric

SIZES = (0, 8, 64, 1024, 65536, 1 << 20)


def _flat(f: Folder, directory: Path) -> str:
    return " ".join(render(f.write(directory)).split())


def _case(benchmark: str, fabric: str, nbytes: int | None) -> str:
    size = [] if nbytes is None else [f"{nbytes}B"]
    return "/".join([benchmark, fabric, "pure", "mpi", *size, "2r"])


def _plan(launches: int, cases: dict[str, list[str]]) -> dict[str, Any]:
    jobs = [{"launch": launch, "fabric": fabric, "cases": ids} for launch in range(1, launches + 1)
            for fabric, ids in cases.items()]  # fmt: skip
    return {"tier": "default", "launches": launches, "jobs": jobs}


def _short(told: str) -> str:
    found = re.search(r"\(8\) (\d+ cases?: .*? warnings?\.)", told)
    assert found is not None
    return found.group(1)


def test_an_interrupted_run_lists_what_is_missing_in_a_line_per_fabric(tmp_path: Path) -> None:
    cases = {fabric: [*(_case("latency", fabric, n) for n in SIZES), _case("allreduce", fabric, 8),
                      _case("allreduce", fabric, 64), _case("barrier", fabric, None)]
             for fabric in ("shm", "eth10g")}  # fmt: skip
    f = Folder(20, run={"finished": None, "ended": "interrupted", "plan": _plan(20, cases)})
    for launch in (1, 2):
        for n in SIZES:
            f.add("latency", "shm", n, launch=launch, metrics={"time": metric(1e-6)})
    text = render(f.write(tmp_path))
    block = text[text.index("Planned but never measured") :].split("\n\n")[0].splitlines()
    assert len(block) == 3
    assert block == [
        "Planned but never measured, since the run ended before: 348 of 360 records",
        "- shm, launch 1-20: allreduce 40 (8 B, 64 B), barrier 20, latency 108 (6 sizes, 0 B to 1 MiB)",
        "- eth10g, launch 1-20: latency 120 (6 sizes, 0 B to 1 MiB), allreduce 40 (8 B, 64 B), barrier 20",
    ]
    short = _short(" ".join(text.split()))
    assert short.startswith(
        "18 cases: 6 ok, 12 without a record; 6 of the ok ones lack 108 launches (108 without a record)"
    )


def test_every_case_is_counted_once(tmp_path: Path) -> None:
    """Some launches of a good case went wrong: it stays one case, and its launches are told as launches."""
    f = Folder(3)
    for launch, status in ((1, "ok"), (2, "failed"), (3, "timeout")):
        f.add("latency", "shm", 8, launch=launch, status=status, reason="" if status == "ok" else "why",
              metrics={"time": metric(1e-6)} if status == "ok" else {})  # fmt: skip
    f.add("latency", "shm", 64, metrics={"time": metric(1e-6)})
    f.add("latency", "shm", 64, launch=2, proof="disproved", metrics={"time": metric(1e-6)})
    f.add("latency", "shm", 128, status="failed", reason="why")
    f.add("latency", "shm", 256, status="skipped", reason="why")
    f.add("latency", "shm", 512, proof="disproved", metrics={"time": metric(1e-6)})
    assert _short(_flat(f, tmp_path)) == (
        "5 cases: 2 ok, 1 disproved, 1 failed, 1 skipped; 2 of the ok ones lack 3 launches (1 failed, 1 timeout, "
        "1 disproved); 1 warning."
    )


def test_one_launch_that_failed_is_in_the_singular(tmp_path: Path) -> None:
    f = Folder(2)
    f.add("latency", "shm", 8, metrics={"time": metric(1e-6)})
    f.add("latency", "shm", 8, launch=2, status="failed", reason="why")
    assert _short(_flat(f, tmp_path)) == "1 case: 1 ok; 1 of the ok ones lacks 1 launch (1 failed); 0 warnings."


def test_lost_lines_are_told_and_what_they_held_is_not_called_unmeasured(tmp_path: Path) -> None:
    ids = [_case("latency", "shm", 8), _case("latency", "shm", 64)]
    f = Folder(run={"plan": _plan(1, {"shm": ids})}, tail=b'{"schema": 1, "id"\n')
    f.add("latency", "shm", 8, metrics={"time": metric(1e-6)})
    told = _flat(f, tmp_path)
    assert _short(told) == "2 cases: 1 ok, 1 without a record; 1 line of records could not be read; 1 warning."
    assert (
        "Planned but without a record, since its line was dropped: 1 of 2 records - shm, launch 1: latency 1 (64 B)"
        in (told)
    )
    assert "never measured" not in told


def test_a_whole_run_has_nothing_missing(tmp_path: Path) -> None:
    f = Folder(run={"plan": _plan(1, {"shm": [_case("latency", "shm", 8)]})})
    f.add("latency", "shm", 8, metrics={"time": metric(1e-6)})
    told = _flat(f, tmp_path)
    assert _short(told) == "1 case: 1 ok; 0 warnings."
    assert "Planned but" not in told


@pytest.mark.parametrize(
    ("case", "nbytes"),
    [("allreduce/shm/pure/mpi/library/float32/65536B/2r", 65536), ("train/shm/pure/gloo/ddp/m 32px batch 16/2r", None),
     ("barrier/shm/2r", None), ("", None)],
)  # fmt: skip
def test_the_size_of_a_planned_case(case: str, nbytes: int | None) -> None:
    planned = Planned(case, 1, "shm")
    assert (planned.nbytes, planned.benchmark) == (nbytes, case.partition("/")[0])


def test_jobs_that_failed_for_one_reason_are_one_line(tmp_path: Path) -> None:
    f = Folder(20)
    f.add("latency", "shm", 8, metrics={"time": metric(1e-6)})
    for launch in range(1, 21):
        f.job("eth2g5", launch, status="failed", reason="h1 is not reached")
    f.job("eth10g", 20, status="failed", reason="")
    told = _flat(f, tmp_path)
    assert (
        "- jobs 1-20 (launch 1-20, eth2g5): failed: h1 is not reached - job 21 (launch 20, eth10g): failed: no" in told
    )
