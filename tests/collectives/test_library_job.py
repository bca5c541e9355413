"""The library's collectives in real jobs: every one, in every mode, of sizes that ranks divide or not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from collectives.library import TABLE
from microbench.dtypes import DTYPES
from tests import jobs

FLOATS = [kind for kind in DTYPES.values() if kind.digits]
# How many bytes are checked over all ranks, by the bytes of a send buffer and the number of ranks: what is defined.
CHECKED = {
    "allreduce": lambda size, n: n * size,
    "reduce": lambda size, n: size,
    "broadcast": lambda size, n: (n - 1) * size,
    "allgather": lambda size, n: n * n * size,
    "reduce_scatter": lambda size, n: size,
    "alltoall": lambda size, n: n * size,
    "gather": lambda size, n: n * size,
    "scatter": lambda size, n: size,
}
DIVIDED = {
    "reduce_scatter": ("MPI_Reduce_scatter_block", "MPI_Reduce_scatter"),
    "scatter": ("MPI_Scatter", "MPI_Scatterv"),
    "alltoall": ("MPI_Alltoall", "MPI_Alltoallv"),
}


def ran(ranks: int, *arguments: str) -> list[dict[str, Any]]:
    done = jobs.mpi(ranks, "-m", "tests.collectives.library_job", *arguments, timeout_s=120)
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


@pytest.fixture(scope="module", params=[(1, "8"), (2, "24,52"), (3, "8,24")], ids=lambda param: f"{param[0]} ranks")
def records(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """Sizes that the ranks divide, do not divide, and of fewer elements than ranks."""
    return ran(*request.param)


def test_each_mode_of_each_is_right(records: list[dict[str, Any]]) -> None:
    assert {(r["benchmark"], r["mode"] or "blocking") for r in records} == {
        (row.name, mode) for row in TABLE for mode in row.modes
    }
    for record in records:
        assert record["status"] == "ok", (record["id"], record["reason"])
        assert record["method"]["warmup_iterations"] > 0
        if record["benchmark"] == "barrier":
            continue
        n, size = record["ranks"], record["nbytes"]
        expected = CHECKED[record["benchmark"]](size, n)
        if record["benchmark"] == "scatter" and "in-place" in record["mode"]:
            expected -= 4 * -(-size // 4 // n)  # the root keeps its block
        validation = record["validation"]
        assert (validation["checked_bytes"], validation["checked_after"]) == (expected, expected), record["id"]
        assert validation["flipped_bit_caught"] is (True if expected else None)


def test_the_call_is_the_one_that_its_mode_and_size_ask_for(records: list[dict[str, Any]]) -> None:
    for record in records:
        call, name = record["method"]["call"], record["benchmark"]
        assert call.startswith("MPI_I") == ("nonblocking" in record["mode"])
        if name in DIVIDED:
            plain, with_counts = DIVIDED[name]
            wanted = plain if record["nbytes"] // 4 % record["ranks"] == 0 else with_counts
            assert call.lower().replace("mpi_i", "mpi_") == wanted.lower()


def test_what_an_operation_overwrites_is_refilled(records: list[dict[str, Any]]) -> None:
    grows = {"allreduce", "reduce", "reduce_scatter", "alltoall"}
    for record in records:
        due = "in-place" in record["mode"] and record["benchmark"] in grows
        assert ("refilled" in record["method"]) == due


@pytest.mark.parametrize("ranks", [2, 3])
def test_tolerances_are_of_type_and_ranks(ranks: int) -> None:
    names = ("allreduce", "reduce", "reduce_scatter", "alltoall")
    made = ran(ranks, "400", ",".join(DTYPES), "blocking", ",".join(names))
    assert {(r["benchmark"], r["dtype"]) for r in made} == {(name, kind) for name in names for kind in DTYPES}
    for record in made:
        if record["status"] == "unsupported":
            assert "is not a type that this MPI adds" in record["reason"]
            continue
        assert record["status"] == "ok", (record["id"], record["reason"])
        kind, validation = DTYPES[record["dtype"]], record["validation"]
        adds = record["benchmark"] != "alltoall"
        assert ("reals" in validation) == (adds and bool(kind.digits))
        if "reals" in validation:
            assert validation["reals_tolerance"] == (ranks - 1) * kind.roundoff
            assert validation["reals_largest_error"] <= validation["reals_tolerance"]
            assert validation["reals"] == validation["checked_bytes"] // kind.nbytes
