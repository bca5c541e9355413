"""Other suites' output: what they printed comes out in our units and sizes, and nothing broken comes out at all."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from microbench.record import Record
from suite.imported import formats, records
from suite.imported.formats import FORMATS, read
from suite.imported.model import Log, Trouble
from suite.imported.records import Told
from suite.imported.tables import CUT, EMPTY, TWICE

SAMPLES = Path(__file__).parent / "samples"
NAMES = sorted(path.name for path in SAMPLES.iterdir())
SUITES = {
    "imb": "IMB", "iperf3": "iperf3", "mpi4py": "mpi4py.bench", "nccl": "nccl-tests", "rccl": "rccl-tests",
    "osu": "OSU", "perftest": "perftest",
}  # fmt: skip
LATENCY = "# OSU MPI Latency Test v7.4\n# Datatype: MPI_CHAR.\n# Size       Avg Latency(us)\n"


def text_of(name: str) -> str:
    return (SAMPLES / name).read_text("utf-8")


def made(text: str, told: Told | None = None, **how: str) -> tuple[list[Record], list[Trouble]]:
    new, left = records.records("log.txt", read(text, **how), told or Told("eth0"), Counter())
    return list(new), list(left)


def sample(name: str, ranks: int = 0, **how: str) -> list[Record]:
    new, left = made(text_of(name), Told("eth0", ranks), **how)
    assert not left
    return new


def at(found: Iterable[Record], nbytes: int | None, **fields: object) -> Record:
    (record,) = [r for r in found if r.nbytes == nbytes and all(getattr(r, k) == v for k, v in fields.items())]
    return record


def value(record: Record, name: str) -> float:
    found = record.metrics[name].value
    assert found is not None, record.metrics[name].note
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_sample_is_recognised_and_understood_to_the_last_line(name: str) -> None:
    logs = read(text_of(name), operation="all_gather")
    expected = "OMB-Py" if name == "osu_python.txt" else SUITES[name.replace(".", "_").split("_")[0]]
    assert all(log.suite.startswith(expected) for log in logs)
    assert not any(log.troubles for log in logs)
    rows = sum(line.strip()[:1].isdigit() for line in text_of(name).splitlines()) if name.endswith(".txt") else 1
    assert sum(len(log.found) for log in logs) >= rows


@pytest.mark.parametrize("name", NAMES)
def test_nothing_imported_claims_a_proof_samples_or_an_interval(name: str) -> None:
    for record in sample(name, 4, operation="all_gather"):
        assert (record.proof, record.samples, record.recipe) == ("imported", {}, "")
        assert record.method["line"] >= 1
        assert all((m.low, m.high) == (None, None) and m.note for m in record.metrics.values())
        assert all(m.kind in ("imported", "derived") for m in record.metrics.values())
        assert Record.from_dict(json.loads(record.to_json())) == record


@pytest.mark.parametrize("name", NAMES)
def test_cut_anywhere_nothing_that_is_kept_is_wrong(name: str) -> None:
    """What is kept of a file that ends anywhere is a part of what the whole file gives; a cut number never is."""
    text, told = text_of(name), Told("eth0", 4)
    whole = {(r.id, r.launch, r.method["line"]): r.metrics for r in made(text, told, operation="all_gather")[0]}
    for end in range(0, len(text), max(1, len(text) // 60)):
        kept, left = made(text[:end], told, operation="all_gather")
        for r in kept:
            assert r.metrics == whole.get((r.id, r.launch, r.method["line"])), (end, r.id)
        assert len(kept) <= len(whole)
        if end and not kept and text[:end].strip(" \n#*=-\t"):
            assert left, end


@pytest.mark.parametrize("forced", FORMATS)
def test_taken_for_another_suites_it_is_told_and_nothing_falls_over(forced: str) -> None:
    for name in NAMES:
        logs = read(text_of(name), forced)
        assert any(log.found or log.troubles for log in logs), name


@pytest.mark.parametrize(
    "junk", ["", "\n\n", "hello\n", "\x00\x01\xff", "{", "[]", "[1, 2]", '{"a": {"b": [', "#\n" * 9]
)
def test_junk_gives_no_record(junk: str) -> None:
    for name in ("", *FORMATS):
        found, left = made(junk, name=name)
        assert not found
        assert left or not junk.strip(" \n#"), name


def test_osu_latency_and_its_validation() -> None:
    found = at(sample("osu_latency.txt"), 65536)
    assert (found.benchmark, found.direction, found.ranks, found.dtype) == ("latency", "ping-pong", 2, "int8")
    assert value(found, "time") == pytest.approx(13.59e-6)
    checked = at(sample("osu_latency_validated.txt"), 4)
    assert checked.validation == {"by": "OSU", "result": "pass"}
    wrong = made(text_of("osu_latency_validated.txt").replace("4.30              Pass", "4.30              Fail"))[0]
    assert (at(wrong, 4).status, at(wrong, 8).status) == ("invalid", "ok")


def test_osu_bandwidths_are_of_a_million_bytes() -> None:
    """A public case: a column of MB/s that is wrong by 10^6."""
    assert value(at(sample("osu_bw.txt"), 1 << 20), "bandwidth") == pytest.approx(8945.92e6)
    both = at(sample("osu_bibw.txt"), 1 << 20)
    assert (both.benchmark, both.direction, value(both, "bandwidth")) == ("bibw", "bi", pytest.approx(15818.44e6))
    pairs = at(sample("osu_mbw_mr.txt"), 8)
    assert (pairs.benchmark, pairs.ranks, pairs.method["window"]) == ("message_rate", 2, 64)
    assert value(pairs, "message_rate") == pytest.approx(921543.53)
    assert value(pairs, "bandwidth") == pytest.approx(7.37e6)


def test_osu_with_all_its_columns() -> None:
    found = at(sample("osu_allreduce_full_tails.txt", 2), 65536)
    assert {name: value(found, name) for name in found.metrics if name != "busbw"} == {
        "time": pytest.approx(51.57e-6), "time_min": pytest.approx(51.56e-6), "time_max": pytest.approx(51.58e-6),
        "time_p50": pytest.approx(48.22e-6), "time_p90": pytest.approx(48.52e-6), "time_p99": pytest.approx(120.63e-6),
    }  # fmt: skip
    assert found.metrics["time"].n == 100
    assert value(found, "busbw") == pytest.approx(65536 / 51.57e-6)
    assert found.metrics["busbw"].kind == "derived"


def test_sizes_are_one_ranks_send_buffer_whatever_a_suite_counts() -> None:
    """A public case: a size meant ranks x count in some operations. 3 ranks: 4 B to each are 12 B."""
    alltoall = sample("osu_alltoall.txt", 3)
    assert alltoall[2].nbytes == 12
    assert value(alltoall[2], "busbw") == pytest.approx(8 / 4.45e-6)
    left = made(text_of("osu_alltoall.txt"))[1]
    assert [t.why for t in left] == [records.NO_RANKS]
    gathered = sample("nccl_unnamed.txt", operation="all_gather")
    assert gathered[0].nbytes == 4194304 // 4
    assert value(gathered[0], "busbw") == pytest.approx(52.43e9)


def test_overlap_is_signed_and_is_not_told_where_the_collective_takes_no_time() -> None:
    """A public case: t_pure 0.01 us, t_ovrl 9989 us, and 100.00 printed for the overlap; next row 0.00."""
    found = at(sample("osu_iallreduce.txt", 2), 8)
    assert (found.benchmark, found.mode) == ("overlap_allreduce", "OSU")
    assert value(found, "overlap_printed") == 0
    assert value(found, "host.overlap") == pytest.approx((4.25 + 4.97 - 11.68) / 4.25)
    assert value(found, "host.exposed") == pytest.approx(6.71e-6)
    row = "            0           50         8.53         4.90         3.48         0.00"
    text = text_of("imb_nbc.txt").replace(
        row, "            0           50      9989.00         0.01      9989.00       100.00"
    )
    zero = at(made(text)[0], 0)
    assert zero.metrics["host.overlap"].value is None
    assert "too short" in zero.metrics["host.overlap"].note
    assert value(zero, "overlap_printed") == pytest.approx(1.0)
    tests = at(sample("osu_iallreduce_full_tests.txt", 2), 65536)
    assert value(tests, "host.test") == pytest.approx(38.84e-6)


@pytest.mark.parametrize(
    ("title", "buffers", "device"),
    [("MPI-CUDA", "DEVICE (D) and Receive Buffer on HOST (H)", "cuda"),
     ("MPI", "HOST (H) and Receive Buffer on HOST (H)", "cpu"),
     ("MPI", "DEVICE (D) and Receive Buffer on DEVICE (D)", "device")],
)  # fmt: skip
def test_where_buffers_were_is_not_lost(title: str, buffers: str, device: str) -> None:
    text = LATENCY.replace("MPI Latency", f"{title} Latency").replace("# Size", f"# Send Buffer on {buffers}\n# Size")
    (found,), left = made(text + "8     2.05\n")
    assert not left
    assert found.device == device


def test_one_sided_tests_are_not_taken_for_two_sided_ones() -> None:
    title = "# OSU MPI_Put Latency Test v5.9\n# Window creation: MPI_Win_allocate\n"
    text = title + "# Size          Latency (us)\n8     1.05\n"
    (found,), left = made(text, Told("eth0", 2))
    assert not left
    assert (found.benchmark, value(found, "time")) == ("osu_put_latency", pytest.approx(1.05e-6))


def test_a_barrier_and_startup_have_no_size() -> None:
    barrier = at(sample("osu_barrier.txt", 4), None)
    assert (barrier.benchmark, barrier.ranks, value(barrier, "time")) == ("barrier", 4, pytest.approx(1.42e-6))
    init = at(sample("osu_init.txt"), None)
    assert (init.benchmark, init.ranks, value(init, "time_max")) == ("osu_init", 2, pytest.approx(24e-3))


def test_several_tables_in_a_file_and_the_python_suite() -> None:
    text = text_of("osu_latency.txt") + text_of("osu_bw.txt") + text_of("osu_python.txt") + text_of("imb_mpi1.txt")
    found, left = made(text)
    assert not left
    assert Counter(r.mode for r in found) == {"OSU": 38, "OMB-Py": 6, "IMB-MPI1": 35}
    assert value(at(found, 4, mode="OMB-Py", benchmark="bibw"), "bandwidth") == pytest.approx(5.58e6)


def test_the_same_table_again_is_another_launch_where_the_ranks_are_told() -> None:
    text = text_of("osu_allreduce.txt") * 2
    known = [r.launch for r in made(text, Told("eth0", 4))[0] if r.nbytes == 4]
    assert known == [1, 2]
    unknown = [r for r in made(text)[0] if r.nbytes == 4]
    assert [r.launch for r in unknown] == [1, 1]
    assert len({r.id for r in unknown}) == 2
    assert all(r.ranks == 0 and "ranks not told" in r.workload and "busbw" not in r.metrics for r in unknown)


def test_imb_takes_the_slowest_rank_and_keeps_what_ran_out_of_time() -> None:
    found = at(sample("imb_mpi1.txt"), 65536, benchmark="allreduce")
    assert (found.ranks, found.dtype, value(found, "time")) == (2, "float32", pytest.approx(20.94e-6))
    assert value(found, "time_mean") == pytest.approx(20.93e-6)
    ping = at(sample("imb_mpi1.txt"), 65536, benchmark="latency")
    assert value(ping, "bandwidth") == pytest.approx(4730.85e6)
    stopped = [r for r in sample("imb_mpi1_2_and_4_ranks.txt") if r.status == "timeout"]
    assert [(r.benchmark, r.nbytes) for r in stopped] == [("allreduce", 4), ("imb_sendrecv", 8)]
    assert value(at(sample("imb_p2p.txt"), 8), "message_rate") == 57500


def test_an_old_imb_means_binary_megabytes() -> None:
    """A public case: units that differ between MPI benchmarks; the ratio is exactly 1.048576."""
    old = text_of("imb_mpi1.txt").replace("4730.85", f"{4730.85 / 1.048576:.2f}").replace("2021.11", "4.1")
    ping = at(made(old)[0], 65536, benchmark="latency")
    assert value(ping, "bandwidth") == pytest.approx(4730.85e6, rel=1e-4)
    assert value(at(made(old)[0], 8, benchmark="latency"), "bandwidth") == pytest.approx(5.61e6)  # its own row tells


def test_nccl_tests_as_text() -> None:
    found = sample("nccl_all_reduce.txt")
    last = at(found, 4194304, mode="nccl-tests")
    assert (last.benchmark, last.backend, last.device, last.ranks) == ("allreduce", "nccl", "cuda", 4)
    assert last.hosts == ("node-a", "node-a", "node-b", "node-b")
    assert last.ranks_per_host == 2
    assert (value(last, "time"), value(last, "busbw")) == (pytest.approx(419.43e-6), pytest.approx(15e9))
    assert last.metrics["time"].n == 20
    wrong = at(found, 4194304, mode="nccl-tests in-place")
    assert (wrong.status, wrong.reason) == ("invalid", "its own check found 3 wrong elements")


def test_nccl_tests_that_do_not_say_what_they_ran() -> None:
    left = made(text_of("nccl_unnamed.txt"))[1]
    assert [(t.where, "--benchmark" in t.why) for t in left] == [("lines 12-14", True)]
    unnamed = "\n".join(line for line in text_of("nccl_all_reduce.txt").splitlines() if "Collective test" not in line)
    found = made(unnamed + "\n")[0]
    assert {r.benchmark for r in found} == {"allreduce"}  # sum over 4 ranks, and busbw is 1.5 algbw
    assert {r.nbytes for r in found} == {262144, 4194304}  # smaller ones print too few digits to tell


def test_nccl_tests_in_two_jobs_that_wrote_one_file() -> None:
    """A public case: built without MPI, each host runs its own test: two tables, and no traffic between hosts."""
    alone = "\n".join(
        line for line in text_of("nccl_all_reduce.txt").splitlines() if "Rank  2" not in line and "Rank  3" not in line
    )
    found, left = made(alone + "\n" + alone.replace("node-a", "node-b") + "\n")
    assert not left
    assert {r.ranks for r in found} == {2}
    assert {r.hosts for r in found} == {("node-a", "node-a"), ("node-b", "node-b")}


def test_chatter_of_nccl_and_tags_of_a_launcher_are_no_rows() -> None:
    noisy = "\n".join(f"[1,0]<stdout>:{line}" for line in text_of("nccl_all_reduce.txt").splitlines())
    noisy = noisy.replace(
        "#       size", "node-a:6899:6910 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P\n#       size", 1
    )
    found, left = made(noisy + "\n")
    assert [r.metrics for r in found] == [r.metrics for r in sample("nccl_all_reduce.txt")]
    assert not left


def test_nccl_tests_as_json() -> None:
    found = sample("nccl.json")
    first = at(found, 8388608, mode="nccl-tests")
    assert (first.benchmark, first.ranks, first.hosts) == ("reduce_scatter", 2, ("node-a", "node-b"))
    assert value(first, "busbw") == pytest.approx(19.925435e9)
    assert first.validation == {"by": "nccl-tests", "result": "pass"}
    nan = at(found, 16777216, mode="nccl-tests in-place")
    assert nan.metrics["time"].value is None
    assert nan.metrics["time"].note == "n/a: printed as no number"


def test_rccl_tests_as_json_and_as_fragments_of_it() -> None:
    """A public case: the JSON is fragments, not one document."""
    found = sample("rccl.json")
    assert [(r.benchmark, r.backend, r.device, r.ranks, r.dtype) for r in found] == [
        ("allreduce", "rccl", "rocm", 16, "float16")
    ] * 2
    assert [r.status for r in found] == ["ok", "invalid"]
    fragments = text_of("rccl.json").strip().strip("[]")
    assert [r.metrics for r in made(fragments)[0]] == [r.metrics for r in found]
    kept, left = made(fragments[: fragments.rindex('"busBw"')])
    assert [r.metrics for r in kept] == [found[0].metrics]
    assert [t.line for t in left][-1] == 3


def test_perftest_as_text_and_json() -> None:
    small = at(sample("perftest_write_bw.txt"), 2)
    assert (small.benchmark, small.backend, small.mode) == ("bandwidth", "verbs", "perftest RDMA_Write")
    assert value(small, "bandwidth") == pytest.approx(6.92 * 2**20)
    assert value(small, "message_rate") == pytest.approx(3.62634e6)
    gbit = text_of("perftest_write_bw.txt").replace("[MB/sec]", "[Gb/sec]").replace("11680.40", "97.98")
    assert value(at(made(gbit)[0], 65536), "bandwidth") == pytest.approx(97.98e9 / 8)
    slow = at(sample("perftest_send_lat.txt"), 4096)
    assert (slow.benchmark, slow.method["statistic"]) == ("latency", "median")
    assert (value(slow, "time"), value(slow, "time_mean"), value(slow, "time_p99")) == pytest.approx(
        (2.36e-6, 2.37e-6, 2.51e-6)
    )
    packed = at(sample("perftest.json"), 65536)
    assert value(packed, "bandwidth") == pytest.approx(2229.27 * 2**20)  # as the messages per second have it
    assert made(text_of("perftest.json").replace("0.035668", "0.05"))[0] == []
    assert sample("perftest_send_lat.txt")[0].ranks == 2


def test_iperf3_is_what_the_receiver_got() -> None:
    (found,) = sample("iperf3.json")
    assert (found.benchmark, found.hosts, found.nbytes) == ("bandwidth", ("127.0.0.1", "127.0.0.1"), 131072)
    assert value(found, "bandwidth") == pytest.approx(9667223016.0579243 / 8)
    assert value(found, "retransmits") == 31
    failed = made('{"start": {"version": "iperf 3.12"}, "error": "error - unable to connect to server: refused"}')[0]
    assert [(r.status, r.reason) for r in failed] == [("failed", "unable to connect to server: refused")]


def test_mpi4py_bench() -> None:
    found = at(sample("mpi4py_bench_pingpong.txt"), 4096)
    assert (value(found, "time"), found.metrics["time"].n) == (pytest.approx(5.3377554e-06), 10000)


def test_interleaved_tables_give_nothing_rather_than_something_wrong() -> None:
    """A public case: outputs are interleaved, and records get lost."""
    rows = "1     2.05\n1     0.81\n2     2.15\n2     1.47\n"
    text = LATENCY + "# OSU MPI Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n" + rows
    found, left = made(text)
    assert not found
    assert (Trouble(1, EMPTY) in left, Trouble(6, TWICE, 9) in left) == (True, True)
    torn = LATENCY + "1     2.05\n01 bf16  bf16 [3.0,\n2     2.15 4     1.88\n8     2.11\n"
    kept, left = made(torn)
    assert [r.nbytes for r in kept] == [1, 8]
    assert [t.where for t in left] == ["lines 5-6"]


def test_rows_before_a_hang_are_kept() -> None:
    """A public case: a run hangs at 4 MB with the rows before it already printed."""
    kept, left = made(LATENCY + "1024                    2.50\n1048576               93.1")
    assert [r.nbytes for r in kept] == [1024]
    assert [(t.line, t.why) for t in left] == [(5, CUT)]
    assert (
        made(LATENCY + "1024                    2.50\n2048                    2.72")[1] == []
    )  # its width shows it whole


def test_every_line_that_is_not_understood_is_named() -> None:
    found, left = made("srun: job 7 queued\n\n" + LATENCY + "1     2.05\nMPI_ABORT was invoked\n2     -\n4     nan\n")
    assert [t.line for t in left] == [1, 7, 8]
    assert [r.nbytes for r in found] == [1, 4]
    assert found[1].metrics["time"].value is None
    assert made("# OSU MPI Latency Test v7.4\n")[1] == [Trouble(1, EMPTY)]


def test_reading_is_fast_enough_for_a_day_of_logs() -> None:
    """A file of 4,000 rows and one of noise take no time that grows with their square."""
    many = "".join(LATENCY + "".join(f"{1 << i}    {i}.50\n" for i in range(20)) for _ in range(200))
    assert sum(len(log.found) for log in read(many)) == 4000
    noise: tuple[Log, ...] = formats.read("{" * 20000 + "\n" + "x\n" * 20000)
    assert not any(log.found for log in noise)
