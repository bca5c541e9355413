"""Sizes: what is written, what a type and an int can hold, and what fits into memory."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import psutil
import pytest

from fabrics.errors import UserError
from microbench.dtypes import DTYPES, LARGEST_INT_COUNT, counted, elements
from microbench.sizes import parse_size, parse_sizes
from suite import launch
from tests import jobs

FEW = ("--seconds", "0.02", "--iterations", "20")
GIB = 1 << 30
LIMITED = (
    "import os, resource, sys; resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2);"
    " os.execv(sys.argv[2], sys.argv[2:])"
)


def bench(ranks: int, *arguments: str) -> jobs.Done:
    return jobs.mpi(ranks, "-m", "suite.cli", "bench", *arguments, *FEW)


def records(done: jobs.Done) -> list[dict[str, Any]]:
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


def test_the_grammar_of_sizes_as_a_whole() -> None:
    """2M that is read as 2 bytes, a suffix refused in lower case, junk and a backward range accepted."""
    assert parse_sizes("1k,1K,1KiB,1kB,1M,2G,0,3") == (1024, 1 << 20, 2 << 30, 0, 3)
    for wrong in ("-1", "1.5M", "12junk", "", "17179869185g", "2MM", "8iB", "1K M", "\u0663", "8\u212a", "+8"):
        with pytest.raises(UserError, match="size") as caught:
            parse_sizes(f"8,{wrong},16")
        assert repr(wrong) in str(caught.value)
    with pytest.raises(UserError, match=r"range '4M:1M' is empty"):
        parse_sizes("4M:1M")


def test_a_number_of_any_length_is_an_error_and_no_traceback() -> None:
    """Overflow that is accepted, or that ends the parser: thousands of digits are beyond 1 PiB, however many."""
    with pytest.raises(UserError, match=r"size '9{37}\.\.\.' is beyond 1 PiB"):
        parse_size("9" * 5000)
    assert parse_size("0" * 5000 + "8") == 8
    assert parse_size("1125899906842624") == parse_size("1048576G") == 2**50
    with pytest.raises(UserError, match="beyond 1 PiB"):
        parse_size("1125899906842625")


@pytest.mark.parametrize("step", [("--sizes", "8:4M:2M"), ("--sizes", "8:4M", "--step", "2M")])
def test_there_is_no_step(step: tuple[str, ...]) -> None:
    """Odd sizes from a bad step halve a bandwidth: sizes double or are listed, and a step is refused by name."""
    done = jobs.inside("bench", "bandwidth", *step)
    assert (done.code, done.out) == (2, "")
    assert "4M:2M" in done.err or "--step" in done.err


def test_sizes_are_echoed_as_they_were_asked() -> None:
    """A size that was rounded in silence: 0, 1 and 3 bytes are measured as such, and have the right data."""
    made = records(bench(2, "latency", "--sizes", "3,1,0", "--json"))
    assert [(r["nbytes"], r["dtype"], r["status"]) for r in made] == [(n, "int8", "ok") for n in (3, 1, 0)]
    assert [r["validation"]["checked_bytes"] for r in made] == [6, 2, 0]


def test_a_size_that_is_no_multiple_of_the_type_names_both() -> None:
    """Not rounded, not cut: an error with the size and the type."""
    for name, kind in DTYPES.items():
        assert elements(12 * kind.nbytes, kind) == 12
        if kind.nbytes > 1:
            said = f"size {kind.nbytes + 1} B is not a multiple of {kind.nbytes} B, the size of {name}"
            with pytest.raises(UserError, match=re.escape(said)):
                elements(kind.nbytes + 1, kind)
    done = jobs.inside("bench", "allreduce", "--sizes", "8,10", "--dtype", "float64")
    assert (done.code, done.out) == (2, "")
    assert "size 10 B is not a multiple of 8 B, the size of float64" in done.err


class Library:
    """An MPI library that has, or has not, calls that take large counts."""

    def __init__(self, large: bool) -> None:
        self.large = large

    def has(self, name: str) -> bool:
        return self.large and name.endswith("_c")


def test_a_count_at_the_edge_of_an_int_never_wraps() -> None:
    """Above 2 GiB: a negative count, or an error of the library. One more than an int holds takes the large call."""
    assert LARGEST_INT_COUNT == 2147483647
    new: Any = Library(large=True)
    assert counted(new, "MPI_Send", elements(2147483647, DTYPES["int8"])) == "MPI_Send"
    assert counted(new, "MPI_Send", elements(2147483648, DTYPES["int8"])) == "MPI_Send_c"
    assert counted(new, "MPI_Send", elements(2147483648, DTYPES["float32"])) == "MPI_Send"


def test_sizes_about_2_gib_are_skipped_with_figures_and_others_go_on() -> None:
    """The same where memory does not hold them: each is skipped with both figures, before anything is allocated."""
    made = limited(4 * GIB, 2, "latency", "--sizes", "2147483647,2147483648,8", "--json")
    assert [(r["nbytes"], r["status"]) for r in records(made)] == [
        (2147483647, "skipped"), (2147483648, "skipped"), (8, "ok"),
    ]  # fmt: skip
    for record in records(made)[:2]:
        needed, left = figures(record["reason"])
        assert needed == pytest.approx(4 * record["nbytes"] / 1e9, abs=0.005) and 0 < left < 4 * GIB / 1e9


def limited(nbytes: int, ranks: int, *arguments: str) -> jobs.Done:
    """A job whose processes may each have so much address space (``ulimit -v``)."""
    program = [sys.executable, "-m", "suite.cli", "bench", *arguments, *FEW]
    command = [launch.find_launcher().path, "-n", str(ranks), *program]
    return jobs.run([sys.executable, "-c", LIMITED, str(nbytes), *command])


def figures(reason: str) -> tuple[float, float]:
    match = re.fullmatch(
        r"needs ([0-9.]+) GB a rank, of which a process's limit \(ulimit -v\) leaves ([0-9.]+) GB", reason
    )
    assert match is not None, reason
    return float(match[1]), float(match[2])


def test_a_limit_of_each_process_is_each_ones_own() -> None:
    """Out of memory under a limit, or skipped where it would have fitted: three ranks with 3 GiB for each of them."""
    small, large = records(limited(3 * GIB, 3, "allreduce", "--sizes", "1K,1G", "--json"))
    assert (small["status"], large["status"]) == ("ok", "skipped")
    needed, left = figures(large["reason"])
    assert needed == pytest.approx(4 * GIB / 1e9, abs=0.005)
    assert 0 < left < 3 * GIB / 1e9


def test_half_of_the_memory_for_each_of_three_ranks_is_skipped() -> None:
    """Several ranks on a host forgotten: what all of them need together is set against what the host has."""
    half = psutil.virtual_memory().available // 2 & ~4095
    (record,) = records_of(bench(3, "allreduce", "--sizes", str(half), "--json"))
    assert record["status"] == "skipped"
    assert re.fullmatch(r"needs [0-9.]+ GB for 3 ranks on a host, of which [0-9.]+ GB are available", record["reason"])


def records_of(done: jobs.Done) -> list[dict[str, Any]]:
    """Records of a job that may have measured nothing."""
    assert done.code in (0, 4), done.err
    return [json.loads(line) for line in done.out.splitlines()]


def test_a_large_operation_leaves_its_ranks_time_to_start() -> None:
    """Sizes that fail where others go on: after a large one the caches are cold, and a start agreed on is missed."""
    for record in records(bench(2, "allreduce", "--sizes", "8,32M,16M", "--json")):
        assert record["status"] == "ok", record["reason"]
        assert record["method"]["valid_fraction"] > 0


@pytest.mark.parametrize(("name", "columns"), [("allreduce", 2), ("bandwidth", 2), ("latency", 0)])
def test_nothing_to_send_has_a_time_and_no_rate(name: str, columns: int) -> None:
    """A count of 0 that one call refuses and another takes: it is timed, and as printed its rates are n/a."""
    done = bench(2, name, "--sizes", "0,8")
    assert done.code == 0, done.err
    empty, full = (line.split() for line in done.out.splitlines() if not line.startswith("#"))
    assert empty[:2] == ["0", "B"] and float(empty[3]) > 0
    if columns:
        assert empty[-columns:] == ["n/a"] * columns
        assert all(float(cell) >= 0 for cell in full[-columns:])
