"""Chapter 4's second part: algorithms side by side, who is fastest, and where nobody is."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from reports.load import RunData
from reports.render import render
from reports.starts import explained_s
from reports.summary import Summary, summarise
from reports.variants import best, comparisons, contests, label
from reports.view import view
from tests.reports.folder import METHOD, MIB, Folder, lab_run, metric

US = 1e-6
KIB = 1024
OURS = ("ring", "recursive-doubling", "rabenseifner", "binomial", "two-level-leaders", "two-level-reduce-scatter",
        "pipelined-tree")  # fmt: skip
SIZES = (8, 64, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 9_628_128, 64 * MIB)


def plant(f: Folder, algorithm: str, nbytes: int, time_us: float, fabric: str = "eth2g5", half: float = 0.01,
          **more: Any) -> None:  # fmt: skip
    """An allreduce of two ranks whose interval is ``half`` of its time wide, each way."""
    time = time_us * US
    numbers = {"time": metric(time, half=half), "time_p99": metric(1.5 * time, half=0.1),
               "busbw": metric(nbytes / time, "bytes/s", half=half, better="higher")}  # fmt: skip
    more.setdefault("ranks_per_host", 1)
    f.add("allreduce", fabric, nbytes, algorithm=algorithm, dtype=more.pop("dtype", "float32"), metrics=numbers, **more)


def stream(f: Folder, rate: float = 290e6, fabric: str = "eth2g5") -> None:
    for nbytes, part in ((KIB, 0.3), (MIB, 1.0), (4 * MIB, 0.9)):
        got = {"bandwidth": metric(part * rate, "bytes/s", better="higher")}
        f.add("bandwidth", fabric, nbytes, direction="uni", dtype="int8", algorithm="library", metrics=got)


def crossing(f: Folder, fabric: str = "eth2g5") -> None:
    """Recursive doubling wins to 1 KiB, nobody at 16 KiB, the library from 64 KiB."""
    for nbytes, library, ours, gloo in ((8, 20.0, 16.0, 90.0), (KIB, 22.0, 18.0, 92.0), (16 * KIB, 100.0, 100.5, 150.0),
                                        (64 * KIB, 300.0, 400.0, 420.0), (MIB, 4000.0, 6000.0, 5000.0)):  # fmt: skip
        plant(f, "library", nbytes, library, fabric)
        plant(f, "recursive-doubling", nbytes, ours, fabric)
        plant(f, "default", nbytes, gloo, fabric, backend="gloo")


def chapter(f: Folder, directory: Path, number: int = 4) -> str:
    text = render(f.write(directory))
    cuts = [m.start() for m in re.finditer(r"^\d [^\n]+\n-{5,}$", text, re.MULTILINE)]
    return text[cuts[number - 1] : cuts[number]]


def table(text: str, heading: str) -> list[str]:
    """The lines of the table under a heading that begins so."""
    lines = text[text.index(heading) :].splitlines()
    rule = next(i for i, line in enumerate(lines) if line and not line.strip("- "))
    return lines[rule + 1 :]


def findings(f: Folder, directory: Path) -> list[dict[str, Any]]:
    told = json.loads(render(f.write(directory), "json"))["findings"]
    return [x for x in told if x["chapter"] == 4 and "fastest" in x["values"]]


def summaries(f: Folder) -> tuple[Summary, ...]:
    return summarise(f.records)


def marked(times: list[tuple[str, float, float | None]]) -> dict[str, str]:
    """The marks at one size of algorithms with a time and half an interval."""
    f = Folder()
    for name, time, half in times:
        f.add("allreduce", "shm", 8, algorithm=name, metrics={"time": metric(time, half=half)})
    made = summaries(f)
    marks = best(made)
    return {label(s): marks[s.id] for s in made if s.id in marks}


def test_the_library_stands_fabric_beside_fabric_alone(tmp_path: Path) -> None:
    f = Folder()
    for fabric in ("eth2g5", "eth10g"):
        crossing(f, fabric)
    text = chapter(f, tmp_path)
    assert text.count("Allreduce, time of the slowest rank: ") == 1
    beside = text.split("Algorithms side by side")[0]
    assert "library algorithm" in beside
    assert "recursive" not in beside
    assert beside.count("eth10g") == 5


def test_a_line_has_all_its_numbers(tmp_path: Path) -> None:
    f = Folder()
    stream(f)
    crossing(f)
    text = chapter(f, tmp_path)
    heading = "Allreduce on eth2g5, by algorithm: 2 ranks on 2 hosts, pure recipe, float32, MPICH 5.0.2, EMULATED"
    rows = table(text, heading)
    assert [row.split()[:3] for row in rows[:3]] == [
        ["8", "B", "library"], ["*", "recursive-doubling", "16.00"], ["gloo", "default", "90.00"]]  # fmt: skip
    large = next(i for i, row in enumerate(rows) if row.lstrip().startswith("1 MiB"))
    # 1 MiB in 4 ms are 262.144 MB/s, 90.4 % of 290 MB/s
    assert rows[large].split() == ["1", "MiB", "*", "library", "4000.0", "[3960.0,", "4040.0]", "6000.0", "(6600.0)",
                                   "262.144", "90.4", "1000", "1.00x"]  # fmt: skip
    assert rows[large + 1].split()[-4:] == ["1000", "0.67x", "[0.65,", "0.68]"]
    told = " ".join(text.split())
    assert "measured on the fabric (uni, chapter 3): eth2g5 290.000 MB/s at 1 MiB" in told
    assert "a burst" not in told
    assert "EMULATED" not in "".join(rows)


def test_without_a_stream_there_is_no_share(tmp_path: Path) -> None:
    f = Folder()
    crossing(f)
    text = chapter(f, tmp_path)
    assert "eth2g5 none measured" in " ".join(text.split())
    assert table(text, "Allreduce on eth2g5, by")[0].split()[-3] == "-"


def test_a_stream_within_a_burst_is_told(tmp_path: Path) -> None:
    f = Folder()
    stream(f, rate=400e6)
    crossing(f)
    assert "at 1 MiB, above the declared rate, so a burst" in " ".join(chapter(f, tmp_path).split())


@pytest.mark.parametrize(
    ("times", "told"),
    [([("a", 1.0, 0.01), ("b", 2.0, 0.01), ("c", 3.0, 0.01)], {"a": "*"}),
     ([("a", 1.0, 0.01), ("b", 1.01, 0.01), ("c", 3.0, 0.01)], {"a": "=", "b": "="}),
     # b lies apart from a; c, behind it, does not: nobody has won
     ([("a", 1.0, 0.01), ("b", 1.1, 0.01), ("c", 2.0, 0.6)], {"a": "=", "c": "="}),
     ([("a", 1.0, None), ("b", 2.0, 0.01)], {}),
     ([("a", 1.0, 0.01), ("b", 2.0, None)], {}),
     ([("a", 1.0, None), ("b", 2.0, 0.01), ("c", 3.0, 0.01)], {"b": "*"}),
     ([("a", 1.0, 0.01)], {})],
)  # fmt: skip
def test_only_intervals_that_lie_apart_make_a_winner(
    times: list[tuple[str, float, float | None]], told: dict[str, str]
) -> None:
    assert marked(times) == told


def test_launches_that_overlap_are_not_told_apart() -> None:
    f = Folder()
    for launch, (library, ring) in enumerate(((10.0, 12.0), (11.0, 13.0), (12.5, 14.0)), 1):
        plant(f, "library", 8, library, launch=launch)
        plant(f, "ring", 8, ring, launch=launch)
    (contest,) = contests(summaries(f))
    assert contest.fastest.algorithm == "library"
    assert contest.winner is None, "the slowest launch of the library took longer than the fastest of the ring"


@pytest.mark.parametrize(("launches", "ranked"), [(1, True), (2, False), (5, False), (6, True)])
def test_the_range_of_a_few_launches_ranks_nobody(tmp_path: Path, launches: int, ranked: bool) -> None:
    """Two launches of each lie apart by chance once in three."""
    f = Folder(launches)
    for launch in range(1, launches + 1):
        plant(f, "library", 8, 20.0 + 0.01 * launch, launch=launch)
        plant(f, "ring", 8, 30.0 + 0.01 * launch, launch=launch)
    assert bool(findings(f, tmp_path)) == ranked
    why = f"not ranked, as its time says too little of the call: only a range of {launches} launches, where a verdict"
    assert (why in " ".join(chapter(f, tmp_path).split())) == (not ranked)


@pytest.mark.parametrize(("launches", "warned"), [(1, True), (6, False)])
def test_one_launch_is_told_to_say_little(tmp_path: Path, launches: int, warned: bool) -> None:
    f = Folder(launches)
    for launch in range(1, launches + 1):
        plant(f, "library", 8, 20.0 + 0.01 * launch, launch=launch)
        plant(f, "ring", 8, 30.0 + 0.01 * launch, launch=launch)
    assert ("the next launch may differ by more" in " ".join(chapter(f, tmp_path).split())) == warned


def test_forms_are_rows_that_contend_among_themselves(tmp_path: Path) -> None:
    f = Folder()
    plant(f, "library", 8, 20.0)
    plant(f, "library", 8, 10.0, mode="in-place")
    plant(f, "library", 8, 25.0, mode="nonblocking")
    plant(f, "ring", 8, 30.0)
    text = chapter(f, tmp_path)
    rows = table(text, "Allreduce on eth2g5, by")
    assert [re.split(r" {2,}", row.strip())[1:3] for row in rows[:1]] == [["*", "library"]]
    assert [re.split(r" {2,}", row.strip())[0] for row in rows[1:4]] == [
        "ring", "library, in-place", "library, nonblocking"]  # fmt: skip
    assert "2.00x [1.96, 2.04]" in rows[2]
    assert "contend among themselves" in " ".join(text.split())


def test_what_else_differs_makes_a_table_of_its_own() -> None:
    f = Folder()
    for name in ("library", "ring"):
        plant(f, name, 8, 20.0)
        plant(f, name, 8, 21.0, dtype="float16")
        plant(f, name, 8, 22.0, mode="barrier sync")
        plant(f, name, 8, 23.0, fabric="eth10g")
        plant(f, name, 8, 24.0, ranks=4, hosts=("h0", "h0", "h1", "h1"), ranks_per_host=2, recipe="job")
    plant(f, "library", 8, 25.0, dtype="int32")
    assert [len(rows) for rows in comparisons(summaries(f))] == [2] * 5


def test_another_backend_stands_beside_each_mpi() -> None:
    f = Folder()
    plant(f, "gloo", 8, 30.0, backend="gloo")
    made = list(summaries(f))
    for mpi in ("MPICH 5.0.2", "Open MPI 5.0.6"):
        f = Folder()
        plant(f, "library", 8, 20.0)
        made += [Summary(**{**vars(s), "mpi": mpi, "id": f"{s.id}/{mpi}"}) for s in summaries(f)]
    assert [[(s.mpi, label(s)) for s in rows] for rows in comparisons(made)] == [
        [("MPICH 5.0.2", "library"), ("MPICH 5.0.2", "gloo")],
        [("Open MPI 5.0.6", "library"), ("MPICH 5.0.2", "gloo")],
    ]


def test_an_algorithm_without_company_stands_fabric_beside_fabric(tmp_path: Path) -> None:
    f = Folder()
    for fabric in ("eth2g5", "eth10g"):
        plant(f, "ring", MIB, 4000.0, fabric)
    text = chapter(f, tmp_path)
    assert "Algorithms side by side" not in text
    assert "ring algorithm" in text
    assert "allreduce of 1 MiB on 2 ranks (mpi, ring, float32)" in " ".join(render(tmp_path).split())


def test_the_finding_tells_where_each_is_fastest(tmp_path: Path) -> None:
    f = Folder(launches=1)
    crossing(f)
    (told,) = findings(f, tmp_path)
    assert told["text"] == (
        "allreduce on eth2g5 (EMULATED), 2 ranks, float32: fastest recursive-doubling to 1 KiB (up to 1.25x "
        "[1.23, 1.28] the library, at 8 B), library from 64 KiB; not told apart at 16 KiB (within one launch)."
    )
    assert told["text"] in " ".join(render(tmp_path).split("1 System and method")[0].split())
    first, middle, last = (told["values"]["fastest"][i] for i in (0, 2, 4))
    assert (first["nbytes"], first["algorithm"], first["told_apart"]) == (8, "recursive-doubling", True)
    assert first["time"] == pytest.approx(16 * US)
    assert first["vs_library"]["low"] == pytest.approx(20 * 0.99 / (16 * 1.01))
    assert (middle["told_apart"], middle["equals"]) == (False, ["recursive-doubling"])
    assert (last["algorithm"], last["backend"], last["vs_library"]) == ("library", "mpi", None)


@pytest.mark.parametrize(
    ("winners", "told"),
    [("rrrr", "fastest ring at all 4 sizes (up to"),
     ("rllr", "fastest ring at 8 B and at 4 KiB (up to"),
     ("lrrl", "fastest library at 8 B and at 4 KiB, ring at 64 B to 1 KiB (up to"),
     ("rrll", "fastest ring to 64 B (up to 2.00x"),
     ("r---", "fastest ring at 8 B (2.00x [1.96, 2.04] the library); not told")],
)  # fmt: skip
def test_sizes_are_told_as_spans(tmp_path: Path, winners: str, told: str) -> None:
    f = Folder()
    for nbytes, won in zip(SIZES, winners, strict=False):
        plant(f, "library", nbytes, 20.0 if won == "r" else 10.0)
        plant(f, "ring", nbytes, 20.0 if won == "l" else 10.0)
    (finding,) = findings(f, tmp_path)
    assert told in finding["text"]
    assert ("not told apart" in finding["text"]) == ("-" in winners)


def test_nothing_is_said_of_a_network_within_a_host_or_where_nothing_is_told_apart(tmp_path: Path) -> None:
    f = Folder()
    plant(f, "library", 8, 20.0, half=0.3)
    plant(f, "ring", 8, 21.0, half=0.3)
    for name, time in (("library", 20.0), ("ring", 30.0)):
        plant(f, name, 64, time, "eth10g", hosts=("h0", "h0"), ranks_per_host=2)
    assert findings(f, tmp_path) == []


def test_within_a_host_the_first_lines_tell_of_allreduce_alone(tmp_path: Path) -> None:
    """They named the fastest for networks only, and JSON did so too."""
    f = Folder()
    crossing(f, "shm")
    for name, time in (("library", 20.0), ("ring", 30.0)):
        plant(f, name, 8, time, "tcp-lo", mode="nonblocking")
        f.add("allgather", "shm", 8, algorithm=name, metrics={"time": metric(time * US)})
    told = {(x["values"]["benchmark"], x["values"]["fabric"]): x for x in findings(f, tmp_path)}
    assert set(told) == {("allreduce", "shm"), ("allreduce", "tcp-lo"), ("allgather", "shm")}
    assert told["allreduce", "shm"]["text"].startswith("allreduce on shm, 2 ranks, float32: fastest recursive-doubling")
    short = " ".join(render(tmp_path).split("1 System and method")[0].split())
    assert [told[key]["text"] in short for key in told] == [told[key]["short"] for key in told]
    assert told["allreduce", "shm"]["short"] and not told["allgather", "shm"]["short"]
    assert "Allreduce on shm, by algorithm" in chapter(f, tmp_path)


LATE = {"valid_fraction": 0.3, "warnings": ["most iterations began late on some rank: all are kept"]}
MEANINGLESS = [
    ({"entry_skew": metric(12 * US)}, METHOD, 0.01, "mostly entry skew"),
    ({}, METHOD | LATE, 0.01, "most iterations began late"),
    ({}, METHOD, None, "no interval"),
]


@pytest.mark.parametrize(("more", "method", "half", "why"), MEANINGLESS)
def test_what_says_too_little_of_the_call_is_not_ranked(
    tmp_path: Path, more: dict[str, Any], method: dict[str, Any], half: float | None, why: str
) -> None:
    """The report called the same rows meaningless, and the fastest."""
    f = Folder()
    numbers = {"time": metric(16 * US, half=half), **more}
    f.add("allreduce", "eth2g5", 8, algorithm="ring", dtype="float32", ranks_per_host=1, metrics=numbers, method=method)
    plant(f, "library", 8, 20.0)
    plant(f, "binomial", 8, 40.0)
    text = chapter(f, tmp_path)
    rows = table(text, "Allreduce on eth2g5, by")
    (row,) = [row for row in rows[:3] if "ring" in row]
    assert row.split("ring")[0].split()[-1] == "-"
    assert f"- not ranked, as its time says too little of the call: {why}" in " ".join(text.split())
    stands = {s["algorithm"]: s["standing"] for s in json.loads(render(tmp_path, "json"))["summaries"]}
    assert {name: found["mark"] for name, found in stands.items()} == {"ring": "-", "library": "*", "binomial": ""}
    assert stands["ring"]["unranked"] == why
    (finding,) = findings(f, tmp_path)
    assert "fastest library at 8 B" in finding["text"] and "ring" not in finding["text"]


def test_a_report_without_such_rows_does_not_explain_them(tmp_path: Path) -> None:
    f = Folder()
    crossing(f)
    assert "not ranked" not in chapter(f, tmp_path)


def test_json_and_csv_tell_how_a_call_stands(tmp_path: Path) -> None:
    """The text alone had marks, share of the stream, and ratio to the library."""
    f = lab_run()
    stream(f)
    for name, time in (("library", 4000.0), ("ring", 5000.0)):
        plant(f, name, MIB, time)
    f.write(tmp_path)
    told = [s for s in json.loads(render(tmp_path, "json"))["summaries"] if s["nbytes"] == MIB and s["standing"]]
    library, ring = (next(s["standing"] for s in told if s["algorithm"] == name) for name in ("library", "ring"))
    assert (library["mark"], ring["mark"]) == ("*", "")
    assert library["vs_library"]["value"] == 1
    assert ring["vs_library"]["value"] == pytest.approx(0.8)
    assert ring["of_stream"] == pytest.approx(MIB / 5000e-6 / 290e6)
    rows = [row for row in csv.DictReader(io.StringIO(render(tmp_path, "csv"))) if row["algorithm"] == "ring"]
    assert {row["mark"] for row in rows} == {""}
    assert {float(row["vs_library"]) for row in rows} == {ring["vs_library"]["value"]}
    assert {float(row["vs_library_low"]) for row in rows} == {ring["vs_library"]["low"]}
    assert {float(row["of_stream"]) for row in rows} == {ring["of_stream"]}
    alone = [s for s in json.loads(render(tmp_path, "json"))["summaries"] if s["benchmark"] == "latency"]
    assert {s["standing"] for s in alone} == {None}


def test_sizes_that_are_buckets_of_gradients_are_named(tmp_path: Path) -> None:
    f = Folder()
    for nbytes in (26_255_360, 67_125_248, MIB):
        plant(f, "library", nbytes, 4000.0)
        plant(f, "library", nbytes, 4000.0, "eth10g")
        plant(f, "ring", nbytes, 5000.0)
    said = "Gradient buckets, as torch's DDP exchanges them: 25640 KiB of ResNet-50; 65552 KiB of VGG-16."
    assert " ".join(chapter(f, tmp_path).split()).count(said) == 2


def test_nine_algorithms_at_ten_sizes_stay_readable(tmp_path: Path) -> None:
    f = Folder(launches=6)
    stream(f)
    for launch in range(1, 7):
        for place, nbytes in enumerate(SIZES):
            for step, name in enumerate(("library", *OURS)):
                time = (60 + nbytes / 290) * (1 + 0.1 * ((step + place) % 8)) * (1 + 0.001 * launch)
                plant(f, name, nbytes, time, launch=launch)
            plant(f, "gloo", nbytes, (90 + nbytes / 250) * (1 + 0.001 * launch), launch=launch, backend="gloo")
    rows = table(chapter(f, tmp_path), "Allreduce on eth2g5, by")[:99]
    assert sum(bool(row) for row in rows) == 90
    assert [row.lstrip()[:5] for row in rows[::10]] == [
        "8 B  ", "64 B ", "1 KiB", "4 KiB", "16 Ki", "64 Ki", "256 K", "1 MiB", "96281", "64 Mi"]  # fmt: skip
    assert all(not row for row in rows[9::10])
    assert max(map(len, rows)) <= 145
    assert sum(len(re.findall(r" \* ", row)) for row in rows) >= 5


def test_a_barrier_has_neither_size_nor_rate(tmp_path: Path) -> None:
    f = Folder()
    for name, time in (("library", 30.0), ("dissemination", 20.0)):
        f.add("barrier", "eth2g5", algorithm=name, metrics={"time": metric(time * US), "time_p99": metric(time * US)})
    text = chapter(f, tmp_path)
    rows = table(text, "Barrier on eth2g5, by algorithm")
    assert rows[1].split()[:3] == ["*", "dissemination", "20.00"]
    assert "of stream %" not in text.split("Algorithms side by side")[1]
    (told,) = findings(f, tmp_path)
    assert (
        "barrier on eth2g5 (EMULATED), 2 ranks: fastest dissemination (1.50x [1.47, 1.53] the library) ("
        in (told["text"])
    )


def test_a_reader_is_told_which_marks_are_not_shared(tmp_path: Path) -> None:
    f = Folder()
    plant(f, "library", 8, 20.0)
    plant(f, "ring", 8, 20.0, backend="gloo", proof="unknown")
    text = chapter(f, tmp_path)
    rows = table(text, "Allreduce on eth2g5, by")
    assert [row.endswith("unproved") for row in rows[:2]] == [False, True]


def test_the_librarys_own_barrier_explains_skew_not_ours() -> None:
    f = Folder()
    skewed = {"time": metric(100 * US), "entry_skew": metric(30 * US), "last_exit": metric(70 * US)}
    r = f.add("allreduce", "eth2g5", 8, algorithm="library", metrics=skewed, method=METHOD)
    for name, time in (("library", 10.0), ("dissemination", 500.0)):
        f.add("barrier", "eth2g5", algorithm=name, metrics={"time": metric(time * US, half=0.1)})
    v = view(RunData({}, tuple(f.records)))
    assert explained_s(v, r) == pytest.approx(2 * 11 * US)


def test_chapter_7_takes_the_librarys_own(tmp_path: Path) -> None:
    f = Folder()
    for fabric, time in (("eth2g5", 4000.0), ("eth10g", 1000.0)):
        plant(f, "ring", MIB, time * 2, fabric)
        plant(f, "library", MIB, time / 4, fabric, mode="nonblocking")
        plant(f, "library", MIB, time, fabric)
    told = " ".join(chapter(f, tmp_path, 7).split())
    assert "allreduce ms, 1 MiB 4.000 [3.960, 4.040] 1.000 [0.990, 1.010]" in told


def test_warnings_name_the_algorithm(tmp_path: Path) -> None:
    f = Folder()
    plant(f, "library", 8, 20.0, half=0.2)
    plant(f, "ring", 8, 20.0, half=0.3)
    told = " ".join(render(f.write(tmp_path)).split())
    assert "allreduce 2 ranks 8 B on eth2g5 (ring) +-30 %, allreduce 2 ranks 8 B on eth2g5 +-20 %." in told


def test_data_carry_all_variants(tmp_path: Path) -> None:
    f = lab_run()
    crossing(f)
    plant(f, "library", 8, 25.0, mode="nonblocking")
    f.write(tmp_path)
    told = json.loads(render(tmp_path, "json"))
    found = {(s["algorithm"], s["backend"], s["mode"]) for s in told["summaries"] if s["benchmark"] == "allreduce"}
    assert found >= {("library", "mpi", ""), ("recursive-doubling", "mpi", ""), ("default", "gloo", ""),
                     ("library", "mpi", "nonblocking")}  # fmt: skip
    lines = render(tmp_path, "csv").splitlines()
    names = lines[0].split(",")
    rows = [dict(zip(names, line.split(","), strict=False)) for line in lines[1:]]
    assert found == {(r["algorithm"], r["backend"], r["mode"]) for r in rows if r["benchmark"] == "allreduce"}
