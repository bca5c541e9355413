"""Chapter 5 over planted records: what DPUs are, who carried a collective, what was gained, and with which words."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from microbench.record import Metric
from reports.modes import best_host, fastest, modes, offloaded, unused
from reports.render import render
from tests.reports.folder import MIB, Folder, metric

WHERE: dict[str, Any] = {
    "hosts": ("h0", "h1", "d0", "d1"), "roles": ("host", "host", "dpu", "dpu"), "ranks": 4, "dtype": "float32",
    "placement": "split h0:0 h1:1 d0:1 d1:1", "reported_ranks": (0,),
}  # fmt: skip
MS = 1e-3


def case(f: Folder, gains: dict[str, float | None], benchmark: str = "offload_allreduce", **more: Any) -> None:
    """A case whose hosts take 60 ms at best; each offload mode takes what its gain leaves of it."""
    metrics = {"compute": metric(36 * MS, n=12), "blocking.overall": metric(72 * MS, n=12)}
    for mode, overall in (("host", 66 * MS), ("probes16", 60 * MS)):
        metrics |= _mode(mode, overall)
    for mode, gain in gains.items():
        metrics |= _mode(mode, 60 * MS * (1 - (gain or 0)))
        half = 0.1 if (gain or 0) > 0 else -0.1
        metrics[f"{mode}.net_gain"] = metric(gain, "1", 12, half, note="" if gain is not None else "n/a: not used")
    where = WHERE | {"nbytes": 4 * MIB, "fabric": "eth10g"} | more
    f.add(benchmark, where.pop("fabric"), where.pop("nbytes"), metrics=metrics, **where)


def _mode(mode: str, overall: float) -> dict[str, Metric]:
    values = {"pure": 36 * MS, "overall": overall, "post": 2 * MS, "wait": 5 * MS, "exposed": overall - 36 * MS,
              "cpu": 4 * MS}  # fmt: skip
    shares = {"overlap": 0.9, "availability": 0.85, "dilation": 0.03}
    return {f"{mode}.{name}": metric(value, n=12) for name, value in values.items()} | {
        f"{mode}.{name}": metric(value, "1", 12) for name, value in shares.items()
    }


def chapter(f: Folder, folder: Path) -> str:
    found = re.split(r"^(\d) .*\n---+$", render(f.write(folder)), flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))["5"]


def flat(text: str) -> str:
    return " ".join(text.split())


def findings(folder: Path) -> list[dict[str, Any]]:
    return [found for found in json.loads(render(folder, "json"))["findings"] if found["chapter"] == 5]


def rows(text: str, label: str) -> list[list[str]]:
    return [re.split(r"  +", line)[1:] for line in text.splitlines() if line.startswith(label)]


def test_the_best_of_each_side_is_told_at_a_glance(tmp_path: Path) -> None:
    f = Folder()
    case(f, {"staged": 0.2, "window": 0.36})
    text = chapter(f, tmp_path)
    (line,) = [line for line in text.splitlines() if line.lstrip().startswith("4 MiB  eth10g")]
    assert re.split(r"  +", line.strip()) == [
        "4 MiB", "eth10g", "probes16 60.00", "window 38.40", "0.90", "2.400", "36.0 [32.4, 39.6]", "EMULATED",
    ]  # fmt: skip


def test_every_mode_has_all_its_quantities(tmp_path: Path) -> None:
    f = Folder()
    case(f, {"staged": 0.2})
    text = chapter(f, tmp_path)
    for label in ("pure ms", "overall ms", "post ms", "wait ms", "overlap", "exposed ms", "availability", "dilation %",
                  "cpu ms", "net gain %"):  # fmt: skip
        (cells,) = [found for found in rows(text, label) if len(found) == 4]
        assert re.fullmatch(r"-?\d+\.\d+ \[.*\]", cells[3]), label
    assert rows(text, "carried by") == [["hosts", "hosts", "hosts", "DPUs"]]


def test_the_pieces_of_an_offload_are_told(tmp_path: Path) -> None:
    f = Folder()
    case(f, {"staged": 0.2}, method={"modes": {"staged": {"pieces": 16, "piece_bytes": 1 << 18}, "host": {}}})
    assert rows(chapter(f, tmp_path), "pieces") == [["-", "-", "-", "16 x 256 KiB"]]


def test_an_offload_that_hosts_carried_is_named_and_not_judged(tmp_path: Path) -> None:
    f = Folder()
    case(f, {"staged": 0.5, "rma": 0.1}, method={"used": {"staged": False, "rma": True}})
    text = chapter(f, tmp_path)
    carried, gains = ([cell for row in rows(text, label) for cell in row] for label in ("carried by", "net gain %"))
    assert carried == ["hosts", "hosts", "hosts", "host (offload not used)", "DPUs"]
    assert gains == ["-", "-", "-", "not judged", "10.0 [9.0, 11.0]"]
    assert "rma 54.00" in flat(text), "the best offload is one that the DPUs carried"
    told = {found["values"].get("kind", "gains"): found for found in findings(tmp_path)}
    assert told["gains"]["values"]["mode"] == "rma"
    assert told["gains"]["values"]["gains"] == 1
    assert told["offload not used"]["text"].startswith("host (offload not used): the DPUs did not do all that staged")


def test_one_launch_without_the_dpus_is_enough_not_to_judge(tmp_path: Path) -> None:
    f = Folder(2)
    for launch in (1, 2):
        case(f, {"staged": 0.2}, launch=launch, method={"used": {"staged": launch == 1}})
    text = flat(chapter(f, tmp_path))
    assert "host (offload not used) in 1 of 2 launches" in text
    assert not [found for found in findings(tmp_path) if "net_gain" in found["values"]]


def test_only_unused_offloads_leave_the_glance_without_one(tmp_path: Path) -> None:
    f = Folder()
    case(f, {"staged": None}, method={"used": {"staged": False}})
    text = chapter(f, tmp_path)
    (line,) = [line for line in text.splitlines() if line.lstrip().startswith("4 MiB  eth10g")]
    assert re.split(r"  +", line.strip())[3:] == ["host (offload not used)", "-", "-", "-", "EMULATED"]


def test_what_was_left_out_is_told_with_its_reason(tmp_path: Path) -> None:
    f = Folder()
    case(f, {"staged": 0.2}, method={"left_out": {"window": "host and DPU share no kernel"}})
    assert "Left out: window: host and DPU share no kernel" in flat(chapter(f, tmp_path))


def test_gains_and_losses_are_one_sentence_with_its_uncertainty(tmp_path: Path) -> None:
    f = Folder()
    case(f, {"staged": 0.2, "window": 0.36})
    case(f, {"staged": -0.5}, nbytes=4096, workload="memory")
    chapter(f, tmp_path)
    (found,) = findings(tmp_path)
    assert found["text"] == (
        "EMULATED DPUs: of 3 modes in 2 cases offload gains in 2, loses in 1; best window at 4 MiB on eth10g, net gain "
        "36.0 [32.4, 39.6] % of at most 40.0 % against the best host mode (thread, gloo not measured; within one "
        "launch, n 12); worst staged at 4 KiB on eth10g (memory), net gain -50.0 [-55.0, -45.0] % against the best "
        "host mode (thread, gloo not measured; within one launch, n 12)."
    )
    assert (found["values"]["gains"], found["values"]["loses"], found["values"]["undecided"]) == (2, 1, 0)
    assert (found["values"]["worst_mode"], found["values"]["worst_net_gain"]) == ("staged", -0.5)


def planted(f: Folder, metrics: dict[str, Metric], **more: Any) -> None:
    """A case of window alone with a gain of 46 %, and whatever differs from it."""
    case(f, {"window": 0.36})
    s = f.records.pop()
    gain = {"window.net_gain": Metric(0.461, "1", 12, 0.11, 0.675)}
    f.add("offload_allreduce", "eth10g", **(WHERE | {"nbytes": 4 * MIB, "metrics": {**s.metrics, **gain, **metrics}}
                                            | more))  # fmt: skip


def test_a_gain_over_a_disturbed_compute_is_undecided_and_the_sentence_says_so(tmp_path: Path) -> None:
    f = Folder()
    planted(f, {"window.overall": metric(30 * MS, n=12)})
    text = flat(chapter(f, tmp_path))
    told = "window with compute took 16.7 % less than compute alone"
    (found,) = findings(tmp_path)
    assert found["text"].startswith(
        "EMULATED DPUs: of 1 case offload undecided in 1 (the compute baseline was disturbed in 1); best window at 4 "
        f"MiB on eth10g, undecided: the compute baseline was disturbed: {told}, net gain 46.1 [11.0, 67.5] % of at "
        "most 40.0 %"
    )
    assert f"window: undecided: the compute baseline was disturbed: {told}" in text
    assert "46.1 [11.0, 67.5] EMULATED, disturbed" in text
    assert rows(chapter(f, tmp_path), "at most %")[0][-1] == "40.0"


def test_a_gain_that_is_sound_comes_before_a_larger_one_that_is_not(tmp_path: Path) -> None:
    f = Folder()
    planted(f, {"window.overall": metric(30 * MS, n=12)}, workload="memory")
    case(f, {"staged": 0.2})
    chapter(f, tmp_path)
    (found,) = findings(tmp_path)
    assert "offload gains in 1, undecided in 1 (" in found["text"] and "; best staged at 4 MiB" in found["text"]
    assert (found["values"]["side"], found["values"]["why"]) == ("gains", "")


def test_nothing_offloaded_is_carried_by_nobody_and_is_no_finding(tmp_path: Path) -> None:
    f = Folder()
    case(f, {"staged": 0.48}, nbytes=0)
    text = chapter(f, tmp_path)
    carried, gains = ([cell for row in rows(text, label) for cell in row] for label in ("carried by", "net gain %"))
    assert (carried, gains) == (["hosts", "hosts", "hosts", "nobody"], ["-", "-", "-", "not judged"])
    assert "nothing was offloaded - - - EMULATED" in flat(text)
    assert findings(tmp_path) == []


def test_hosts_that_were_left_out_are_told_and_nothing_is_gained_over_the_rest(tmp_path: Path) -> None:
    f = Folder()
    case(f, {"window": 0.3})
    s = f.records.pop()
    kept = {name: m for name, m in s.metrics.items() if not name.startswith(("host.", "probes"))}
    f.add("offload_allreduce", "eth10g", 4 * MIB, metrics=kept, **WHERE)
    text = flat(chapter(f, tmp_path))
    told = "against blocking alone: host, probes, thread, gloo not measured"
    assert f"window: undecided: {told}" in text and "EMULATED, weak baseline" in text
    (found,) = findings(tmp_path)
    assert found["text"].startswith(f"EMULATED DPUs: of 1 case offload undecided in 1 ({told} in 1); best window")
    assert found["values"]["gains"] == 0


def test_dpus_that_share_a_machine_with_hosts_are_none(tmp_path: Path) -> None:
    f = Folder()
    case(f, {"staged": 0.2}, fabric="tcp-lo", hosts=("vm", "vm", "vm", "vm"))
    characterized(f, fabric="tcp-lo", hosts=("vm", "vm", "vm", "vm"))
    text = flat(chapter(f, tmp_path))
    told = "DPU ranks share machine vm with hosts: not a DPU"
    assert [found["text"] for found in findings(tmp_path)] == [f"{told}; no gain is judged there."]
    assert f"staged: not judged: {told}" in text and "not a DPU" in text
    assert "What can hide" not in text


def test_the_formula_of_overlap_is_told(tmp_path: Path) -> None:
    f = Folder()
    case(f, {"staged": 0.2})
    assert "overlap: (pure + compute - overall) / min(pure, compute), signed" in flat(chapter(f, tmp_path))


def test_an_interval_on_both_sides_of_nothing_is_undecided(tmp_path: Path) -> None:
    f = Folder()
    case(f, {})
    s = f.records.pop()
    both = {"staged.overall": metric(59 * MS, n=12), "staged.net_gain": Metric(0.01, "1", 12, -0.02, 0.04)}
    f.add("offload_allreduce", "eth10g", 4 * MIB, metrics={**s.metrics, **both}, **WHERE)
    chapter(f, tmp_path)
    assert findings(tmp_path)[0]["text"].startswith("EMULATED DPUs: of 1 case offload undecided in 1;")


def test_workloads_have_a_table_each_under_one_operation(tmp_path: Path) -> None:
    f = Folder()
    for workload in ("", "compute 2x, skew 0.5"):
        case(f, {"staged": 0.2}, workload=workload)
    text = chapter(f, tmp_path)
    assert text.count("offload_allreduce, at a glance") == 1
    assert text.splitlines().count("compute as long as the collective:") == 1
    assert text.splitlines().count("compute 2x, skew 0.5:") == 1
    lines = text.splitlines()
    for label in ("compute as long as the collective:", "compute 2x, skew 0.5:"):
        assert lines[lines.index(label) + 1].lstrip().startswith("4 MiB  eth10g")
    assert "4 MiB on eth10g (compute 2x, skew 0.5) (EMULATED)" in flat(text)


def test_a_warning_of_a_case_names_benchmark_and_workload(tmp_path: Path) -> None:
    f = Folder()
    case(f, {"staged": 0.2}, workload="node", method={"warnings": ["the core was shared"]})
    told = flat(render(f.write(tmp_path)).split("8 Verdicts")[1])
    assert "WARNING: offload_allreduce node 4 MiB on eth10g: the core was shared." in told


def test_no_host_computes_where_accelerators_would(tmp_path: Path) -> None:
    f = Folder()
    case(f, {"staged": 0.2}, method={"computing_ranks": []})
    assert "Computing: none." in flat(chapter(f, tmp_path))


def test_operations_are_apart_and_hosts_alone_have_no_offload(tmp_path: Path) -> None:
    f = Folder()
    case(f, {}, benchmark="overlap_allreduce", ranks=2, hosts=("h0", "h1"), roles=("host", "host"))
    case(f, {"staged": 0.13}, benchmark="offload_alltoall")
    case(f, {"staged": 0.2})
    text = chapter(f, tmp_path)
    titles = re.findall(r"^(\w+), at a glance", text, re.MULTILINE)
    assert titles == ["offload_allreduce", "offload_alltoall", "overlap_allreduce"]
    alone = text.split("overlap_allreduce, at a glance")[1]
    assert "best offload" not in alone and "carried by" not in alone and "net gain" not in alone
    assert "best staged at 4 MiB" in findings(tmp_path)[0]["text"]
    assert "overlap_" not in render(tmp_path).split("4 Allreduce and other collectives")[1].split("\n5 Overlap")[0]


def test_who_computed_and_who_is_reported_is_told(tmp_path: Path) -> None:
    f = Folder()
    f.job("eth10g", hosts=list(WHERE["hosts"]), roles=list(WHERE["roles"]), cpus=[[0], [1], [1], [1]])
    f.job("eth10g", hosts=list(WHERE["hosts"]), roles=list(WHERE["roles"]), cpus=[[0], [1], [0], [1]])
    waiting = {"strategy": "poll", "why": "every rank was woken by a message"}
    case(f, {"staged": 0.2}, method={"computing_ranks": [0], "waiting": waiting})
    node = {"placement": "node h0:0 h1:1 d0:0 d1:1", "reported_ranks": (0, 1), "workload": "node"}
    case(f, {"staged": 0.2}, method={"computing_ranks": [0, 1]}, **node)
    told = flat(chapter(f, tmp_path))
    assert (
        "eth10g (EMULATED, placement split): rank 0: host h0, CPU 0; rank 1: host h1, CPU 1; rank 2: dpu d0, CPU 1"
        in told
    )
    assert (
        "dpu d1, CPU 1. Computing: rank 0. Reported: rank 0. Waiting: poll (every rank was woken by a message)." in told
    )
    assert (
        "eth10g (EMULATED, placement node): rank 0: host h0, CPU 0; rank 1: host h1, CPU 1; rank 2: dpu d0, CPU 0"
        in told
    )
    assert "Computing: ranks 0-1. Reported: ranks 0-1." in told


def characterized(f: Folder, **more: Any) -> None:
    words = [{"what": "allreduce", "verdict": "hides", "words": "staged allreduce can hide: 3.2 times the wire"}]
    metrics = {
        "host.triad": metric(10e9, "bytes/s", 5), "dpu.triad": metric(2.5e9, "bytes/s", 5),
        "ratio.triad": metric(0.25, "1", 5), "host.matmul_all": metric(80e9, "flop/s", 5),
        "dpu.matmul_all": metric(None, "flop/s", 0, None, note="no torch"), "ratio.matmul_all": metric(0.5, "1", 5),
        "host_dpu.bandwidth": metric(4e9, "bytes/s", 5), "dpu_dpu.bandwidth": metric(1.25e9, "bytes/s", 5),
        "dpu_dpu.latency": metric(60e-6, n=5), "hide.staging": metric(3.2, "1", 5), "seen": metric(2.0, "1", 5),
    }  # fmt: skip
    given = WHERE | {"dtype": "", "method": {"findings": words}, "fabric": "eth10g"} | more
    f.add("dpu", given.pop("fabric"), metrics=metrics, **given)


def test_what_the_dpus_are_stands_before_what_they_save(tmp_path: Path) -> None:
    f = Folder()
    case(f, {"staged": 0.2})
    characterized(f)
    text = chapter(f, tmp_path)
    told = flat(text)
    assert text.index("What the DPUs are, on eth10g (EMULATED)") < text.index("What was where")
    assert "kernel unit host DPU ratio % EMULATED" in told
    assert "triad GB/s 10.00 [9.90, 10.10] 2.500 [2.475, 2.525] 25.0 [24.8, 25.2]" in told
    assert "matmul all Gflop/s 80.00 [79.20, 80.80] no torch" in told
    assert re.search(r"host - DPU +32.000 \[31.680, 32.320\] +-$", text, re.MULTILINE)
    assert "What can hide - staged allreduce can hide: 3.2 times the wire" in told
    assert "hide.staging" not in text and "seen" in text
    speed = findings(tmp_path)[0]
    assert speed["text"] == (
        "EMULATED DPUs on eth10g run what their hosts run at 25.0 [24.8, 25.2] % (triad) to 50.0 [49.5, 50.5] % "
        "(matmul_all) of their speed."
    )
    assert "dpu" not in render(tmp_path).split("4 Allreduce and other collectives")[1].split("\n5 Overlap")[0]


def test_dpus_without_a_collective_have_their_table(tmp_path: Path) -> None:
    f = Folder()
    characterized(f)
    text = chapter(f, tmp_path)
    assert "What the DPUs are" in text and "Nothing to show: the run has no such case on disk." in text
    assert "EMULATED: DPUs are this machine's own cores. Take mechanisms from their numbers" in flat(text)
    assert findings(tmp_path)


def test_how_dpus_are_emulated_is_told_as_recorded(tmp_path: Path) -> None:
    f = Folder()
    characterized(f, method={"emulation": "EMULATED: measured speed 0.25 of a host's; CPU quota 26 % of a core"})
    assert "EMULATED: measured speed 0.25 of a host's; CPU quota 26 % of a core. Take" in flat(chapter(f, tmp_path))


@pytest.mark.parametrize(
    "method", [{}, {"used": 3, "left_out": [1], "computing_ranks": "all"}, {"used": {"staged": None}}]
)
def test_a_method_that_says_nothing_of_it_is_taken_as_used(tmp_path: Path, method: dict[str, Any]) -> None:
    f = Folder()
    case(f, {"staged": 0.2}, method=method)
    assert rows(chapter(f, tmp_path), "carried by") == [["hosts", "hosts", "hosts", "DPUs"]]


def test_lines_fit_the_page(tmp_path: Path) -> None:
    f = Folder()
    for nbytes in (4096, 64 * 1024, 32 * MIB):
        case(f, {"staged": -0.203, "window": 0.36, "rma": -0.9}, nbytes=nbytes, workload="compute 0.25x, 4 outstanding")
    wide = [line for line in chapter(f, tmp_path).splitlines() if len(line) > 100]
    assert wide == []


def test_modes_are_of_hosts_or_of_dpus() -> None:
    assert [m for m in ("host", "probes4", "probes64", "thread", "gloo", "blocking") if offloaded(m)] == []
    assert all(map(offloaded, ("staged", "window", "rma", "new")))
    metrics = {"compute": metric(1.0), "host.overall": metric(2.0), "thread.overall": metric(None, note="n/a"),
               "window.overall": metric(1.0)}  # fmt: skip
    assert modes(metrics) == ["host", "thread", "window"]
    assert (best_host(metrics), fastest(metrics, ["thread"]), unused({"used": {"a": False}})) == ("host", "", ("a",))
