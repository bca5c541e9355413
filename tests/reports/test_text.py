from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from microbench.record import Metric
from reports.render import render
from tests.reports.folder import MIB, Folder, lab_run, metric, point_to_point, proof

CHAPTERS = (
    "1 System and method", "2 Fabrics and proof", "3 Point to point, fabric beside fabric",
    "4 Allreduce and other collectives", "5 Overlap and DPU offload", "6 Training", "7 Does the fabric matter?",
    "8 Verdicts, warnings, and what has no number",
)  # fmt: skip


def _parts(text: str) -> dict[int, str]:
    """The report's chapters by number; 0 is what stands before them."""
    cuts = [0, *(text.index(f"\n{title}\n---") for title in CHAPTERS), len(text)]
    return {i: text[a:b] for i, (a, b) in enumerate(pairwise(cuts))}


def _report(f: Folder, directory: Path) -> dict[int, str]:
    return _parts(render(f.write(directory), "text"))


def _flat(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    return _report(lab_run(), tmp_path_factory.mktemp("whole"))


def test_the_same_folder_gives_the_same_text(tmp_path: Path) -> None:
    lab_run(2).write(tmp_path)
    first = render(tmp_path)
    assert render(tmp_path) == first
    assert first.isascii()
    assert str(tmp_path) not in first


def test_lines_fit_the_page(whole: dict[int, str]) -> None:
    lines = [line for part in whole.values() for line in part.splitlines()]
    wide = [line for line in lines if len(line) > 100 and not line.startswith("---")]
    assert [line for line in wide if "unproved, OVERSUBSCRIBED" not in line] == []
    assert all(line == line.rstrip() for line in lines)


def test_chapter_1_names_system_and_method(whole: dict[int, str]) -> None:
    told = _flat(whole[1])
    for text in ("node1", "Linux 6.18.0", "Example CPU", "8.0 GiB", "MPICH 5.0.2", "numpy 2.4.6, mpi4py 4.1.2",
                 "duration 12 min 3 s", "tier quick", "thread level single", "launches 1 planned",
                 "rank 0: host h0, CPU 0; rank 1: host h1, CPU 1", "bytes per rank in the send buffer",
                 "Intervals within one launch: 95 % order-statistic", "sync: barrier", "pages: small",
                 "removed variables UCX_TLS=all"):  # fmt: skip
        assert text in told, text
    assert "over 2 to 5 launches" not in told


def test_chapter_2_shows_what_counters_saw(whole: dict[int, str]) -> None:
    told = _flat(whole[2])
    assert "67.1 MB sent; h0 eth10g tx 67.9 MB rx 410.0 kB; h1 eth10g tx 410.0 kB rx 67.9 MB; others 4.2 kB" in told
    assert "UCX_NET_DEVICES=eth10g" in told
    assert "train over gloo, 2 records: an allreduce of 64 MiB crossed" in told
    assert re.search(r"eth2g5 tcp 2.5 Gbit/s h0 h1 d0 d1 proved EMULATED", told)
    assert "roce unusable no RDMA device" in told
    assert "UNPROVED: no counters vouch for tcp-lo" in _flat(whole[0])


def test_exact_units_in_the_table(tmp_path: Path) -> None:
    f = Folder()
    f.add("bandwidth", "eth10g", MIB, direction="uni",
          metrics={"bandwidth": metric(MIB / 1e-3, "bytes/s", better="higher")})  # fmt: skip
    row = next(line for line in _report(f, tmp_path)[3].splitlines() if line.startswith("1 MiB"))
    assert row.split()[:8] == ["1", "MiB", "eth10g", "1048.576", "[1038.090,", "1059.062]", "8.389", "83.9"]


def test_fabrics_stand_under_each_size(whole: dict[int, str]) -> None:
    table = whole[3].split("Latency (half round trip)")[1].split("Bandwidth, one way")[0]
    rows = [line for line in table.splitlines() if "[" in line]
    assert [row[:6].strip() for row in rows[:8]] == ["0 B", "", "", "", "8 B", "", "", ""]
    assert [row.split()[-1] for row in rows[2:4]] == ["EMULATED", "EMULATED"]
    assert [re.search(r"shm|tcp-lo|eth2g5|eth10g", row).group() for row in rows[:4]] == [  # type: ignore[union-attr]
        "shm", "tcp-lo", "eth2g5", "eth10g"]  # fmt: skip
    assert "62.00 [61.38, 62.62]" in _flat(rows[2])
    assert "86.80 (91.14)" in rows[2]


def test_zero_bytes_have_no_bandwidth_and_say_why(whole: dict[int, str]) -> None:
    table = whole[3].split("Bandwidth, one way")[1].split("Bandwidth, both")[0]
    assert re.search(r"^ +0 B +shm +n/a +n/a", table, re.MULTILINE)
    assert "n/a: 0 B carry no bandwidth" in table


def test_barrier_has_no_size_column(whole: dict[int, str]) -> None:
    table = whole[4].split("Barrier, time of the slowest rank: 2 ranks")[1]
    header, _, first = table.split("\n\n")[1].splitlines()[:3]
    assert header.split()[0] == "fabric"
    assert first.split()[0] == "shm"


def test_missing_percentiles_say_why(whole: dict[int, str]) -> None:
    assert "n=200 < 368" in whole[4]


def test_several_rank_counts_have_a_table_each(whole: dict[int, str]) -> None:
    assert "Allreduce, time of the slowest rank: 2 ranks" in whole[4]
    crowded = whole[4].split("Allreduce, time of the slowest rank: 3 ranks")[1].split("Barrier")[0]
    assert crowded.count("OVERSUBSCRIBED") == 8
    assert "OVERSUBSCRIBED" not in whole[4].split("Allreduce, time of the slowest rank: 3 ranks")[0]


def test_chapter_5_shows_modes_side_by_side_and_who_was_where(whole: dict[int, str]) -> None:
    told = _flat(whole[5])
    assert "rank 0: host h0, CPU 0; rank 1: host h1, CPU 1; rank 2: dpu d0, CPU 1; rank 3: dpu d1, CPU 1" in told
    assert "Reported: rank 0." in told
    assert (
        "EMULATED DPUs: of 4 cases offload gains in 2, loses in 2; best staged at 4 MiB on eth2g5, net gain 24.0"
        in told
    )
    header = next(line for line in whole[5].splitlines() if line.split() == ["blocking", "host", "probes16", "staged"])
    assert header
    gain = next(line for line in whole[5].splitlines() if line.startswith("net gain %"))
    assert gain.split()[3:] == ["-", "-", "-", "-20.0", "[-22.0,", "-18.0]"]
    assert re.search(r"^dilation % +- +- +- +5\.0 \[4\.0, 6\.0\]$", whole[5], re.MULTILINE)
    assert "eth2g5 (EMULATED, placement split): rank 0" in told
    assert "probes16 45.51" in told, "the best host mode is the one that takes least time overall"


def test_chapter_6_has_steps_and_what_is_unsupported(whole: dict[int, str]) -> None:
    told = _flat(whole[6])
    assert "step ms 1130.0 [1113.0, 1146.9] 1000.0 [985.0, 1015.0]" in told
    assert "exposed % 24.8 [23.3, 26.3] 15.0 [14.1, 15.9]" in told
    assert "resnet50 64px batch 16 on shm: unsupported: gloo has no shared-memory transport" in told


def test_chapter_7_sets_ratios_beside_each_other(whole: dict[int, str]) -> None:
    told = _flat(whole[7])
    assert ("resnet50 64px batch 16, eth2g5 against eth10g (2.5 Gbit/s against 10 Gbit/s, EMULATED): THE SLOWER FABRIC "
            "COSTS TIME: exposed communication 280.0 [263.2, 296.8] ms (n 30) against 150.0 [141.0, 159.0] ms (n 30), "
            "1.87x [1.66, 2.10], ") in told  # fmt: skip
    assert ("Step 1.13x [1.10, 1.16] (n 30, within one launch); control, the step that sends nothing, 1.00x "
            "[0.98, 1.02]. Beside it: bandwidth 3.96x [3.88, 4.04] at 4 MiB, allreduce 3.95x [3.88, 4.03] at 64 MiB."
            ) in told  # fmt: skip
    assert "allreduce 3.88x [3.80, 3.96] at 4 MiB. " in told, "4 MiB is nearest to 1.1 MB"
    assert "gradients 102.2 MB; allreduce: the nearest measured, mpi on 2 ranks" in told
    assert re.search(r"NO DIFFERENCE SHOWS in exposed communication: [^x]*, 1.04x \[0.92, 1.17\]", told)
    assert re.search(r"exposed ms 280.0 \[263.2, 296.8\] 150.0 \[141.0, 159.0\] 1.87x \[1.66, 2.10\] 30", told)


def test_chapter_8_lists_what_has_no_number(whole: dict[int, str]) -> None:
    told = _flat(whole[8])
    assert "No limits given: nothing judged." in told
    assert "Unsupported (the library or fabric lacks it): 2 records" in told
    assert "Fabrics that cannot be used here - roce: no RDMA device" in told
    assert "WARNING: 10 cases with more busy ranks than CPUs" in told
    assert "cases unproved: no counters vouch for the way that the bytes took (tcp-lo: latency 2 ranks" in told


@pytest.mark.parametrize(
    ("launches", "heading", "samples", "in_short"),
    [(1, "95 %, 1 launch", "1000", "95 % interval within one launch"),
     (3, "range, 3 launches", "3 x 1000", "range of 3 launches"),
     (6, "95 %, 6 launches", "6 x 1000", "95 % interval over 6 launches")],
)  # fmt: skip
def test_every_interval_says_what_it_rests_on(
    tmp_path: Path, launches: int, heading: str, samples: str, in_short: str
) -> None:
    f = Folder(launches)
    for launch in range(1, launches + 1):
        point_to_point(f, "eth10g", launch, 1 + 0.001 * launch)
    report = _report(f, tmp_path)
    assert in_short in report[0]
    row = next(line for line in report[3].splitlines() if line.lstrip().startswith("8 B  eth10g"))
    assert heading in report[3]
    assert f" {samples} " in row
    others = {"95 %, 1 launch", "range, 3 launches", "95 %, 6 launches"} - {heading}
    assert not any(other in report[3] for other in others)


def test_lines_of_unequal_launches_are_each_marked(tmp_path: Path) -> None:
    f = Folder(3)
    f.add("latency", "eth10g", 8, metrics={"time": metric(10e-6)})
    for launch, value in ((1, 1e-6), (2, 2e-6), (3, 4e-6)):
        f.add("latency", "shm", 8, launch=launch, metrics={"time": metric(value)})
    told = _flat(_report(f, tmp_path)[3])
    assert "[1.000, 4.000] r3" in told
    assert "[9.90, 10.10] w" in told
    assert "w: within one launch; r3: range of 3 launches" in told


def test_a_disproved_fabric_is_not_published_under_its_name(tmp_path: Path) -> None:
    f = Folder()
    f.job("eth10g", proof=proof("eth10g", "disproved", "67.9 MB crossed mgmt, none eth10g"))
    f.add("latency", "eth10g", 8, proof="disproved", metrics={"time": metric(123.4e-6)})
    f.add("allreduce", "eth10g", 8, proof="disproved", metrics={"time": metric(567.8e-6)})
    f.add("latency", "eth2g5", 8, metrics={"time": metric(60e-6)})
    report = _report(f, tmp_path)
    text = "".join(report.values())
    assert "123.4" not in text
    assert "567.8" not in text
    assert "Disproved, so not published: 2 records" in report[8]
    assert "latency 2 ranks on eth10g (mpi), 8 B, launch 1: 67.9 MB crossed mgmt, none eth10g" in _flat(report[8])
    assert "DISPROVED: bytes meant for eth10g went elsewhere" in _flat(report[0])
    assert "h0 mgmt tx 67.9 MB rx 410.0 kB (not of this fabric)" in _flat(report[2])
    assert "h0 eth10g tx 0 B rx 0 B;" in _flat(report[2]), "the fabric's own devices are named though they are idle"
    assert "no such case has numbers (1 disproved)" in _flat(report[4])


def test_one_disproved_launch_of_three_is_left_out_and_listed(tmp_path: Path) -> None:
    f = Folder(3)
    for launch, told in ((1, "proved"), (2, "proved"), (3, "disproved")):
        f.add("latency", "eth10g", 8, launch=launch, proof=told, metrics={"time": metric(launch * 1e-6)})
    report = _report(f, tmp_path)
    assert "1.500" in report[3]
    assert "launch 3: no detail recorded" in _flat(report[8])


def test_what_failed_is_listed_with_its_reason(tmp_path: Path) -> None:
    f = Folder(2)
    for launch in (1, 2):
        for nbytes in (8, 1024):
            f.add("allreduce", "eth10g", nbytes, launch=launch, status="timeout", dtype="float32",
                  reason="rank 1 did not leave MPI_Allreduce")  # fmt: skip
    f.add("bandwidth", "eth2g5", 64, status="failed", reason="job ended: rank 1 on h1: exit code 3")
    f.add("broadcast", "shm", 64, status="invalid", reason="byte 17 of 64 differs")
    f.add("allreduce", "eth10g", 8, ranks=4, status="skipped", reason="pure recipe: eth10g joins 2 hosts")
    f.job("eth2g5", status="failed", reason="mpiexec exited with 3")
    report = _report(f, tmp_path)
    told = _flat(report[8])
    assert "Timeout (its deadline passed): 4 records" in told
    assert (
        "allreduce 2 ranks on eth10g (mpi, float32), 8 B, 1 KiB, launch 1-2: rank 1 did not leave MPI_Allreduce" in told
    )
    assert "job ended: rank 1 on h1: exit code 3" in told
    assert "byte 17 of 64 differs" in told
    assert "pure recipe: eth10g joins 2 hosts" in told
    assert "job 1 (launch 1, eth2g5): failed: mpiexec exited with 3" in told
    assert "no such case has numbers (1 failed); chapter 8 has the reasons" in _flat(report[3])
    assert "5 cases: 1 invalid, 1 failed, 2 timeout, 1 skipped;" in _flat(report[0])


def test_a_rate_above_the_declared_one_is_flagged(tmp_path: Path) -> None:
    f = Folder()
    for nbytes, rate in ((8192, 2.6e9), (65536, 2.4e9)):
        f.add("bandwidth", "eth2g5", nbytes, direction="uni",
              metrics={"bandwidth": metric(rate / 8, "bytes/s", better="higher")})  # fmt: skip
    f.add("bibw", "eth2g5", 8192, direction="bi",
          metrics={"bandwidth": metric(4.9e9 / 8, "bytes/s", better="higher")})  # fmt: skip
    report = _report(f, tmp_path)
    assert report[3].count("> declared rate") == 1, "4.9 Gbit/s both ways is within twice 2.5 Gbit/s"
    assert "bandwidth on eth2g5 is above the declared 2.5 Gbit/s at 8 KiB" in _flat(report[8])


def test_fluctuation_is_told_with_its_basis(tmp_path: Path) -> None:
    f = Folder()
    f.add("latency", "shm", 8, metrics={"time": metric(1e-6, half=0.30)})
    f.add("latency", "shm", 16, metrics={"time": metric(1e-6, half=0.12)})
    f.add("latency", "shm", 32, metrics={"time": metric(1e-6, half=0.09)})
    for launch in (1, 2):
        f.add("latency", "shm", 64, launch=launch, metrics={"time": metric((1 + 0.15 * launch) * 1e-6)})
    told = _flat(_report(f, tmp_path)[8])
    assert ("2 cases of 4 fluctuate: their interval is wider than +-10 % (within one launch; 1 beyond +-25 %): "
            "latency 2 ranks 8 B on shm +-30 %, latency 2 ranks 16 B on shm +-12 %.") in told  # fmt: skip
    assert "1 case of 4 fluctuates: its launches differ by more than 10 % (range of 2 launches; 0 beyond 25 %)" in told


def test_warnings_of_a_benchmark_are_passed_on(tmp_path: Path) -> None:
    f = Folder()
    for nbytes in (8, 64):
        f.add("offload_allreduce", "eth10g", nbytes, method={"warnings": ["rank 0 shares its cores with ranks 2"]})
    report = _report(f, tmp_path)
    told = "WARNING: offload_allreduce 8 B, offload_allreduce 64 B on eth10g: rank 0 shares its cores with ranks 2."
    assert told in _flat(report[8])
    assert "1 warning." in report[0]


def test_offload_without_a_net_gain_makes_no_claim(tmp_path: Path) -> None:
    f = Folder()
    f.add("offload_allreduce", "eth10g", 8, metrics={"host.overall": metric(1e-3), "staged.overall": metric(2e-3),
          "staged.net_gain": metric(None, "1", 30, None, note="n/a"), "staged.odd": metric(1e-6)})  # fmt: skip
    report = _report(f, tmp_path)
    assert "offload gains" not in report[0]
    assert re.search(r"^odd us +- +1\.000 \[", report[5], re.MULTILINE)


def test_an_unfinished_run_tells_what_is_missing(tmp_path: Path) -> None:
    f = Folder()
    done = [f.add("latency", "shm", n, metrics={"time": metric(1e-6)}).id for n in (0, 8, 64)]
    jobs = [{"job": 1, "launch": 1, "fabric": "shm", "cases": [*done, "allreduce/shm/8B/2r", "allreduce/shm/64B/2r"]}]
    f.run = {"finished": None, "plan": {"tier": "quick", "launches": 1, "jobs": jobs}, "jobs": []}
    report = _report(f, tmp_path)
    assert "finished no: the run is unfinished" in _flat(report[1])
    assert "WARNING: the run is unfinished" in _flat(report[8])
    assert "Planned but never measured, since the run ended before: 2 of 5 records - shm, launch 1: allreduce 2 (" in (
        _flat(report[8])
    )
    assert "latency us" in report[3]


def test_a_torn_line_is_a_warning(tmp_path: Path) -> None:
    f = Folder(tail=b'{"schema"')
    f.add("latency", "shm", 8, metrics={"time": metric(1e-6)})
    assert "WARNING: records.jsonl line 2 is torn" in _flat(_report(f, tmp_path)[8])


def test_the_empty_run_renders_and_says_why(tmp_path: Path) -> None:
    report = _report(Folder(run={"finished": None}), tmp_path)
    for chapter in (3, 4, 5, 6):
        assert "Nothing to show: the run has no such case on disk." in report[chapter]
    assert "it takes two networks with published numbers; there is: none" in _flat(report[7])
    assert "No case is on disk." in report[8]


def test_a_run_json_with_nothing_but_a_schema_renders(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"schema": 1}', "utf-8")
    report = _parts(render(tmp_path))
    assert "does not describe its machine" in report[1]
    assert "names no fabric" in report[2]


@pytest.mark.parametrize("kept", range(0, 90, 7))
def test_every_prefix_of_a_run_renders(tmp_path: Path, kept: int) -> None:
    f = lab_run()
    f.records = f.records[::-1][:kept]
    assert len(_report(f, tmp_path)) == 9


def test_records_without_metrics_or_description_render(tmp_path: Path) -> None:
    f = Folder(run={"fabrics": [], "jobs": []})
    for benchmark in ("latency", "bandwidth", "bibw", "allreduce", "barrier", "offload_allreduce", "train", "other"):
        f.add(benchmark, "new0", 8, metrics={})
        f.add(benchmark, "new1", 8, metrics={"odd": metric(None, "1", 0, None), "even": metric(2.0, "1/s")})
    report = _report(f, tmp_path)
    assert "run.json does not describe this fabric." in report[2]
    assert "even" in report[4]


def test_text_beyond_ascii_is_escaped(tmp_path: Path) -> None:
    f = Folder(run={"environment": {"hostname": "kn\u00f6tchen", "cpu": "Example\u2122"}})
    text = render(f.write(tmp_path))
    assert text.isascii()
    assert "kn\\xf6tchen" in text


def test_the_control_warns_where_it_differs(tmp_path: Path) -> None:
    f = Folder()
    for fabric, step, noop, exposed in (("eth2g5", 1.2, 1.1, 0.15), ("eth10g", 1.0, 0.9, 0.1)):
        times = {"step": metric(step), "step_noop": metric(noop), "exposed": metric(exposed)}
        both = {**times, "exposed_fraction": metric(0.1, "1")}
        f.add("train", fabric, backend="gloo", workload="m", metrics=both)
    told = _flat(_report(f, tmp_path)[7])
    assert (
        "THE SLOWER FABRIC MAY COST TIME: exposed communication is longer, but not clearly more of the step: " in told
    )
    assert "1.50x [1.47, 1.53], 10.0 [9.9, 10.1] % (n 1000) against 10.0" in told
    assert "Step 1.20x [1.18, 1.22] (n 1000, within one launch); control, the step that sends nothing, 1.22x" in told
    assert "1.22x [1.20, 1.25]: the machine changed too, so the step's ratio is not the fabric's alone." in told
    assert "size of the gradients not recorded; no allreduce ran on both" in told


def test_equal_exposed_communication_is_not_called_different(tmp_path: Path) -> None:
    f = Folder()
    for fabric in ("eth2g5", "eth10g"):
        times = {"step": metric(1.0), "step_noop": metric(0.9), "exposed": metric(0.1)}
        f.add("train", fabric, backend="gloo", workload="m", metrics={**times, "exposed_fraction": metric(0.1, "1")})
    told = _flat(_report(f, tmp_path)[7])
    assert "NO DIFFERENCE SHOWS in exposed communication: 100.0 [99.0, 101.0] ms" in told
    assert "1.00x [0.98, 1.02]" in told


@pytest.mark.parametrize(("noop", "said"), [(0.9, "COSTS TIME: exposed"), (1.1, "MAY COST TIME: exposed")])
def test_whole_steps_speak_where_the_control_is_still(tmp_path: Path, noop: float, said: str) -> None:
    f = Folder()
    for fabric, step, idle, exposed in (("eth2g5", 1.2, noop, 0.15), ("eth10g", 1.0, 0.9, 0.1)):
        times = {"step": metric(step), "step_noop": metric(idle), "exposed": metric(exposed)}
        both = {**times, "exposed_fraction": metric(0.1, "1")}
        f.add("train", fabric, backend="gloo", workload="m", metrics=both)
    assert f"THE SLOWER FABRIC {said}" in _flat(_report(f, tmp_path)[7])


def test_an_interval_that_spans_zero_gives_no_ratio(tmp_path: Path) -> None:
    f = Folder()
    for fabric, low, high in (("eth2g5", 0.004, 0.008), ("eth10g", -0.010, 0.012)):
        exposed = Metric(0.006 if low > 0 else 0.001, "s", 12, low, high)
        times = {"step": metric(1.0), "step_noop": metric(0.9), "exposed": exposed}
        f.add("train", fabric, backend="gloo", workload="m", metrics=times)
    data = json.loads(render(f.write(tmp_path), "json"))
    (finding,) = (x for x in data["findings"] if x["chapter"] == 7)
    assert finding["values"]["verdict"] == "NO DIFFERENCE SHOWS in exposed communication"
    assert finding["values"]["exposed"] is None
    told = _flat(_report(f, tmp_path)[7])
    assert re.search(r"exposed ms 6.000 \[4.000, 8.000\] 1.000 \[-10.000, 12.000\] - no interval 12", told)


@pytest.mark.parametrize(
    ("slow", "noop", "said"),
    [(1.2, None, "THE SLOWER FABRIC COSTS TIME: on eth2g5 the step is"), (1.0, None, "NO DIFFERENCE SHOWS: on eth2g5"),
     (1.2, 1.1, "NO CONCLUSION: the step that sends nothing differs too."),
     (0.8, None, "COSTS LESS, which it cannot by itself")],
)  # fmt: skip
def test_without_exposed_times_the_step_is_judged(tmp_path: Path, slow: float, noop: float | None, said: str) -> None:
    f = Folder()
    for fabric, step, idle in (("eth2g5", slow, noop), ("eth10g", 1.0, 0.9)):
        times = {"step": metric(step)} | ({"step_noop": metric(idle)} if noop else {})
        f.add("train", fabric, backend="gloo", workload="m", metrics=times)
    assert said in _flat(_report(f, tmp_path)[7])


def test_a_link_far_below_its_rate_is_told(tmp_path: Path) -> None:
    f = Folder()
    f.add("bandwidth", "eth10g", nbytes=1 << 20, metrics={"bandwidth": metric(25e6, "bytes/s")})
    told = _flat(_report(f, tmp_path)[8])
    assert "WARNING: eth10g reaches 2.0 % of its declared 10 Gbit/s at 1 MiB." in told


def test_what_the_run_warns_of_is_told_and_an_interruption_is_called_one(tmp_path: Path) -> None:
    f = Folder(run={"warnings": ["another run was on"], "finished": None, "ended": "interrupted"})
    told = _flat(render(f.write(tmp_path)))
    assert "WARNING: another run was on." in told
    assert "the run was interrupted; cases not listed were not measured" in told
    assert "crashed" not in told


def test_two_networks_without_training_make_no_claim_on_it(tmp_path: Path) -> None:
    f = Folder()
    for fabric in ("eth2g5", "eth10g"):
        point_to_point(f, fabric, 1)
    told = _flat(_report(f, tmp_path)[7])
    assert "no training was measured on both, so nothing is said of training time" in told


def test_ranks_that_share_hosts_are_marked(tmp_path: Path) -> None:
    f = Folder()
    f.add("allreduce", "eth10g", 8, ranks=4, hosts=("h0", "h0", "h1", "h1"), ranks_per_host=2,
          metrics={"time": metric(1e-6)})  # fmt: skip
    assert "2 ranks a host" in _report(f, tmp_path)[4]
