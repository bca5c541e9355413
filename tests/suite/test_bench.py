"""``fabricbench bench`` inside a user's own job, with 1 to 4 ranks."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import pytest

from microbench import registry
from microbench.dtypes import DTYPES
from suite import launch, leftovers
from tests import jobs
from tests.suite import bench_job

FEW = ("--seconds", "0.02", "--iterations", "20")
SIZES = {name: (name, "--sizes", "0,8,24,4K", "--json") for name in ("allreduce", "broadcast")}
BARRIER = ("barrier", "--json")
TABLE = ("allreduce", "--sizes", "8:64")
ALONE = ("allreduce", "--sizes", "8,1K")
TYPES = {name: ("allreduce", "--sizes", "4K", "--dtype", name, "--json") for name in DTYPES}
LATENCY_OF_THREE = ("latency",)
PAIRS = {name: (name, "--sizes", "0,8,64K", "--json") for name in ("latency", "bandwidth", "bibw")}
WAYS = {
    ("allreduce", "--algorithm", "recursive-doubling"): "calls of a schedule",
    ("allreduce", "--algorithm", "library"): "MPI_Allreduce",
    ("allgather", "--mode", "nonblocking"): "MPI_Iallgather",
    ("reduce_scatter", "--mode", "nonblocking in-place"): "MPI_Ireduce_scatter",
}
NO_FAULT = {
    ("alltoall", "--algorithm", "bruck", "--sizes", "4,12", "--json"): "unsupported",
    ("allreduce", "--backend", "nccl", "--sizes", "8", "--json"): "unsupported",
    ("allreduce", "--sizes", "1024G", "--json"): "skipped",
}
RATE = ("message_rate", "--sizes", "8")
WRONG = ("plant_wrong", "--module", "tests.plant")
COMMANDS: dict[int, list[tuple[str, ...]]] = {
    1: [*SIZES.values(), BARRIER, ALONE],
    2: [*SIZES.values(), BARRIER, *PAIRS.values(), *((*way, "--sizes", "24") for way in WAYS),
        *((*way, "--sizes", "24", "--json") for way in WAYS), *NO_FAULT, RATE, (*RATE, "--json"), WRONG],
    3: [*SIZES.values(), BARRIER, *TYPES.values(), LATENCY_OF_THREE],
    4: [*SIZES.values(), BARRIER, TABLE],
}  # fmt: skip
Told = Callable[..., jobs.Done]


@pytest.fixture(scope="module")
def told() -> Told:
    """What a command in a job of so many ranks told: all of them in one job, since starting takes the longest."""

    @cache
    def job(ranks: int) -> dict[tuple[str, ...], jobs.Done]:
        commands = COMMANDS[ranks]
        done = jobs.mpi(ranks, "-m", "tests.suite.bench_job", json.dumps([[*command, *FEW] for command in commands]))
        assert done.code == 0, done.err
        *texts, rest = re.split(rf"^{bench_job.END}(\d+)\n", done.out, flags=re.M)
        assert rest == "" and len(texts) == 2 * len(commands)
        each = zip(commands, texts[::2], texts[1::2], strict=True)
        return {command: jobs.Done(int(code), out, done.err) for command, out, code in each}

    return lambda ranks, *command: job(ranks)[command]


def bench(ranks: int, *arguments: str) -> jobs.Done:
    return jobs.mpi(ranks, "-m", "suite.cli", "bench", *arguments, *FEW)


def parsed(done: jobs.Done) -> list[dict[str, Any]]:
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["allreduce", "broadcast"])
def test_collectives_with_any_number_of_ranks(told: Told, name: str, ranks: int) -> None:
    rows = parsed(told(ranks, *SIZES[name]))
    assert [r["nbytes"] for r in rows] == [0, 8, 24, 4096]
    for row in rows:
        assert row["status"] == "ok"
        assert row["ranks"] == ranks
        assert row["metrics"]["time"]["n"] >= 1  # of 10, or of fewer where more ranks than cores are that slow
        receivers = ranks if name == "allreduce" else ranks - 1
        assert row["validation"]["checked_bytes"] == receivers * row["nbytes"]
        assert row["metrics"]["busbw"]["value"] is None or (ranks > 1 and row["nbytes"])
    assert rows[-1]["oversubscribed"] is (ranks > len(__import__("os").sched_getaffinity(0)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_is_right_or_unsupported(told: Told, dtype: str) -> None:
    (row,) = parsed(told(3, *TYPES[dtype]))
    assert row["status"] == "ok", row["reason"]
    assert row["validation"]["flipped_bit_caught"] is True


@pytest.mark.parametrize("name", PAIRS)
def test_point_to_point(told: Told, name: str) -> None:
    rows = parsed(told(2, *PAIRS[name]))
    assert [r["status"] for r in rows] == ["ok"] * 3
    assert rows[-1]["validation"]["checked_bytes"] == {"latency": 2, "bandwidth": 1, "bibw": 2}[name] * 65536
    if name != "latency":
        assert rows[0]["metrics"]["bandwidth"]["value"] is None
        large = rows[-1]["metrics"]
        payload = 64 * 65536 * (2 if name == "bibw" else 1)
        assert large["bandwidth"]["value"] == pytest.approx(payload / large["time"]["value"])


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_barrier(told: Told, ranks: int) -> None:
    (row,) = parsed(told(ranks, *BARRIER))
    assert (row["status"], row["nbytes"], row["dtype"]) == ("ok", None, "")


def test_only_rank_0_prints_a_table(told: Told) -> None:
    done = told(4, *TABLE)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].startswith("# allreduce: 4 ranks")
    assert lines[1].startswith("# sync: ") and lines[2].split()[1] == "size"
    assert [line.split()[0] for line in lines[3:7]] == ["8", "16", "32", "64"]
    assert all(line.startswith("# ") for line in lines[7:])
    assert done.err == ""


@pytest.mark.parametrize(("level", "first"), [("multiple", True), ("funneled", False)])
def test_thread_levels_that_differ_are_one_line_that_names_both(level: str, first: bool) -> None:
    """MPI starts with them, and in a later collective one rank's library ends the job with a stack of its own."""
    name, odd = ("allreduce", "--sizes", "8", *FEW), ("--thread-level", level)
    done = differing(name + odd if first else name, name if first else name + odd)
    ranks = (level, "single") if first else ("single", level)
    said = f"ranks have different thread levels: rank 0 {ranks[0]}, rank 1 {ranks[1]}"
    told = f"fabricbench: {said}; give all of them the same --thread-level"
    assert (done.code, done.out, done.err.splitlines()) == (2, "", [told])


