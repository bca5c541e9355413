"""What ``bench`` prints of records without one time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from microbench.record import Metric, Record, shared_words
from reports.units import MB_PER_S
from suite import benchmodes, benchtable


def record(metrics: dict[str, Metric], **more: Any) -> Record:
    return Record("x", "offload_allreduce", "as launched", "ok", nbytes=4 << 20, metrics=metrics, **more)


def test_modes_stand_beside_each_other_with_the_net_gain_that_judges() -> None:
    metrics = {
        "compute": Metric(0.036, "s", 12), "blocking.overall": Metric(0.072, "s", 12),
        "host.pure": Metric(0.036, "s", 12), "host.overall": Metric(0.060, "s", 12),
        "host.overlap": Metric(1 / 3, "1", 12, 0.3, 0.35), "probes16.overall": Metric(0.070, "s", 12),
        "staged.overall": Metric(0.040, "s", 12), "staged.net_gain": Metric(1 / 3, "1", 12, 0.3, 0.35),
        "rma.overall": Metric(0.060, "s", 12), "rma.net_gain": Metric(None, "1", 12, note="n/a"),
    }  # fmt: skip
    method = {"used": {"staged": True, "rma": False}, "left_out": {"window": "no common kernel"}, "warnings": ["hm"]}
    told = benchmodes.lines(record(metrics, method=method, workload="skew 0.5"), MB_PER_S)
    assert told[0] == "# 4 MiB, skew 0.5: compute 36.00 ms, n 12"
    assert told[1].split("  ")[-1].strip() == "95 %" and told[1].count("95 %") == 2
    rows = {line.split()[0]: line for line in told[2:7]}
    assert rows["host"].split() == ["host", "36.00", "60.00", "0.33", "[0.30,", "0.35]", "-"]
    assert rows["staged"].split()[1:] == ["-", "40.00", "-", "33.3", "[30.0,", "35.0]"]
    assert rows["rma"].endswith("n/a  not used")
    assert told[7:] == [
        "# left out: window: no common kernel", "# hm",
        "# net gain: against the best host mode: thread, gloo not measured; at most 40.0 %; blocking computes after "
        "the collective",
        "# staged: gains", "# rma: not judged: host (offload not used)",
    ]  # fmt: skip


def test_a_gain_over_blocking_alone_is_told_as_such() -> None:
    metrics = {
        "compute": Metric(0.036, "s", 12), "blocking.overall": Metric(0.072, "s", 12),
        "window.overall": Metric(0.050, "s", 12), "window.net_gain": Metric(0.295, "1", 12, 0.28, 0.31),
    }  # fmt: skip
    against = "against blocking alone: host, probes, thread, gloo not measured"
    assert benchmodes.lines(record(metrics), MB_PER_S)[-2:] == [
        f"# net gain: {against}; at most 50.0 %; blocking computes after the collective",
        f"# window: undecided: {against}",
    ]


def test_nothing_that_was_offloaded_gains_nothing() -> None:
    note = "n/a: nothing was offloaded"
    metrics = {
        "compute": Metric(1e-6, "s", 12), "blocking.overall": Metric(2e-6, "s", 12),
        "staged.overall": Metric(1e-6, "s", 12), "staged.net_gain": Metric(None, "1", 12, note=note),
    }  # fmt: skip
    told = benchmodes.lines(replace(record(metrics), nbytes=0), MB_PER_S)
    assert told[3].endswith("n/a  nothing offloaded")
    assert told[4:] == ["# staged: not judged: nothing was offloaded"]


def test_an_overlap_of_noise_says_below_the_table_why_there_is_none() -> None:
    note = "n/a: noise of the times > compute 0.004 ms"
    metrics = {"compute": Metric(4e-6, "s", 12), "host.overall": Metric(3.5e-3, "s", 12),
               "host.overlap": Metric(None, "1", 12, note=note),
               "host.dilation": Metric(None, "1", 12, note=note)}  # fmt: skip
    told = benchmodes.lines(record(metrics), MB_PER_S)
    assert told[2].split() == ["host", "3.500", "n/a", "n/a"]
    assert told[3:] == [f"# host: overlap {note}", f"# host: dilation {note}"]
    assert benchtable.data([record(metrics)]) == [
        "# overlap: (pure + compute - overall) / min(pure, compute), signed and unclipped; above 1 overall was shorter "
        "than the longer of pure and compute, so that this one was inflated"
    ]


def test_dpus_on_a_hosts_machine_tell_nothing_of_what_can_hide() -> None:
    method = {"findings": [{"words": "allreduce can hide"}], "warnings": [shared_words(("vm",))]}
    bad = record({"ratio.triad": Metric(1.0, "1", 5)}, method=method, hosts=("vm", "vm"), roles=("host", "dpu"))
    assert benchmodes.lines(bad, MB_PER_S)[-1] == "# DPU ranks share machine vm with hosts: not a DPU"
    assert not any("can hide" in line for line in benchmodes.lines(bad, MB_PER_S))


def test_hosts_alone_have_no_net_gain() -> None:
    metrics = {"compute": Metric(0.036, "s", 12), "host.overall": Metric(0.060, "s", 12)}
    assert benchmodes.lines(record(metrics), MB_PER_S)[1:] == ["mode      overall ms", "host           60.00"]


def test_other_metrics_have_a_line_each() -> None:
    metrics = {
        "host.triad": Metric(2e10, "bytes/s", 5, 1.9e10, 2.1e10), "host_dpu.bandwidth": Metric(1.25e9, "bytes/s", 5),
        "dpu.conv": Metric(None, "flop/s", 0, note="no torch"),
    }  # fmt: skip
    method = {"emulation": "EMULATED: a share", "findings": [{"words": "allreduce can hide"}], "warnings": ["hm"]}
    whole = benchmodes.lines(record(metrics, method=method), MB_PER_S)
    assert [line for line in whole if line.startswith("# ")] == ["# EMULATED: a share", "# allreduce can hide", "# hm"]
    told = benchmodes.lines(record(metrics), MB_PER_S)
    assert [line.split()[1:3] for line in told[1:]] == [["20000.000", "MB/s"], ["10.000", "Gbit/s"], ["n/a", "no"]]


def test_no_result_says_why() -> None:
    bad = Record("x", "offload_allreduce", "f", "skipped", reason="too large", nbytes=8)
    assert benchmodes.lines(bad, MB_PER_S) == ["8 B skipped: too large"]
