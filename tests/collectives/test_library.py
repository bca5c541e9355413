"""The table of the library's collectives: factors, inputs and expectations, without MPI."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from collectives.library import BENCHMARKS, TABLE, Operands
from microbench.dtypes import DTYPES

ROWS = {row.name: row for row in TABLE}


def operands(rank: int, ranks: int, count: int = 12, kind: str = "float32") -> Operands:
    dtype = DTYPES[kind]
    job: Any = SimpleNamespace(rank=rank, size=ranks)
    send, receive = (np.zeros(count * dtype.nbytes, "u1") for _ in range(2))
    return Operands(job, dtype, None, count, send, receive)


def test_names_are_the_benchmarks() -> None:
    assert [b.name for b in BENCHMARKS] == list(ROWS) == ["allreduce", "broadcast", "barrier"]
    assert [b.sized for b in BENCHMARKS] == [True, True, False]


@pytest.mark.parametrize(
    ("name", "ranks", "factor"),
    [("allreduce", 1, 0), ("allreduce", 2, 1), ("allreduce", 3, 4 / 3), ("allreduce", 8, 1.75), ("broadcast", 1, 0),
     ("broadcast", 5, 1), ("barrier", 4, 0)],
)  # fmt: skip
def test_busbw_factors_are_those_of_nccl_tests(name: str, ranks: int, factor: float) -> None:
    assert ROWS[name].busbw_factor(ranks) == pytest.approx(factor)


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_allreduce_expects_the_sum_of_what_is_filled_in(ranks: int, kind: str) -> None:
    row, added = ROWS["allreduce"], np.zeros(12)
    for rank in range(ranks):
        o = operands(rank, ranks, kind=kind)
        assert row.fill is not None
        row.fill(o)
        added += o.values
    assert row.expected is not None
    assert np.array_equal(row.expected(operands(0, ranks, kind=kind)), added)


def test_broadcast_expects_the_roots_bytes_on_all_others() -> None:
    row, root = ROWS["broadcast"], operands(0, 3)
    assert row.fill is not None
    assert row.expected is not None
    row.fill(root)
    assert root.send.any()
    assert row.expected(root) is None
    assert np.array_equal(row.expected(operands(2, 3)), root.send)