def test_a_mistake_is_told_at_the_thread_level_that_was_asked_for() -> None:
    """The rank that finds it starts MPI only to tell, and must not do so in another way than the others."""
    name, level = ("allreduce", *FEW), ("--thread-level", "multiple")
    done = differing((*name, "--sizes", "8", *level), (*name, "--sizes", "x", *level))
    assert (done.code, done.out) == (2, "")
    (told,) = done.err.splitlines()
    assert told.startswith("fabricbench: rank 1: malformed size 'x'")


def differing(*each: Sequence[str]) -> jobs.Done:
    """A job whose ranks have command lines of their own."""
    command = [launch.find_launcher().path]
    for arguments in each:
        command += [*([":"] if len(command) > 1 else []), "-n", "1", sys.executable, "-m", "suite.cli", "bench"]
        command += arguments
    return jobs.run(command)


def test_a_collective_of_one_rank_says_that_nothing_is_sent(told: Told) -> None:
    done = told(1, *ALONE)
    assert done.code == 0, done.err
    assert "one rank alone: nothing crosses a link" in done.out.splitlines()[1]
    assert "# all sizes: busbw n/a (one rank: nothing crosses a link)" in done.out.splitlines()


def test_the_wrong_number_of_ranks_is_told_once(told: Told) -> None:
    done = told(3, *LATENCY_OF_THREE)
    assert done.code == 4
    assert done.err.count("latency takes exactly 2 ranks: this job has 3") == 1


@pytest.mark.parametrize("fault", ["plant_raise", "plant_raise_all", "plant_loop_error"])
def test_a_raising_rank_ends_the_job_with_one_traceback_and_leaves_no_shared_memory(fault: str) -> None:
    before = leftovers.present()
    done = bench(2, fault, "--module", "tests.plant")
    assert done.code != 0
    assert done.err.count("Traceback") == 1, done.err
    assert leftovers.present() <= before  # a run also removes what others left long ago


def test_wrong_arguments_are_told_once_by_many_ranks() -> None:
    wrong = ((2, "latency", "--frobnicate"), (2, "latency", "--module", "no.such"), (4, "allreduce", "--sizes", "x"))
    for ranks, *arguments in wrong:
        done = bench(ranks, *arguments)
        assert done.code == 2
        assert len([line for line in done.err.splitlines() if line.startswith("fabricbench")]) == 1, done.err


def test_wrong_data_prints_no_time(told: Told) -> None:
    done = told(2, *WRONG)
    assert done.code == 4
    assert "invalid: planted: wrong data" in done.out


