"""Is the data right, and would it be noticed: reduced precision, in place, one flipped bit, every size and type."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from collectives.library import BENCHMARKS, TABLE
from collectives.operands import MODES
from microbench import check, reals
from microbench.dtypes import DTYPES
from tests import jobs
from tests.cases.plants import BROKEN_FROM, RANGE

FLOATS = [kind for kind in DTYPES.values() if kind.digits]


@pytest.fixture(scope="module", params=[2, 3])
def found(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    done = jobs.mpi(request.param, "-m", "tests.cases.validation_job")
    assert done.code == 0, done.err
    yield json.loads(done.out)


@pytest.mark.parametrize("kind", DTYPES.values(), ids=lambda k: k.name)
def test_no_part_of_a_sum_is_beyond_what_its_type_holds(kind: Any) -> None:
    """A pattern too big for float32 fails where the sum is right: 2^24 + 1, or an iota of a million on 8 ranks."""
    for ranks, count in ((2, 1000), (3, 1000), (8, 400_000), (300, 1000)):
        total = kind.decode(check.total(kind, count, ranks))
        parts = [kind.decode(check.contribution(kind, count, rank, ranks)) for rank in range(ranks)]
        assert 0 < max(total.max(), *(part.max() for part in parts)) <= kind.exact
        assert np.array_equal(np.sum(parts, axis=0), total)
    if kind.digits:
        assert int(kind.decode(kind.encode(np.array([kind.exact + 1])))[0]) != kind.exact + 1


def test_bfloat16_does_not_hold_257() -> None:
    """257 is stored as 256: sums of it are kept below, and the check of the sum is of what was meant."""
    kind = DTYPES["bfloat16"]
    assert kind.decode(kind.encode(np.array([257.0])))[0] == 256 == kind.exact


def test_a_right_result_passes_and_one_flipped_bit_does_not(found: dict[str, Any]) -> None:
    """A checker that finds faults of its own: of 4 B, on ranks that divide them or not, each operation both ways."""
    assert set(found["flipped"]) == {row.name for row in TABLE if row.moves_data}
    for name, (right, wrong) in found["flipped"].items():
        assert (name, right) == (name, "nothing")
        assert (name, wrong) == (name, "Invalid: wrong data: 1 bytes differ from the expected result")


def test_a_fault_above_one_size_is_of_those_sizes(found: dict[str, Any]) -> None:
    """A sum that is wrong only above one size: each size has its own check, and the others go on."""
    assert [int(size) for size in found["above one size"]] == list(RANGE)
    for size, said in found["above one size"].items():
        right = said == "nothing" if int(size) < BROKEN_FROM else said.startswith("Invalid: wrong data")
        assert right, (size, said)


def test_what_an_operation_leaves_undefined_is_not_checked(found: dict[str, Any]) -> None:
    """Partial sums on ranks that a reduce does not end at: they are nobody's result."""
    assert found["elsewhere"] == "nothing"


def test_one_buffer_for_both_is_refused_by_name(found: dict[str, Any]) -> None:
    """The same buffer to send and to receive without MPI_IN_PLACE: an error of the call, not a wrong number."""
    assert found["one buffer"].startswith("LoopError: MPI_Allreduce (call 0) failed in iteration 0 on rank 0: ")
    assert "buffer" in found["one buffer"].lower()


def test_sums_in_place_that_are_not_refilled_are_noticed(found: dict[str, Any]) -> None:
    """In place the input is gone after the first call: the check after the timing would see it grow."""
    assert found["not refilled"].startswith("Invalid: wrong data: ")


@pytest.mark.parametrize("ranks", [2, 5])
@pytest.mark.parametrize("kind", FLOATS, ids=lambda k: k.name)
def test_a_tolerance_is_not_one_for_all(kind: Any, ranks: int) -> None:
    """One fixed tolerance, which bfloat16 fails or float64 always passes: it follows type, ranks and operation."""
    parts = [reals.contribution(kind, 5000, rank) for rank in range(ranks)]
    result = parts[0]
    for part in parts[1:]:
        result = kind.encode(kind.decode(result) + kind.decode(part)) if kind.nbytes < 8 else result + part
    told = reals.verify(result, 0, reals.Reference(kind, 5000, ranks), int, float)
    assert told["reals_tolerance"] == (ranks - 1) * 2.0**-kind.digits == reals.tolerance(kind, ranks)
    assert 0 < told["reals_largest_error"] <= told["reals_tolerance"]
    others = {reals.tolerance(other, n) for other in FLOATS for n in (2, 5)}
    assert len(others) == 8
    assert reals.tolerance(kind, ranks, "max") == 0


def test_a_type_is_right_or_unsupported_and_spoils_no_other() -> None:
    """A type that the library lacks is a row of its own with the reason, and the others are measured: 5 elements."""
    done = jobs.mpi(2, "-m", "tests.collectives.library_job", "5,10,20,40", ",".join(DTYPES), "blocking", "allreduce")
    assert done.code == 0, done.err
    records = [json.loads(line) for line in done.out.splitlines()]
    assert {(r["dtype"], r["nbytes"]) for r in records} >= {(name, 5 * kind.nbytes) for name, kind in DTYPES.items()}
    for record in records:
        if record["status"] == "unsupported":
            assert record["reason"] == f"{record['dtype']} is not a type that this MPI adds"
        else:
            assert (record["status"], record["validation"]["flipped_bit_caught"]) == ("ok", True), record["reason"]


def test_nothing_at_all_is_a_size_of_every_operation_and_mode() -> None:
    """A count of 0 that blocking reductions refuse and non-blocking ones do not: all take it, and have no rate."""
    done = jobs.mpi(2, "-m", "tests.collectives.library_job", "0")
    assert done.code == 0, done.err
    records = [json.loads(line) for line in done.out.splitlines()]
    modes = {(b.name, mode) for b in BENCHMARKS for mode in b.modes}
    assert {(r["benchmark"], r["mode"] or MODES[0]) for r in records} == modes
    for record in (r for r in records if r["nbytes"] is not None):
        assert (record["status"], record["metrics"]["busbw"]["value"]) == ("ok", None)
        assert record["metrics"]["time"]["value"] > 0


def test_each_variant_is_warmed_up_by_itself() -> None:
    """Only out of place warmed up, in place timed from its first call on: each has a warm-up and samples of its own."""
    done = jobs.mpi(2, "-m", "tests.collectives.library_job", "1024", "float32", "", "allreduce")
    assert done.code == 0, done.err
    variants = [json.loads(line) for line in done.out.splitlines()]
    assert [r["mode"] or MODES[0] for r in variants] == list(MODES)
    assert len({r["id"] for r in variants}) == len(MODES)  # columns of their own
    assert all(r["method"]["warmup_iterations"] and r["metrics"]["time"]["n"] for r in variants)
