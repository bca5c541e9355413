"""What a dry run says: by what cases are measured, and why others are not. Pure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from microbench.case import Case
from suite.outline import outline, told, ways
from tests.suite.test_plan import BROKEN, LAB, SHM, plan

PLAIN = Case("allreduce", "shm", nbytes=8)


@pytest.mark.parametrize(
    ("case", "said"),
    [(PLAIN, "library"), (replace(PLAIN, algorithm="ring"), "ring"), (replace(PLAIN, backend="gloo"), "gloo"),
     (replace(PLAIN, mode="in-place"), "library, in-place"), (replace(PLAIN, device="cuda"), "library on cuda"),
     (replace(PLAIN, backend="gloo", algorithm="ddp", workload="resnet20 32px batch 4"), "resnet20 32px batch 4"),
     (replace(PLAIN, options={"compare": ["host", "staged"]}), "host/staged"),
     (replace(PLAIN, options={"compare": ["host"]}, workload="skew 0.5"), "host; skew 0.5")],
)  # fmt: skip
def test_by_what_a_case_is_measured(case: Case, said: str) -> None:
    assert "; ".join(ways(case)) == said


def test_benchmarks_are_told_with_their_ways() -> None:
    cases = [replace(PLAIN, nbytes=n, algorithm=a) for n in (8, 16) for a in ("library", "ring")]
    assert told([*cases, Case("latency", "shm")]) == "4 allreduce (library; ring), 1 latency"


def test_a_dry_run_lists_ways_and_devices_and_why_others_are_left_out() -> None:
    """It told names of benchmarks and a number of cases, and called unsupported what the report does not: skipped."""
    ways = "modes = ['blocking', 'in-place']\nalgorithms = ['library', 'ring']\nbackends = ['mpi', 'gloo']"
    made = plan(f"[allreduce]\nsizes = '8'\n{ways}\n[message_rate]\nsizes = '8'\nranks = [3]", SHM, LAB)
    text = outline(made, [SHM, LAB, BROKEN])
    assert "3 allreduce (library; library, in-place; ring)" in text
    assert "1 allreduce (gloo)" in text
    assert "unsupported: allreduce/shm/pure/gloo/library/float32/8B/2r: gloo has no shared-memory transport" in text
    assert "skipped: message_rate/shm/" in text
    assert "unusable: fabric eth2g5: not root" in text
    assert "library on cuda" in outline(plan("[latency]\nsizes = '8'\ndevices = ['cuda']", SHM), [SHM])


def test_many_ways_stay_within_a_terminal() -> None:
    names = (
        "['library', 'ring', 'recursive-doubling', 'rabenseifner', 'binomial', 'two-level-leaders', 'pipelined-tree']"
    )
    text = outline(plan(f"[allreduce]\nsizes = '8'\nalgorithms = {names}", SHM), [SHM])
    assert max(map(len, text.splitlines())) < 130