@pytest.mark.parametrize("way", WAYS)
def test_a_collective_in_one_of_its_ways(told: Told, way: tuple[str, str, str]) -> None:
    (row,) = parsed(told(2, *way, "--sizes", "24", "--json"))
    assert row["status"] == "ok", row["reason"]
    name, option, value = way
    assert row[option.strip("-")] == value
    assert WAYS[way] in row["method"]["call"]
    assert told(2, *way, "--sizes", "24").out.startswith(
        f"# {name}: " if value == "library" else f"# {name}, {value}: "
    )


def test_a_library_of_torch_stands_in_the_place_of_mpi() -> None:
    command = ("-m", "suite.cli", "bench", "allreduce", "--backend", "gloo", "--sizes", "4K", "--json", *FEW)
    (row,) = parsed(jobs.mpi(2, *command, env={"GLOO_SOCKET_IFNAME": "lo"}))
    assert (row["status"], row["backend"]) == ("ok", "gloo"), row["reason"]
    assert row["method"]["call"] == "torch.distributed.all_reduce"
    assert row["validation"]["checked_after"] == 2 * 4096
    assert row["method"]["sync"] == "barrier" and "threads" in row["method"]["sync_reason"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("latency", "--device", "cuda"), 4, "no CUDA device: "),
        (("latency", "--device", "gpu"), 2, "invalid choice: 'gpu'"),
        (("latency", "--backend", "gloo"), 2, "latency has no backend 'gloo': leave out --backend"),
        (("barrier", "--device", "cuda"), 2, "barrier moves no data: leave out --device"),
        (("overlap_allreduce", "--device", "cuda"), 2, "overlap_allreduce takes host memory alone: leave out --device"),
    ],
)
def test_a_device_or_backend_that_is_not_here_is_told(arguments: tuple[str, ...], code: int, said: str) -> None:
    done = jobs.inside("bench", *arguments)
    assert done.code == code
    assert said in done.err.splitlines()[-1]


@pytest.mark.parametrize("command", NO_FAULT)
def test_what_is_unsupported_or_skipped_with_its_reason_is_no_fault(told: Told, command: tuple[str, ...]) -> None:
    """Rows that a library lacks made the whole command fail, where no other row stood beside them."""
    rows = parsed(told(2, *command))
    assert {row["status"] for row in rows} == {NO_FAULT[command]}
    if command[0] == "alltoall":
        assert rows[0]["reason"] == (
            "1 element makes no whole blocks for 2 ranks, and the library's are uneven:"
            " take sizes that are multiples of 8 B"
        )


def test_the_type_that_is_usual_is_told_of_each_benchmark() -> None:
    told = " ".join(jobs.inside("bench", "--help").out.split())
    bytewise = [b.name for b in registry.load() if b.usual_dtype == "int8"]
    assert {b.usual_dtype for b in registry.load()} == {"", "int8", "float32"}
    (said,) = re.findall(r"\(default: int8 in ([^;]*); float32 in others\)", told)
    assert sorted(said.split(", ")) == sorted(bytewise)


def test_message_rates_have_a_column_of_their_own(told: Told) -> None:
    done = told(2, *RATE)
    assert done.code == 0, done.err
    assert "message_rate uni Mmsg/s    Gbit/s" in done.out
    (row,) = parsed(told(2, *RATE, "--json"))
    assert row["metrics"]["message_rate"]["value"] == pytest.approx(64 / row["metrics"]["time"]["value"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("allreduce", "--algorithm", "nope"), "allreduce has no algorithm 'nope': one of library, ring, "),
        (("broadcast", "--mode", "in-place"), "broadcast has no mode 'in-place': one of blocking, nonblocking"),
        (("latency", "--algorithm", "ring"), "latency has no algorithm 'ring': leave out --algorithm"),
        (("allreduce", "--algorithm", "ring", "--mode", "in-place"), "ways apart: give one of them"),
    ],
)
def test_ways_that_a_benchmark_has_not_are_refused(arguments: tuple[str, ...], said: str) -> None:
    done = jobs.inside("bench", *arguments)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert said in done.err


def test_list_names_the_benchmarks() -> None:
    done = jobs.inside("bench", "--list")
    assert done.code == 0
    for name in ("latency", "bandwidth", "bibw", "allreduce", "broadcast", "barrier", "offload_allreduce", "train"):
        assert name in done.out


def test_pages_and_thread_level_are_recorded() -> None:
    (row,) = parsed(bench(2, "latency", "--sizes", "8", "--json", "--pages", "huge", "--thread-level", "multiple"))
    assert row["method"]["pages"] == "huge"
    assert row["thread_level"] == "multiple"
