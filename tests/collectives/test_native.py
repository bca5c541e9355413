"""Schedules as programs: every algorithm on real MPI, and what a part becomes."""

from __future__ import annotations

import json

import pytest

from collectives.schedules import ALGORITHMS
from tests import jobs


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_every_algorithm_gives_what_the_operation_defines(ranks: int) -> None:
    done = jobs.mpi(ranks, "-m", "tests.collectives.native_job", timeout_s=120)
    assert done.code == 0, done.err
    wrong = json.loads(done.out)
    assert {tuple(name.split()[:2]) for name in wrong} == set(ALGORITHMS)
    assert [name for name, elements in wrong.items() if elements] == []


def test_every_algorithm_is_measured_and_checked_in_every_type() -> None:
    kinds = "float32,float16,bfloat16,int8"
    arguments = ("24,52", kinds, "blocking", "", "all")
    done = jobs.mpi(2, "-m", "tests.collectives.library_job", *arguments, timeout_s=120)
    assert done.code == 0, done.err
    records = [json.loads(line) for line in done.out.splitlines()]
    own = {(r["benchmark"], r["algorithm"]) for r in records if r["algorithm"] != "library"}
    assert own == set(ALGORITHMS)
    for record in records:
        odd = record["nbytes"] == 52 and record["dtype"] == "float32"  # 13 elements
        uneven = odd and record["benchmark"] == "alltoall" and record["algorithm"] != "library"
        wanted = "unsupported" if uneven else "ok"
        assert record["status"] == wanted, record
        assert not uneven or "13 elements are no whole blocks for 2 ranks" in record["reason"]
        if wanted == "ok" and record["benchmark"] != "barrier":
            assert record["validation"]["checked_after"] > 0


@pytest.mark.parametrize("mode", ["nonblocking", "in-place"])
def test_only_the_librarys_algorithm_has_other_modes(mode: str) -> None:
    done = jobs.mpi(2, "-m", "tests.collectives.library_job", "8", "float32", mode, "allreduce", "ring")
    (record,) = map(json.loads, done.out.splitlines())
    assert (record["status"], record["reason"]) == (
        "unsupported", "only the library's algorithm is called without blocking, or in place",
    )  # fmt: skip
