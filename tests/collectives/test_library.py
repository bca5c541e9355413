"""The table of the library's collectives: factors, sizes, calls, inputs and expectations, without MPI."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from collectives.library import BENCHMARKS, TABLE, Collective
from collectives.operands import MODES, Mode, Operands, offsets, shares
from microbench.case import Case
from microbench.dtypes import DTYPES
from microbench.engine import arities

ROWS = {row.name: row for row in TABLE}
MOVING = [row for row in TABLE if row.moves_data]
RANKS = (1, 2, 3, 5)
COUNTS = (0, 1, 2, 7, 12, 70001)
ARITY = arities(
    """int MPI_Allreduce(a,b,c,d,e,f) int MPI_Reduce(a,b,c,d,e,f,g) int MPI_Bcast(a,b,c,d,e) int MPI_Barrier(a)
    int MPI_Allgather(a,b,c,d,e,f,g) int MPI_Gather(a,b,c,d,e,f,g,h) int MPI_Scatter(a,b,c,d,e,f,g,h)
    int MPI_Scatterv(a,b,c,d,e,f,g,h,i) int MPI_Alltoall(a,b,c,d,e,f,g) int MPI_Alltoallv(a,b,c,d,e,f,g,h,i)
    int MPI_Reduce_scatter(a,b,c,d,e,f) int MPI_Reduce_scatter_block(a,b,c,d,e,f)"""
)
WANTED = ["allreduce", "reduce", "broadcast", "allgather", "reduce_scatter", "alltoall", "gather", "scatter", "barrier"]


def operands(row: Collective, rank: int, ranks: int, count: int = 12, kind: str = "float32", mode: str = "") -> Any:
    dtype = DTYPES[kind]
    library = SimpleNamespace(IN_PLACE="in place", SUM="sum", Request=8, REQUEST_NULL=0, _sizeof=lambda of: of)
    job: Any = SimpleNamespace(rank=rank, size=ranks, comm="comm", engine=SimpleNamespace(MPI=library))
    send = np.zeros(count * dtype.nbytes, "u1")
    o = Operands(job, dtype, "type", count, send, send[:0], Mode.of(Case("x", "y", mode=mode)))
    o.receive = np.zeros(row.received(o) * dtype.nbytes, "u1")
    return o


def filled(row: Collective, ranks: int, count: int, kind: str, mode: str = "") -> list[Any]:
    made = [operands(row, rank, ranks, count, kind, mode) for rank in range(ranks)]
    for o in made:
        assert row.fill is not None
        row.fill(o)
    return made


def by_definition(name: str, made: list[Any]) -> list[Any]:
    """What MPI says that each rank receives, of send buffers as elements; None where it says nothing."""
    ranks, inputs = len(made), [o.values for o in made]
    kind = made[0].kind
    added = kind.encode(sum(kind.decode(each) for each in inputs)) if ROWS[name].sums else inputs[0]
    blocks = np.array_split(np.arange(made[0].count), ranks)
    nothing = [None] * (ranks - 1)
    every = np.concatenate(inputs)
    if name == "alltoall":
        cut = [np.split(o.values, np.cumsum(shares(o.count, ranks, o.rank))[:-1]) for o in made]
        return [np.concatenate([cut[source][to] for source in range(ranks)]) for to in range(ranks)]
    return {
        "allreduce": [added] * ranks,
        "reduce": [added, *nothing],
        "broadcast": [None, *[inputs[0]] * (ranks - 1)],
        "allgather": [every] * ranks,
        "gather": [every, *nothing],
        "reduce_scatter": [added[block] for block in blocks],
        "scatter": [inputs[0][block] for block in blocks],
    }[name]


def test_names_are_the_benchmarks() -> None:
    assert [b.name for b in BENCHMARKS] == list(ROWS) == WANTED
    assert [b.name for b in BENCHMARKS if not b.sized] == ["barrier"]


def test_modes_are_those_that_mpi_defines() -> None:
    assert MODES == ("blocking", "nonblocking", "in-place", "nonblocking in-place")
    assert {b.name for b in BENCHMARKS if b.modes == MODES[:2]} == {"broadcast", "barrier"}
    assert {b.modes for b in BENCHMARKS} == {MODES, MODES[:2]}


@pytest.mark.parametrize(
    "words", ["", "barrier sync", "nonblocking", "in-place round-time sync", "nonblocking in-place"]
)
def test_a_mode_is_read_beside_a_way_to_start(words: str) -> None:
    mode = Mode.of(Case("x", "y", mode=words))
    assert mode == Mode("nonblocking" in words, "in-place" in words)


@pytest.mark.parametrize(
    ("name", "ranks", "factor"),
    [("allreduce", 1, 0), ("allreduce", 2, 1), ("allreduce", 3, 4 / 3), ("allreduce", 8, 1.75), ("broadcast", 1, 0),
     ("broadcast", 5, 1), ("reduce", 1, 0), ("reduce", 5, 1), ("reduce_scatter", 8, 7 / 8), ("alltoall", 4, 3 / 4),
     ("scatter", 4, 3 / 4), ("barrier", 4, 0)],
)  # fmt: skip
def test_busbw_factors_are_those_of_nccl_tests(name: str, ranks: int, factor: float) -> None:
    assert ROWS[name].busbw_factor(ranks) == pytest.approx(factor)


@pytest.mark.parametrize("name", ["allgather", "gather"])
@pytest.mark.parametrize("ranks", RANKS)
def test_sizes_that_nccl_tests_counts_over_all_ranks_are_converted(name: str, ranks: int) -> None:
    one_rank = 1000
    over_all = ranks * one_rank
    assert one_rank * ROWS[name].busbw_factor(ranks) == pytest.approx(over_all * (ranks - 1) / ranks)


def crossing(row: Collective, ranks: int, count: int) -> tuple[int, int]:
    """The most bytes that leave a rank for others, and that enter one, as the buffers of a call have them."""
    made = [operands(row, rank, ranks, count, "int8") for rank in range(ranks)]
    moves = np.zeros((ranks, ranks), int)  # from, to
    for o in made:
        if row.name in ("allgather", "gather"):
            moves[o.rank] = [count if other.receive.size else 0 for other in made]
        elif row.name == "alltoall":
            moves[o.rank] = shares(count, ranks, o.rank)
        elif row.name == "scatter":
            moves[0, o.rank] = o.receive.size
        elif row.name == "reduce_scatter":  # of each block, what a rank must get at least: one sum from elsewhere
            moves[o.rank] = [other.receive.size for other in made]
    np.fill_diagonal(moves, 0)
    if row.name == "reduce_scatter":
        return int(moves.sum(axis=1).max()), 0
    return int(moves.sum(axis=1).max()), int(moves.sum(axis=0).max())


@pytest.mark.parametrize("ranks", (2, 3, 4, 6))
@pytest.mark.parametrize("name", ["allgather", "gather", "alltoall", "scatter", "reduce_scatter"])
def test_busbw_counts_the_bytes_that_cross_the_busiest_link(name: str, ranks: int) -> None:
    row, count = ROWS[name], 12
    assert row.busbw_factor(ranks) * count == pytest.approx(max(crossing(row, ranks, count)))


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("ranks", RANKS)
def test_a_buffer_is_divided_without_a_remainder(ranks: int, count: int) -> None:
    table = np.array([shares(count, ranks, rank) for rank in range(ranks)])
    assert (table.sum(axis=0) == count).all() and (table.sum(axis=1) == count).all()
    assert (table == table.T).all()  # as all-to-all in place asks for
    assert table.max() - table.min() <= 1
    assert offsets(table[0]).tolist() == [int(table[0][:k].sum()) for k in range(ranks)]


@pytest.mark.parametrize("row", MOVING, ids=lambda row: row.name)
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("count", (0, 2, 7, 12, 40))
def test_what_is_expected_is_what_mpi_defines(row: Collective, ranks: int, count: int) -> None:
    for kind in DTYPES:
        made = filled(row, ranks, count, kind)
        for o, right in zip(made, by_definition(row.name, made), strict=True):
            expected = row.result(o)
            assert (expected is None) == (right is None)
            if expected is not None:
                assert expected.view("u1").tobytes() == np.ascontiguousarray(right).view("u1").tobytes()
                assert expected.nbytes == o.receive.size


def test_a_long_sum_and_a_long_exchange_are_what_mpi_defines() -> None:
    for name in ("reduce_scatter", "alltoall", "scatter"):
        row = ROWS[name]
        made = filled(row, 3, 150_001, "float32")
        for o, right in zip(made, by_definition(name, made), strict=True):
            expected = row.result(o)
            assert expected is not None and expected.view("u1").tobytes() == right.view("u1").tobytes()


@pytest.mark.parametrize("row", MOVING, ids=lambda row: row.name)
@pytest.mark.parametrize("mode", ["in-place", "nonblocking in-place"])
def test_in_place_the_input_stands_where_mpi_reads_it(row: Collective, mode: str) -> None:
    if row.place is None:
        return
    for count in (12, 7):
        for o in filled(row, 3, count, "float32", mode):
            place, at_all = row.place(o), row.name not in ("reduce", "gather") or o.is_root
            assert (place is not None) == (at_all and row.name != "scatter")
            expected = row.result(o)
            if place is not None and expected is not None:
                assert place.size == o.send.size
                assert o.receive.size >= expected.nbytes
                if not row.overwrites:  # then the result holds the input, where it stood
                    start = (place.ctypes.data - o.receive.ctypes.data) if place.size else 0
                    assert np.array_equal(expected[start : start + place.size], o.send)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
@pytest.mark.parametrize("mode", ["", "nonblocking", "in-place", "nonblocking in-place"])
@pytest.mark.parametrize("count", (12, 13))
def test_calls_have_the_arguments_that_mpi_takes(row: Collective, mode: str, count: int) -> None:
    if "in-place" in mode and row.place is None:
        return
    for rank in range(3):
        o = operands(row, rank, 3, count, mode=mode)
        call, *wait = o.finished(row.call(o))
        name = call[0]
        if "nonblocking" in mode:
            assert name.startswith("MPI_I") and [w[0] for w in wait] == ["MPI_Wait"]
            assert call[-1] is wait[0][1]  # one request
            name = f"MPI_{name[5].upper()}{name[6:]}"
            call = call[:-1]
        assert len(call) - 1 == ARITY[name]
        in_place = [a for a in call if isinstance(a, str) and a == "in place"]
        rooted = row.name in ("reduce", "gather", "scatter") and rank != 0
        assert len(in_place) == ("in-place" in mode and not rooted)
        divided = row.name in ("scatter", "alltoall", "reduce_scatter")
        with_counts = name in ("MPI_Scatterv", "MPI_Alltoallv", "MPI_Reduce_scatter")
        assert with_counts == (divided and count == 13)


def test_large_counts_travel_in_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("microbench.dtypes.LARGEST_INT_COUNT", 3)
    for name in ("scatter", "alltoall", "reduce_scatter"):
        o = operands(ROWS[name], 1, 3, 13)
        o.job.engine.has = lambda name: True
        call = ROWS[name].call(o)
        vectors = [a for a in call if isinstance(a, np.ndarray) and a.dtype != np.uint8]
        assert call[0].endswith("_c") and vectors and all(v.dtype == np.int64 for v in vectors)
